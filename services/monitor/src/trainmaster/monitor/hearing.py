"""Collects heartbeats between two looks at them. No clock: it is told the time.

Times come in as readings of one monotonic clock and go out as server times, so that a
server clock that is corrected meanwhile makes nobody look silent.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.ids import NodeKey
from trainmaster.core.messages import NodeHeartbeat
from trainmaster.monitor.observed import Beat, Heard
from trainmaster.monitor.settings import NODES_MAX, RESUMED_SECONDS


@dataclass(slots=True)
class Hearing:
    """Who was heard when; `deaf` while there is no connection to hear anything on."""

    since: float = 0.0
    deaf: bool = True
    _beats: dict[NodeKey, tuple[float, NodeHeartbeat]] = field(
        default_factory=dict[NodeKey, tuple[float, NodeHeartbeat]]
    )
    _pools: dict[str, float] = field(default_factory=dict[str, float])
    _resumed: dict[str, float] = field(default_factory=dict[str, float])

    def listen(self, at: float) -> None:
        """Begin to listen, again: whatever was missed is nobody's silence."""
        self.since, self.deaf = at, False

    def beat(self, key: NodeKey, said: NodeHeartbeat, at: float) -> bool:
        """Take one heartbeat in; True when it says something new."""
        known = self._beats.get(key)
        if known is None and len(self._beats) >= NODES_MAX:
            return False
        before = self._pools.get(key.pool)
        if before is None or at - before > RESUMED_SECONDS:
            self._resumed[key.pool] = at
        self._pools[key.pool] = at
        self._beats[key] = at, said
        return known is None or _offer(known[1]) != _offer(said)

    def view(self, now: datetime, at: float) -> Heard:
        """Show all at server time `now`, when the monotonic clock reads `at`."""

        def time_of(reading: float) -> datetime:
            return now - timedelta(seconds=at - reading)

        return Heard(
            at=now,
            since=time_of(self.since),
            beats={
                key: Beat(at=time_of(reading), said=said)
                for key, (reading, said) in self._beats.items()
            },
            resumed={pool: time_of(r) for pool, r in self._resumed.items()},
        )

    def forget_before(self, at: float) -> None:
        """Drop nodes that have not been heard since a reading."""
        for key in [k for k, (reading, _) in self._beats.items() if reading < at]:
            del self._beats[key]


def _offer(said: NodeHeartbeat) -> object:
    return said.capacity, said.facts, said.boot_id, said.address
