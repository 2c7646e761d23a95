"""`pravda cat`: the bytes of an artifact."""

import asyncio
from pathlib import Path

import click

from pravda.cli import options
from pravda.cli.bytes import copy
from pravda.cli.trouble import told

_HELP = """Write an artifact of the snapshot ID byte for byte: body (default), payload, request, response, ...

latest:URL stands for the newest usable snapshot of a page.

The bytes are checked against their hash first; damaged ones are not written (exit code 20)."""


@click.command("cat", help=_HELP, short_help="Write one artifact of a snapshot, byte for byte.")
@click.argument("snapshot_id", metavar="ID")
@click.argument("artifact", default="body")
@click.option("-o", "--output", metavar="FILE", default="-", help="Write there instead of stdout.")
@click.option("--force", is_flag=True, help="Write to a terminal even what could upset it.")
@options.home
def command(snapshot_id: str, artifact: str, *, output: str, force: bool, home: Path | None) -> None:
    """Copy the bytes."""
    with told():
        asyncio.run(copy(home, snapshot_id, artifact, output, force=force))
