"""`pravda show`: everything that is known of one snapshot."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import click

from pravda.cli import options
from pravda.cli.reading import find, open_kept
from pravda.cli.report import line, snapshot_lines, verdict_lines
from pravda.cli.trouble import told
from pravda.cli.words import badge, now, safe, size
from pravda.core.digest import Json
from pravda.core.outcome import Snapshot, Verdict
from pravda.core.wire import snapshot_to_json

_VERDICT = ("state", "usable", "failure", "checks", "warnings")

_HELP = """Show all facts of the snapshot ID; latest:URL stands for the newest usable one of a
page, and the beginning of an id, of 8 characters or more, for the only one that begins so.

With --reclassify the stored evidence is judged again by today's law and both verdicts are shown; the stored one stays."""


@click.command("show", help=_HELP, short_help="Show everything that is known of one snapshot.")
@click.argument("snapshot_id", metavar="ID")
@click.option("--reclassify", is_flag=True, help="Judge the stored evidence again and show both verdicts.")
@options.as_json
@options.home
def command(snapshot_id: str, *, reclassify: bool, as_json: bool, home: Path | None) -> None:
    """Find and print."""
    with told():
        snapshot, again = asyncio.run(_found(home, snapshot_id, reclassify=reclassify))
        if as_json:
            click.echo(json.dumps(_both(snapshot, again) if again else snapshot_to_json(snapshot), indent=2))
            return
        for text in _both_lines(snapshot, again) if again else _lines(snapshot, home):
            click.echo(text)


async def _found(home: Path | None, name: str, *, reclassify: bool) -> tuple[Snapshot, Verdict | None]:
    """The snapshot, and what today's law says of it where that is asked for."""
    async with open_kept(home) as pravda:
        snapshot = await find(pravda, home, name)
        return snapshot, await pravda.reclassify(snapshot) if reclassify else None


def _both(snapshot: Snapshot, again: Verdict) -> dict[str, Json]:
    return {"stored": _verdict(snapshot), "now": _verdict(snapshot.judged(again))}


def _verdict(snapshot: Snapshot) -> Json:
    wire = snapshot_to_json(snapshot)
    return {name: wire[name] for name in _VERDICT}


def _both_lines(snapshot: Snapshot, again: Verdict) -> Iterator[str]:
    yield f"{badge(snapshot.state)} stored"
    yield from verdict_lines(snapshot.verdict)
    yield f"{badge(again.state)} now"
    yield from verdict_lines(again)


def _lines(snapshot: Snapshot, home: Path | None) -> Iterator[str]:
    seen, asked = snapshot.evidence, snapshot.asked
    yield badge(snapshot.state)
    yield from snapshot_lines(snapshot, now(), home)
    yield line("capture", asked.capture_id)
    yield line("request", f"{seen.method} by the engine {seen.engine}, certificates: {asked.tls}")
    if asked.key:
        yield line("key", asked.key)
    for name, value in asked.expect.to_wire().items():
        yield line("expected", f"{name} = {value}")
    for name, value in (("etag", snapshot.validators.etag), ("modified", snapshot.validators.last_modified)):
        if value:
            yield line(name, value)
    if seen.content:
        yield line("sha256", seen.content.sha256)
    for artifact in seen.artifacts:
        redacted = ", secrets taken out" if artifact.redacted else ""
        yield line("artifact", f"{artifact.name}: {artifact.media_type}, {size(artifact.bytes)}{redacted}")
    if seen.response:
        yield "headers"
        yield from (f"  {safe(name)}: {safe(value)}" for name, value in seen.response.headers)
