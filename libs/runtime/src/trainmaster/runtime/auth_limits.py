"""Decides how often somebody may do something: a bucket that fills as time passes."""

from dataclasses import dataclass
from typing import Final

_BUCKETS_MAX: Final = 10_000


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Limits:
    """Allows `burst` at once and `per_second` for ever, for each name by itself.

    A rate of 0 is no limit. The time is given, in seconds that only grow.
    """

    def __init__(self, *, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._buckets: dict[str, _Bucket] = {}

    def wait_seconds(self, name: str, now: float) -> float:
        """Take one; returns 0, or how long to wait until there is one again."""
        if not self._per_second:
            return 0.0
        bucket = self._buckets.get(name)
        if bucket is None:
            self._make_room(now)
            bucket = self._buckets[name] = _Bucket(left=self._burst, at=now)
        filled = bucket.left + (now - bucket.at) * self._per_second
        bucket.left, bucket.at = min(filled, self._burst), now
        if bucket.left < 1.0:
            return (1.0 - bucket.left) / self._per_second
        bucket.left -= 1.0
        return 0.0

    def _make_room(self, now: float) -> None:
        """Forget who has been quiet so long that their bucket is full, else the oldest.

        Half of them at once, so that a crowd of strangers does not cost a walk each.
        """
        if len(self._buckets) < _BUCKETS_MAX:
            return
        full = now - self._burst / self._per_second
        busy = [(n, b) for n, b in self._buckets.items() if b.at > full]
        self._buckets = dict(busy[-_BUCKETS_MAX // 2 :])
