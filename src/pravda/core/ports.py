"""What the capture loop needs from the world."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pravda.core.evidence import Evidence, Trouble, Validators
from pravda.core.outcome import Snapshot
from pravda.core.request import Request
from pravda.core.states import State
from pravda.core.urls import URL


class Contents(Protocol):
    """Bytes of one artifact, in memory or on disk."""

    @property
    def sha256(self) -> str:
        """Hex."""
        ...

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    def read(self, limit: int | None = None) -> bytes:
        """The bytes, at most `limit` of them."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """The bytes in pieces of bounded size."""
        ...

    def close(self) -> None:
        """Let go of memory and temporary files; safe to call twice."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A page whose validators may be sent along."""

    url: str
    """The final URL the bytes came from; validators go out on the hop that asks for exactly this URL."""
    validators: Validators


class Gate(Protocol):
    """Asked before a redirect is followed."""

    async def __call__(self, url: URL) -> Trouble | None:
        """Why this target must not be asked for; None: it may."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One attempt to be made."""

    request: Request
    budget: float
    """Seconds for everything."""
    held: Held | None = None
    fresh_connection: bool = False
    gate: Gate | None = None
    """None: every target that the address guard lets through may be asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Evidence with its bytes; the receiver closes them."""

    evidence: Evidence
    contents: Mapping[str, Contents] = field(default_factory=dict)
    """By artifact name."""


class Engine(Protocol):
    """Something that looks at a page. Trouble with the page is evidence, never an exception."""

    name: str

    async def observe(self, order: Order) -> Observed:
        """Make one attempt within the order's budget; a cancelled one returns what it saw with reason `cancelled`."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which snapshots to list, newest first."""

    page: str | None = None
    """URL identity; None: every page."""
    identity: str | None = None
    """Request identity; None: every request."""
    key: str | None = None
    state: State | None = None
    since: datetime | None = None
    """Captured at or after."""
    until: datetime | None = None
    """Captured at or before."""
    limit: int = 100
    before: tuple[datetime, str] | None = None
    """Only older than this (captured_at, id)."""


class Archive(Protocol):
    """The append-only store."""

    secret: bytes
    """Key of this archive for hashes of secrets; never leaves the catalog."""

    async def keep(self, snapshot: Snapshot, contents: Mapping[str, Contents]) -> None:
        """Store bytes, then the row; when this returns both are durable. Raises StorageTrouble or ArchiveUnavailable."""
        ...

    async def get(self, snapshot_id: str) -> Snapshot | None:
        """One snapshot by id."""
        ...

    async def find(self, query: Query) -> tuple[Snapshot, ...]:
        """Snapshots, newest first by (captured_at, id)."""
        ...

    async def read(self, snapshot: Snapshot, name: str, limit: int | None = None) -> bytes | None:
        """An artifact's bytes, checked against their hash; None: the snapshot has no such artifact. Raises Damaged."""
        ...

    def stream(self, snapshot: Snapshot, name: str) -> Iterator[bytes] | None:
        """An artifact in pieces, all checked before the first; blocks. None: there is none. Raises Damaged."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> datetime:
        """Wall time in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...
