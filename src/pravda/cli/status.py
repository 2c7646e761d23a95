"""`pravda status`: how the pages of a tree stand; nothing is asked for."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click

from pravda.cli import options, trees
from pravda.cli.words import ago, badge, now, safe, span
from pravda.core.digest import Json
from pravda.core.wire import time_text
from pravda.tree.files import Tree
from pravda.tree.layout import SOURCES
from pravda.tree.report import counted, harmless
from pravda.tree.sources_file import load_sources
from pravda.tree.standing import Standing, Survey, survey

_HELP = """Show how each source of a tree stands: state of the last attempt, freshness, failures in a row, when it is due.

Also told: stored bytes that are not what their metadata says, and ids in the tree that no source names (see
`pravda forget`). Nothing is asked for and nothing is written; exit code 0 whatever is found."""

_STATE, _WIDEST = 11, 40  # characters of a state with its brackets, and of an id


@click.command("status", help=_HELP, short_help="Show how the pages of a snapshot tree stand.")
@trees.tree
@options.as_json
def command(*, root: Path, as_json: bool) -> None:
    """Look and tell."""
    with trees.tree_told():
        found = survey(Tree(root), load_sources(root / SOURCES), now())
    if as_json:
        click.echo(json.dumps(to_json(found, now())))
        return
    for line in _lines(found, now()):
        click.echo(harmless(line))


def to_json(found: Survey, at: datetime) -> dict[str, Json]:
    """The report of `--json`."""
    return {
        "sources": [_source(standing, at) for standing in found.sources],
        "broken": [standing.source_id for standing in found.sources if standing.record.broken],
        "damaged": list(found.damaged),
        "retired": list(found.retired),
    }


def _source(standing: Standing, at: datetime) -> dict[str, Json]:
    record, meta, fresh = standing.record, standing.meta, standing.fresh_at
    return {
        "sourceId": standing.source_id,
        "url": standing.url,
        "state": record.state,
        "cause": record.cause,
        "reason": record.reason,
        "lastStatus": record.last_status,
        "lastCheckedAt": _time(record.last_checked_at),
        "freshAt": _time(fresh),
        "ageSeconds": None if fresh is None else max((at - fresh).total_seconds(), 0.0),
        "contentChangedAt": _time(meta.content_changed_at if meta else None),
        "lastConfirmedAt": _time(meta.last_confirmed_at if meta else None),
        "contentHash": meta.content_hash if meta else None,
        "bytes": meta.size if meta else None,
        "items": meta.item_count if meta else None,
        "consecutiveFailures": record.failures,
        "consecutiveRefusals": record.refusals,
        "broken": record.broken,
        "due": standing.turn.due,
        "nextDueAt": _time(standing.turn.at),
        "intact": standing.intact,
        "damage": list(standing.damage),
    }


def _lines(found: Survey, at: datetime) -> Iterator[str]:
    width = min(max((len(standing.source_id) for standing in found.sources), default=0), _WIDEST)
    for standing in found.sources:
        yield _line(standing, width, at)
        for sentence in standing.damage:
            yield f"  damaged: {safe(sentence)}"
        if standing.turn.warning:
            yield f"  clock: {standing.turn.warning}"
    for source_id in found.retired:
        yield f"{source_id}: retired; no source is called so (pravda forget {source_id})"
    due = sum(standing.turn.due for standing in found.sources)
    broken = sum(standing.record.broken for standing in found.sources)
    damaged, retired = len(found.damaged), len(found.retired)
    yield f"{counted(len(found.sources), 'source')}: {due} due, {broken} broken, {damaged} damaged; {retired} retired"


def _line(standing: Standing, width: int, at: datetime) -> str:
    record = standing.record
    state = badge(record.state, _STATE) if record.state else f"{'[never asked]':<{_STATE}}"
    facts = [
        f"fresh {ago(standing.fresh_at, at)}" if standing.fresh_at else "no page stored",
        _due(standing, at),
    ]
    if record.reason:
        facts.append(record.reason)
    if record.failures:
        facts.append(
            f"{counted(record.failures, 'failure')} in a row" + (", broken" if record.broken else "")
        )
    if record.refusals:
        facts.append(f"{counted(record.refusals, 'refusal')} by robots.txt in a row")
    return f"{standing.source_id:<{width}}  {state}  {'; '.join(facts)}"


def _due(standing: Standing, at: datetime) -> str:
    if standing.turn.due or standing.turn.at is None:
        return "due now"
    return f"due in {span((standing.turn.at - at).total_seconds())}"


def _time(when: datetime | None) -> str | None:
    return time_text(when) if when else None
