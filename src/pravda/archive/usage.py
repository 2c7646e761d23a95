"""What an archive holds, and what that takes of its disk."""

import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pravda.archive.blobs import Blobs, files_in
from pravda.archive.catalog import Reader, log_of, open_reader
from pravda.archive.local import catalog_in
from pravda.archive.quarantine import FOLDER as QUARANTINE
from pravda.archive.statements import named

_SQL = named("usage.sql")
_PAGES = 1000  # looked at together


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUsage:
    """What is kept of one host."""

    host: str
    snapshots: int
    content_bytes: int
    """Of all its artifacts, before equal ones are stored once and before compression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an archive holds; bytes on the disk are those of whole files."""

    snapshots: int
    artifacts: int
    content_bytes: int
    """Of all artifacts, as if each were stored for itself and uncompressed."""
    distinct_bytes: int
    """The same with equal content counted once."""
    blobs: int
    blob_bytes: int
    """On the disk, compressed."""
    catalog_bytes: int
    """On the disk, with the write-ahead log."""
    aside_bytes: int
    """On the disk: being written, or left over."""
    quarantine_bytes: int
    """On the disk: put aside by repairs."""
    free_bytes: int
    """Left on the disk for this user."""
    hosts: tuple[HostUsage, ...]
    """Those with the most content bytes, most first."""

    @property
    def disk_bytes(self) -> int:
        """Everything in the archive's folder."""
        return self.blob_bytes + self.catalog_bytes + self.aside_bytes + self.quarantine_bytes

    @property
    def shared_bytes(self) -> int:
        """Content bytes that are stored only once although several snapshots have them."""
        return self.content_bytes - self.distinct_bytes


def usage(home: Path, most_hosts: int = 10) -> Usage:
    """Count everything; raises NotFound where there is no archive, ArchiveUnavailable when it cannot be read."""
    catalog = catalog_in(home)
    reader = open_reader(catalog)
    try:
        ((snapshots, artifacts, content, inline, distinct),) = reader.rows(_SQL["totals"], {})
        hosts = list(_hosts(reader))
    finally:
        reader.close()
    folders = Blobs(home)
    blobs = [about.st_size for folder in folders.folders() for _, about in files_in(folder)]
    disk = os.statvfs(home)
    return Usage(
        snapshots=snapshots,
        artifacts=artifacts,
        content_bytes=content,
        distinct_bytes=distinct + inline,
        blobs=len(blobs),
        blob_bytes=sum(blobs),
        catalog_bytes=sum(path.stat().st_size for path in (catalog, log_of(catalog)) if path.exists()),
        aside_bytes=_below(folders.aside),
        quarantine_bytes=_below(home / QUARANTINE),
        free_bytes=disk.f_bavail * disk.f_frsize,
        hosts=tuple(heapq.nlargest(most_hosts, hosts, key=lambda one: one.content_bytes)),
    )


def _hosts(reader: Reader) -> Iterator[HostUsage]:
    found: dict[str, tuple[int, int]] = {}
    after = ""
    while rows := reader.rows(_SQL["pages"], {"after": after, "limit": _PAGES}):
        for page, count, size in rows:
            host = _host(page)
            snapshots, content = found.get(host, (0, 0))
            found[host] = (snapshots + count, content + size)
            after = page
    for host, (snapshots, content) in found.items():
        yield HostUsage(host=host, snapshots=snapshots, content_bytes=content)


def _host(page: str) -> str:
    try:
        return urlsplit(page).hostname or ""
    except ValueError:
        return ""


def _below(folder: Path) -> int:
    return sum(about.st_size for place, _, _ in os.walk(folder) for _, about in files_in(Path(place)))
