"""What of a tree's pages the last commit does not hold, whichever run stored it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pravda.tree.committed import Committed
from pravda.tree.files import StoredPage, Tree
from pravda.tree.layout import SNAPSHOTS, body_name, meta_name
from pravda.tree.sources import Source

_CONFIRMATION = b'"lastConfirmedAt"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The files of one source that differ from the last commit; with what it holds they are a whole page."""

    source_id: str
    blobs: tuple[tuple[str, str], ...]
    """Each file's name, from the tree's root with slashes, and git's hash of the bytes that were looked at."""
    changed: bool
    """Whether the page is among them, not its metadata alone."""
    confirms: bool
    """Whether they differ in nothing but the time of confirmation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaved:
    """What there is to commit."""

    pages: tuple[Pending, ...]
    """In the order of the sources."""
    left_out: tuple[str, ...]
    """Ids whose files differ too, but are no whole page."""


def unsaved(tree: Tree, sources: Sequence[Source], committed: Committed) -> Unsaved:
    """Compare the files of these sources with the last commit; raises GitTrouble."""
    pages: list[Pending] = []
    left_out: list[str] = []
    for source in sources:
        stored = tree.page(source.id, source.extension)
        if stored.intact:
            page = _page(source, stored, committed)
            if page.blobs:
                pages.append(page)
        elif _differs(source, stored, committed):
            left_out.append(source.id)
    return Unsaved(pages=tuple(pages), left_out=tuple(left_out))


def _page(source: Source, stored: StoredPage, committed: Committed) -> Pending:
    """A page that is whole."""
    assert stored.body is not None  # as it is intact
    assert stored.meta is not None
    meta = _path(meta_name(source.id))
    files = {_path(body_name(source.id, source.extension)): stored.body, meta: stored.meta.standing}
    blobs = {name: committed.blob_of(data) for name, data in files.items()}
    differing = tuple((name, blob) for name, blob in blobs.items() if committed.blobs.get(name) != blob)
    changed = any(name != meta for name, _blob in differing)
    return Pending(
        source_id=source.id,
        blobs=differing,
        changed=changed,
        confirms=not changed and _confirms(committed.read(meta), stored.meta.standing),
    )


def _confirms(old: bytes | None, new: bytes) -> bool:
    """Whether metadata says no more than before but that the page is still current."""
    return old is not None and _without_confirmation(old) == _without_confirmation(new)


def _without_confirmation(data: bytes) -> list[bytes]:
    # by lines, as `git diff -I '"lastConfirmedAt"'` has it
    return [line for line in data.split(b"\n") if _CONFIRMATION not in line]


def _differs(source: Source, stored: StoredPage, committed: Committed) -> bool:
    """Whether there is anything of a damaged page that the last commit does not hold so."""
    if stored.body is None and not stored.damage:
        return False
    name = _path(body_name(source.id, source.extension))
    body = None if stored.body is None else committed.blob_of(stored.body)
    meta = committed.blob_of(stored.meta.standing) if stored.meta else None
    return (body, meta) != (committed.blobs.get(name), committed.blobs.get(_path(meta_name(source.id))))


def _path(name: str) -> str:
    return f"{SNAPSHOTS}/{name}"
