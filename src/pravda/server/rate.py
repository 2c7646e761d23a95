"""How often one caller may ask."""

from dataclasses import dataclass

_MOST = 10_000  # callers remembered; keys are few, so that this is only a bound


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Rates:
    """A bucket of tokens for each caller, filled evenly over a minute."""

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}

    def wait(self, caller: str, per_minute: int, now: float) -> float:
        """Take one token; 0: it was there, else the seconds until there is one."""
        if per_minute <= 0:
            return 0.0
        bucket = self._buckets.get(caller)
        if bucket is None:
            if len(self._buckets) >= _MOST:
                self._buckets.clear()
            bucket = self._buckets[caller] = _Bucket(float(per_minute), now)
        bucket.tokens = min(float(per_minute), bucket.tokens + (now - bucket.at) * per_minute / 60)
        bucket.at = now
        if bucket.tokens < 1:
            return (1 - bucket.tokens) * 60 / per_minute
        bucket.tokens -= 1
        return 0.0
