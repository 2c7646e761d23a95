"""What the operator of a service decides."""

from dataclasses import dataclass

DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Bounds of the service; each may be set on the command line."""

    most_running: int = 64
    """Captures at one time."""
    most_waiting: int = 256
    """Captures that may wait for their turn; one more is answered 429."""
    most_requests: int = 1000
    """HTTP requests at one time."""
    most_streams: int = 200
    """Event streams at one time."""
    most_request_bytes: int = 1024 * 1024
    """Of a request's body."""
    most_headers: int = 64
    """Of a request to this service."""
    most_depth: int = 32
    """Of a request's JSON."""
    body_seconds: float = 30.0
    """For a request's body to arrive."""
    longest_capture: float = 600.0
    """Seconds; the largest `timeouts.total` that a caller may ask for."""
    most_page_bytes: int = 2 * 1024**3
    """The largest `max_bytes` that a caller may ask for."""
    per_minute: int = 600
    """Requests of one key, or of all together where there are no keys; 0: any number."""
    grace: float = 30.0
    """Seconds that running captures are given when the service is stopped; then they are kept as cancelled."""
    kept_seconds: float = DAY
    """How long a capture's answer and its Idempotency-Key are remembered."""
