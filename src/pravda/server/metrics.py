"""What Prometheus is told."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pravda.core.outcome import Answer, Result
from pravda.server.desk import Desk
from pravda.server.ports import Health

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
_AGES = (60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400)


class Metrics:
    """The numbers of one service."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._captures = Counter(
            "pravda_captures",
            "Captures that ended with an answer.",
            ("result", "state", "cause", "engine"),
            registry=registry,
        )
        self._errors = Counter(
            "pravda_capture_errors", "Captures that ended without one.", ("type",), registry=registry
        )
        self._seconds = Histogram(
            "pravda_capture_seconds", "From turn to end.", ("result",), registry=registry, buckets=_SECONDS
        )
        self._ages = Histogram(
            "pravda_stale_age_seconds", "Age of what was served stale.", registry=registry, buckets=_AGES
        )
        self._requests = Counter(
            "pravda_http_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._running = Gauge("pravda_captures_running", "Captures under way.", registry=registry)
        self._waiting = Gauge(
            "pravda_captures_waiting", "Captures waiting for their turn.", registry=registry
        )
        self._bytes = Gauge("pravda_blob_bytes", "Bytes of all blobs.", registry=registry)
        self._free = Gauge("pravda_disk_free_bytes", "Bytes left on the archive's disk.", registry=registry)

    def captured(self, answer: Answer, seconds: float) -> None:
        """A capture ended with an answer."""
        shown = answer.attempt or answer.snapshot
        failure = shown.verdict.failure if shown else None
        self._captures.labels(
            answer.result.value,
            shown.state.value if shown else "",
            failure.cause.value if failure else "",
            shown.evidence.engine if shown else "",
        ).inc()
        self._seconds.labels(answer.result.value).observe(seconds)
        if answer.result is Result.STALE:
            self._ages.observe(answer.age_seconds or 0)

    def failed(self, problem: str) -> None:
        """A capture ended with a problem of this type."""
        self._errors.labels(problem).inc()

    def answered(self, method: str, route: str, status: int) -> None:
        """A request was answered."""
        self._requests.labels(method, route, str(status)).inc()

    def text(self, desk: Desk, health: Health) -> bytes:
        """All of it, in the text format."""
        self._running.set(desk.running)
        self._waiting.set(desk.waiting)
        self._bytes.set(health.blob_bytes)
        self._free.set(health.free_bytes)
        return generate_latest(self._registry)
