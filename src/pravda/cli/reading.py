"""Opening an archive to read what is in it, and the names that its snapshots go by."""

import re
from pathlib import Path

from pravda.archive.local import catalog_in
from pravda.archive.names import ids_beginning
from pravda.assemble import open as open_pravda
from pravda.capture import Pravda
from pravda.cli.words import typed_url
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Snapshot
from pravda.errors import NotFound
from pravda.settings import load

LATEST = "latest:"
"""Before a URL: its newest usable snapshot."""

_START = re.compile("[0-9a-f-]{8,35}")  # of an id


def open_kept(home: Path | None) -> Pravda:
    """As `open`, for an archive that is there: raises NotFound where there is none, and makes none."""
    settings = load(home=home)
    catalog_in(settings.home)
    return open_pravda(settings)


async def find(pravda: Pravda, home: Path | None, name: str) -> Snapshot:
    """The snapshot of an id, of how only one begins, or of `latest:URL`; raises NotFound and BadRequest."""
    if not name.startswith(LATEST):
        return await pravda.get(_whole(home, name) if _START.fullmatch(name) else name)
    url = name.removeprefix(LATEST)
    typed_url(url)
    snapshot = await pravda.latest(url)
    if snapshot is None:
        raise NotFound(f"no usable snapshot is kept of {url}")
    return snapshot


def _whole(home: Path | None, start: str) -> str:
    """The id that begins so; what none begins with stays as it is."""
    ids = ids_beginning(load(home=home).home, start)
    if len(ids) > 1:
        raise BadRequest("id", f"more than one snapshot begins with {start}: write more of it")
    return ids[0] if ids else start
