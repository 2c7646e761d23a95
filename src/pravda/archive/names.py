"""Ids of snapshots by how they begin."""

from contextlib import closing
from pathlib import Path

from pravda.archive.catalog import open_reader
from pravda.archive.local import catalog_in
from pravda.archive.rows import Cell
from pravda.archive.statements import named

_SQL = named("names.sql")
_BEHIND = "g"  # sorts after everything an id is made of


def ids_beginning(home: Path, start: str, most: int = 2) -> tuple[str, ...]:
    """Ids that begin with hexadecimal digits and dashes; raises NotFound where there is no archive, ArchiveUnavailable."""
    with closing(open_reader(catalog_in(home))) as reader:
        asked: dict[str, Cell] = {"first": start, "behind": start + _BEHIND, "limit": most}
        return tuple(snapshot_id for (snapshot_id,) in reader.rows(_SQL["beginning"], asked))
