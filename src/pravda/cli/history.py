"""`pravda history`: what is kept, newest first."""

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click

from pravda.cli import options
from pravda.cli.reading import open_kept
from pravda.cli.trouble import Stop, told
from pravda.cli.words import ago, badge, now, safe, size, typed_url
from pravda.core.listing import cursor_of, read_cursor, read_moment
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.core.states import Exit, State
from pravda.core.wire import snapshot_to_json, time_text

_HELP = """List what is kept of URL, of a key, or of every page: newest first, good and bad attempts alike.

--since and --until take a time as 2026-03-01T12:00:00Z (UTC where no zone is given), a date, or an age as 7d.
Exit code 4: nothing is kept that fits, or there is no archive."""


@click.command("history", help=_HELP, short_help="List what is kept of a page, newest first.")
@click.argument("url", required=False)
@click.option("--key", help="Of the captures that were given this key.")
@click.option("--all", "everything", is_flag=True, help="Of every page.")
@click.option(
    "--state", type=click.Choice([state.value for state in State]), help="Only snapshots in this state."
)
@click.option("--since", metavar="TIME", help="Only snapshots of this moment or later.")
@click.option("--until", metavar="TIME", help="Only snapshots of this moment or earlier.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="The most that are listed."
)
@click.option("--cursor", help="Go on where an earlier list ended.")
@options.as_json
@options.home
def command(
    url: str | None,
    *,
    key: str | None,
    everything: bool,
    state: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
    home: Path | None,
) -> None:
    """Find, print, and exit 4 where there is nothing."""
    with told():
        if sum((url is not None, key is not None, everything)) != 1:
            raise BadRequest("url", "say one of URL, --key or --all")
        moment = now()
        query = Query(
            page=typed_url(url).page if url else None,
            key=key,
            state=State(state) if state else None,
            since=read_moment("since", since, moment) if since is not None else None,
            until=read_moment("until", until, moment) if until is not None else None,
            limit=limit + 1,  # one more tells whether there is more
            before=read_cursor(cursor) if cursor else None,
        )
        found = asyncio.run(_found(home, query))
        items, following = found[:limit], cursor_of(found[limit - 1]) if len(found) > limit else None
        _print(items, following, moment, as_json=as_json, with_url=url is None)
        if not items:
            raise Stop("nothing is kept that fits", Exit.NOT_FOUND)


async def _found(home: Path | None, query: Query) -> tuple[Snapshot, ...]:
    async with open_kept(home) as pravda:
        return await pravda.history(query)


def _print(
    items: Sequence[Snapshot], following: str | None, moment: datetime, *, as_json: bool, with_url: bool
) -> None:
    if as_json:
        rows = [snapshot_to_json(snapshot) for snapshot in items]
        click.echo(json.dumps({"items": rows, "next": following}))
        return
    for snapshot in items:
        click.echo(_line(snapshot, moment, with_url=with_url))
    if following:
        click.echo(f"pravda: there is more: --cursor {following}", err=True)


def _line(snapshot: Snapshot, moment: datetime, *, with_url: bool) -> str:
    seen, failure = snapshot.evidence, snapshot.verdict.failure
    status = str(seen.response.status) if seen.response else "---"
    parts = (
        time_text(snapshot.captured_at),
        f"{ago(snapshot.captured_at, moment):>10}",
        badge(snapshot.state, 9),
        status,
        f"{failure.reason if failure else 'not_modified' if snapshot.not_modified else 'ok':<24}",
        f"{size(seen.content.bytes) if seen.content else '-':>9}",
        snapshot.id,
        *((safe(seen.url),) if with_url else ()),
    )
    return "  ".join(parts)
