"""Stand-ins for tests of code that uses Pravda: what the world says is scripted, time stands still."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from pravda.core.charset import detect
from pravda.core.digest import sha256
from pravda.core.evidence import Artifact, Content, Evidence, Phase, Response, Timings, Trouble, Validators
from pravda.core.media import effective_type
from pravda.core.outcome import Snapshot
from pravda.core.ports import Contents, Observed, Order, Query
from pravda.core.states import Reason
from pravda.core.urls import redact

START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)

Scene = Callable[[Order, datetime], Observed]
"""What an engine sees, given the order and the time."""


class FrozenClock:
    """Time that moves only when told to."""

    def __init__(self, now: datetime = START) -> None:
        self._now, self._ticks = now, 0.0

    def now(self) -> datetime:
        """Wall time in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds moved so far."""
        return self._ticks

    def advance(self, **span: float) -> None:
        """Move on, as `advance(days=2)`; the words are those of `timedelta`."""
        step = timedelta(**span)
        self._now += step
        self._ticks += step.total_seconds()


class InMemory:
    """Contents over bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def sha256(self) -> str:
        """Hex."""
        return sha256(self._data)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._data)

    def read(self, limit: int | None = None) -> bytes:
        """The bytes, at most `limit` of them."""
        return self._data[:limit]

    def chunks(self) -> Iterator[bytes]:
        """The bytes, whole."""
        yield self._data

    def close(self) -> None:
        """Nothing to let go of."""


def page(
    body: bytes = b"<title>Page</title><p>Some words of a page.</p>",
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Scene:
    """A scene in which the server answers; the content type is HTML unless the headers say otherwise."""
    given = {"Content-Type": "text/html; charset=utf-8"} | dict(headers or {})

    def scene(order: Order, now: datetime) -> Observed:
        types = [value for name, value in given.items() if name.lower() == "content-type"]
        charset = detect(body, types)
        sent = order.held.validators if order.held else Validators()
        evidence = _evidence(
            order,
            now,
            response=Response(status=status, version="1.1", headers=tuple(given.items())),
            content=Content(
                sha256=sha256(body),
                bytes=len(body),
                media_type=effective_type(types[0], body),
                charset=charset.name,
                charset_from=charset.source.value,
                wire_bytes=len(body),
            ),
            sent=sent,
            artifacts=(Artifact(name="body", media_type="text/html", bytes=len(body), sha256=sha256(body)),),
        )
        return Observed(evidence=evidence, contents={"body": InMemory(body)})

    return scene


def trouble(reason: Reason, detail: str = "scripted") -> Scene:
    """A scene in which no answer comes."""

    def scene(order: Order, now: datetime) -> Observed:
        cause = Trouble(reason=reason, phase=Phase.CONNECT, detail=detail)
        return Observed(evidence=_evidence(order, now, trouble=cause))

    return scene


def _evidence(
    order: Order,
    now: datetime,
    *,
    response: Response | None = None,
    content: Content | None = None,
    sent: Validators | None = None,
    artifacts: tuple[Artifact, ...] = (),
    trouble: Trouble | None = None,
) -> Evidence:
    request = order.request
    return Evidence(
        url=redact(request.url.href),
        final_url=request.url.page,
        engine="http",
        method=request.method,
        requested_at=now,
        captured_at=now,
        response=response,
        content=content,
        trouble=trouble,
        sent=sent or Validators(),
        artifacts=artifacts,
        timings=Timings(total_ms=0.0),
    )


class ScriptedEngine:
    """Plays scenes in order; the last one repeats. `orders` keeps what was asked."""

    name = "http"

    def __init__(self, *scenes: Scene, clock: FrozenClock) -> None:
        self._scenes, self._clock = list(scenes), clock
        self.orders: list[Order] = []

    def then(self, *scenes: Scene) -> None:
        """Play these from now on."""
        self._scenes = list(scenes)

    async def observe(self, order: Order) -> Observed:
        """The next scene."""
        self.orders.append(order)
        scene = self._scenes.pop(0) if len(self._scenes) > 1 else self._scenes[0]
        await asyncio.sleep(0)
        return scene(order, self._clock.now())

    async def close(self) -> None:
        """Nothing to let go of."""


class MemoryArchive:
    """An archive that forgets everything with the process."""

    def __init__(self) -> None:
        self.secret = b"not a secret: this archive is for tests"
        self._rows: dict[str, Snapshot] = {}
        self._bytes: dict[str, bytes] = {}

    async def keep(self, snapshot: Snapshot, contents: Mapping[str, Contents]) -> None:
        """Keep in memory."""
        self._bytes |= {item.sha256: item.read() for item in contents.values()}
        self._rows[snapshot.id] = snapshot

    async def get(self, snapshot_id: str) -> Snapshot | None:
        """One snapshot by id."""
        return self._rows.get(snapshot_id)

    async def find(self, query: Query) -> tuple[Snapshot, ...]:
        """Snapshots, newest first."""
        rows = sorted(self._rows.values(), key=lambda row: row.order, reverse=True)
        return tuple([row for row in rows if _is_wanted(row, query)][: query.limit])

    async def read(self, snapshot: Snapshot, name: str, limit: int | None = None) -> bytes | None:
        """An artifact's bytes."""
        found = next((artifact for artifact in snapshot.evidence.artifacts if artifact.name == name), None)
        return self._bytes[found.sha256][:limit] if found else None

    def stream(self, snapshot: Snapshot, name: str) -> Iterator[bytes] | None:
        """An artifact's bytes, in one piece."""
        found = next((artifact for artifact in snapshot.evidence.artifacts if artifact.name == name), None)
        return iter((self._bytes[found.sha256],)) if found else None

    async def close(self) -> None:
        """Nothing to let go of."""


def _is_wanted(row: Snapshot, query: Query) -> bool:
    asked = row.asked
    return (
        query.page in (None, asked.page)
        and query.identity in (None, asked.identity)
        and query.key in (None, asked.key)
        and query.state in (None, row.state)
        and (query.since is None or row.captured_at >= query.since)
        and (query.until is None or row.captured_at <= query.until)
        and (query.before is None or row.order < query.before)
    )
