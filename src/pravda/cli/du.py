"""`pravda du`: what the archive holds, and what that takes of the disk."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from pravda.archive.usage import Usage, usage
from pravda.cli import options
from pravda.cli.report import line
from pravda.cli.trouble import told
from pravda.cli.waiting import waiting
from pravda.cli.words import safe, size
from pravda.core.digest import Json
from pravda.settings import Settings, load

_HELP = """Show what the archive holds, what it takes of the disk, and which hosts have the most.

Exit code 4: there is no archive."""


@click.command("du", help=_HELP, short_help="Show what the archive takes of the disk, and for which hosts.")
@click.option(
    "--top", type=click.IntRange(0, 100_000), default=10, show_default=True, help="How many hosts are listed."
)
@options.as_json
@options.home
def command(*, top: int, as_json: bool, home: Path | None) -> None:
    """Count and print."""
    with told():
        settings = load(home=home)
        with waiting("Counting"):
            found = usage(settings.home, top)
    if as_json:
        click.echo(json.dumps(_wire(found, settings)))
        return
    for text in _lines(found, settings):
        click.echo(text)


def _lines(found: Usage, settings: Settings) -> Iterator[str]:
    yield str(settings.home)
    yield line("snapshots", f"{found.snapshots}, with {found.artifacts} artifacts")
    yield line("content", f"{size(found.content_bytes)}, as if each were stored for itself")
    yield line("sharing", f"saves {size(found.shared_bytes)}: equal content is stored once")
    packed = found.distinct_bytes / found.blob_bytes if found.blob_bytes else 1.0
    yield line("blobs", f"{size(found.blob_bytes)} in {found.blobs} files, packed {packed:.1f} times")
    yield line("catalog", size(found.catalog_bytes))
    if found.aside_bytes:
        yield line("aside", f"{size(found.aside_bytes)} being written or left over")
    if found.quarantine_bytes:
        yield line("quarantine", size(found.quarantine_bytes))
    most = f" of {size(settings.max_bytes)} allowed" if settings.max_bytes else ""
    yield line("disk", f"{size(found.disk_bytes)}{most}, {size(found.free_bytes)} left on the disk")
    for host in found.hosts:
        yield f"  {size(host.content_bytes):>9} {host.snapshots:>9}  {safe(host.host)}"


def _wire(found: Usage, settings: Settings) -> dict[str, Json]:
    return {
        "snapshots": found.snapshots,
        "artifacts": found.artifacts,
        "content_bytes": found.content_bytes,
        "distinct_bytes": found.distinct_bytes,
        "shared_bytes": found.shared_bytes,
        "blobs": found.blobs,
        "blob_bytes": found.blob_bytes,
        "catalog_bytes": found.catalog_bytes,
        "aside_bytes": found.aside_bytes,
        "quarantine_bytes": found.quarantine_bytes,
        "disk_bytes": found.disk_bytes,
        "free_bytes": found.free_bytes,
        "max_bytes": int(settings.max_bytes) or None,
        "hosts": [
            {"host": host.host, "snapshots": host.snapshots, "content_bytes": host.content_bytes}
            for host in found.hosts
        ],
    }
