"""What the service needs from the rest of the house."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pravda.core.outcome import Answer, Snapshot
from pravda.core.ports import Query
from pravda.core.request import Request


class Evidence(Protocol):
    """Pravda, as far as the service uses it."""

    def request(self, url: str, **fields: object) -> Request:
        """A checked request; raises BadRequest."""
        ...

    async def run(self, request: Request) -> Answer:
        """Capture; raises BadRequest, NoUsableSnapshot, ArchiveUnavailable."""
        ...

    async def get(self, snapshot_id: str) -> Snapshot:
        """One snapshot; raises NotFound."""
        ...

    async def history(self, query: Query) -> tuple[Snapshot, ...]:
        """Snapshots, newest first."""
        ...

    async def latest(self, url: str, *, max_age: object = None, **fields: object) -> Snapshot | None:
        """The newest usable snapshot; None: there is none that young."""
        ...

    async def read(self, snapshot: Snapshot, name: str = "body", limit: int | None = None) -> bytes:
        """An artifact's bytes; raises NotFound and Damaged."""
        ...

    async def stream(self, snapshot: Snapshot, name: str = "body") -> Iterator[bytes]:
        """An artifact in pieces, all checked before the first; raises NotFound and Damaged."""
        ...

    async def close(self) -> None:
        """End running attempts, which are kept as cancelled, and let go of everything."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How the store stands; a problem is one short word, None: there is none."""

    database: str | None
    blobs: str | None
    disk: str | None
    free_bytes: int
    """Left on the disk for this user."""
    blob_bytes: int
    """Of all blobs, as counted by those who wrote them."""


Probe = Callable[[], Health]
"""Looks at the store; blocks, and never raises."""
Now = Callable[[], datetime]
"""Wall time in UTC."""
