"""What telemetry counts: what came in, what nobody can read, what was too much."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counters by kind of message."""

    received: Counter
    malformed: Counter
    dropped: Counter


def counts(registry: CollectorRegistry) -> Counts:
    """Make the counters in a service's own registry."""

    def counter(name: str, text: str) -> Counter:
        return Counter(f"tm_telemetry_{name}", text, ["kind"], registry=registry)

    return Counts(
        received=counter("received", "Telemetry messages received"),
        malformed=counter("malformed", "Telemetry messages nobody can read"),
        dropped=counter("dropped", "Telemetry that was too much to keep"),
    )
