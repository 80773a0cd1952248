"""What a service says about itself: structured logs, metrics, trace contexts."""

import hashlib
import logging
import sys
from dataclasses import dataclass, field
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from trainmaster.core.ids import JobKey, Key, MemberKey

_SECONDS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


def configure_logs(*, level: str = "INFO", human: bool | None = None) -> None:
    """Write one line per decision to stderr: for people on a terminal, else JSON."""
    human = sys.stderr.isatty() if human is None else human
    renderer = (
        structlog.dev.ConsoleRenderer()
        if human
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level]
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def logger(service: str) -> structlog.typing.FilteringBoundLogger:
    """Make a logger that names its service; its first word is a stable `action`."""
    bound: structlog.typing.FilteringBoundLogger = structlog.get_logger(service=service)
    return bound


def trace_parent(key: Key, event: str) -> str:
    """Give all events of one job one W3C trace, each a span named by its id."""
    of = key.job if isinstance(key, JobKey | MemberKey) else ".".join(map(str, key))
    trace = hashlib.sha256(of.encode()).hexdigest()[:32]
    return f"00-{trace}-{event[:16]}-01"


@dataclass(slots=True)
class Metrics:
    """One service's metrics in a registry of its own."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    folded: Counter = field(init=False)
    appended: Counter = field(init=False)
    refused: Counter = field(init=False)
    unknown: Counter = field(init=False)
    void: Counter = field(init=False)
    undecodable: Counter = field(init=False)
    restarts: Counter = field(init=False)
    leading: Gauge = field(init=False)
    decide_seconds: Histogram = field(init=False)

    def __post_init__(self) -> None:
        def counter(name: str, text: str) -> Counter:
            return Counter(f"tm_{name}", text, registry=self.registry)

        self.folded = counter("events_folded", "Events taken into the state")
        self.appended = counter("events_appended", "Events stored")
        self.refused = counter("appends_refused", "Groups whose chain had moved on")
        self.unknown = counter("appends_unknown", "Appends whose outcome was not heard")
        self.void = counter("events_void", "Events that did not follow")
        self.undecodable = counter("events_undecodable", "Messages nobody can read")
        self.restarts = counter("loop_restarts", "Times the loop was left by an error")
        self.leading = Gauge("tm_leading", "1 while active", registry=self.registry)
        self.decide_seconds = Histogram(
            "tm_decide_seconds",
            "Time one decision took",
            buckets=_SECONDS,
            registry=self.registry,
        )
