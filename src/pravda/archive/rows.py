"""Snapshots as rows of the catalog, both ways, and questions as SQL."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pravda.archive.statements import named
from pravda.core.digest import canonical, sha256
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.core.wire import snapshot_from_json, snapshot_to_json, time_text
from pravda.errors import Damaged

Cell = str | int | bytes | None

_SQL = named("catalog.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A snapshot as the catalog holds it, ready to be inserted."""

    snapshot: Mapping[str, Cell]
    """By column."""
    artifacts: tuple[Mapping[str, Cell], ...]
    """By column."""


def row_of(snapshot: Snapshot, inline: Mapping[str, bytes]) -> Row:
    """The row of a snapshot, with the bytes of those artifacts that live in the catalog."""
    seen, failure, asked = snapshot.evidence, snapshot.verdict.failure, snapshot.asked
    document = canonical(snapshot_to_json(snapshot))
    return Row(
        snapshot=_columns(
            id=snapshot.id,
            page=asked.page,
            identity=asked.identity,
            key=asked.key,
            url=seen.url,
            state=snapshot.state.value,
            reason=failure.reason.value if failure else None,
            cause=failure.cause.value if failure else None,
            captured_at=sortable(snapshot.captured_at),
            capture_id=asked.capture_id,
            content_sha256=seen.content.sha256 if seen.content else None,
            content_from=snapshot.content_from,
            row_hash=sha256(document),
            document=document.decode(),
        ),
        artifacts=tuple(
            _columns(
                snapshot_id=snapshot.id,
                name=artifact.name,
                sha256=artifact.sha256,
                bytes=artifact.bytes,
                media_type=artifact.media_type,
                redacted=int(artifact.redacted),
                inline=inline.get(artifact.name),
            )
            for artifact in seen.artifacts
        ),
    )


def row_hash(document: str) -> str:
    """The hash of a row's facts, its artifacts' hashes among them; raises ValueError for a document that is no JSON."""
    return sha256(canonical(json.loads(document)))


def sortable(moment: datetime) -> str:
    """A time as text of one width that sorts as time does, in UTC with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def snapshot_of(snapshot_id: str, captured_at: str, hashed: str, document: str) -> Snapshot:
    """The snapshot in a row; raises Damaged for a row that is not what was written."""
    try:
        # the canonical form is what is stored, so that nearly always one hash of the text is enough
        if sha256(document.encode("utf-8", "surrogateescape")) != hashed != row_hash(document):
            raise _damaged(
                snapshot_id, "changed: its facts no longer have the hash under which they were stored"
            )
        facts = json.loads(document)
        # the document's times end at milliseconds; order and cursors need the rest
        told, facts["captured_at"] = facts["captured_at"], captured_at
        snapshot = snapshot_from_json(facts)
    except (ValueError, LookupError, TypeError, RecursionError) as problem:
        raise _damaged(snapshot_id, f"unreadable: {problem}") from problem
    if snapshot.id != snapshot_id or told != time_text(snapshot.captured_at):
        raise _damaged(snapshot_id, "changed: its columns no longer say what its facts say")
    return snapshot


def answers(snapshot: Snapshot, query: Query) -> bool:
    """Whether a row found by its columns is one by its facts too."""
    asked = snapshot.asked
    return (
        query.page in (None, plain(asked.page))
        and query.identity in (None, asked.identity)
        and query.key in (None, asked.key and plain(asked.key))
        and query.state in (None, snapshot.state)
    )


def _damaged(snapshot_id: str, what: str) -> Damaged:
    return Damaged(f"The row of snapshot {snapshot_id} is {what}. Run `pravda verify` for the whole extent.")


def find_statement(query: Query) -> str:
    """The SQL of a query; its parameters are those of `find_parameters`."""
    asked = {
        "page": query.page,
        "identity": query.identity,
        "key": query.key,
        "state": query.state,
        "since": query.since,
        "until": query.until,
        "before": query.before,
    }
    where = " AND ".join(_SQL[f"where_{name}"] for name, value in asked.items() if value is not None)
    return " ".join((_SQL["find"], f"WHERE {where}" if where else "", _SQL["newest"]))


def find_parameters(query: Query) -> dict[str, Cell]:
    """What a query asks for, as SQLite compares it."""
    before_time, before_id = query.before or (None, None)
    return _columns(
        page=query.page,
        identity=query.identity,
        key=query.key,
        state=query.state.value if query.state else None,
        since=sortable(query.since) if query.since else None,
        until=sortable(query.until) if query.until else None,
        before_time=sortable(before_time) if before_time else None,
        before_id=before_id,
        # a negative limit would be none at all, and a larger one no integer of SQLite's
        limit=min(max(0, query.limit), 2**31),
    )


def plain(text: str) -> str:
    """Text that SQLite can hold: lone surrogates, which have no UTF-8 form, become question marks."""
    return text.encode("utf-8", "replace").decode()


def _columns(**values: Cell) -> dict[str, Cell]:
    return {name: plain(value) if isinstance(value, str) else value for name, value in values.items()}
