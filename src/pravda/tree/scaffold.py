"""The files that a new tree begins with; none that is there already is touched."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from pravda.core.digest import sha256
from pravda.core.mistake import BadRequest
from pravda.tree import layout

DATE: Final = "2026-01-01"
"""Of the fixture that comes with the example."""

_EXAMPLE: Final = "example"
_URL: Final = "https://example.com/"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaffolded:
    """What was done with one file."""

    name: str
    """From the tree's root, with slashes."""
    written: bool
    """False: it was there, and stays as it is."""
    lacks: tuple[str, ...] = ()
    """Lines that a file which was there should have, too."""


def scaffold(root: Path, *, version: str, repository: str | None = None) -> tuple[Scaffolded, ...]:
    """Write the files of a new tree; `repository` is the owner/name that alone runs the schedule. Raises BadRequest."""
    made = []
    for name, data in _files(version, repository):
        written = create(root / name, data)
        lacks = () if written or name not in _LISTS else _lacking(root / name, _LISTS[name])
        made.append(Scaffolded(name=name, written=written, lacks=lacks))
    return tuple(made)


def repository_of(address: str) -> str | None:
    """The owner/name in the address of a forge's repository; None: it is no such address."""
    # git@host:owner/name.git or https://host/owner/name, never a path on this machine
    if "@" not in address and not address.startswith(("http://", "https://", "ssh://")):
        return None
    name = "/".join(re.split("[/:]", address.removesuffix("/").removesuffix(".git"))[-2:])
    return name if _REPOSITORY.fullmatch(name) else None


def create(path: Path, data: bytes) -> bool:
    """Write a file that is not there yet, and the folders it is in; whether it was not. Raises BadRequest."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # exclusive, and so never through a link that stands there
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        if path.parent.is_dir():
            return False
        raise BadRequest("dir", f"{path.parent} is no folder") from None
    except OSError as problem:
        raise BadRequest("dir", f"{path} cannot be written: {problem.strerror}") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return True


_LISTS: Final = {
    ".gitignore": (*layout.IGNORED, "__pycache__/"),
    ".gitattributes": layout.VERBATIM,
}
"""Files of lines, which a tree needs whoever wrote them."""


def _files(version: str, repository: str | None) -> list[tuple[str, bytes]]:
    """Name and content of every file, in the order in which they are told."""
    fixture, expected = _starter("fixture.html"), _starter("fixture.expected.json")
    pinned = f"{layout.FIXTURES}/{_EXAMPLE}/{DATE}"
    workflow = _workflow(version, repository)
    return [
        (layout.SOURCES, _starter("sources.toml")),
        *((name, _lines(lines)) for name, lines in _LISTS.items()),
        ("parsers/__init__.py", b'"""The parsers of this tree."""\n'),
        (f"parsers/{_EXAMPLE}.py", _starter("example.py.txt")),
        (f"{pinned}.html", fixture),
        (f"{pinned}.meta.json", _fixture_meta(fixture)),
        (f"{pinned}.expected.json", expected),
        (".github/workflows/refresh.yml", workflow),
        (".gitea/workflows/refresh.yml", workflow),
    ]


def _workflow(version: str, repository: str | None) -> bytes:
    # a schedule's event need not hold the repository on every forge, a name always can be compared
    original = f"github.repository == '{repository}'" if repository else "!github.event.repository.fork"
    text = _starter("refresh.yml").decode()
    return text.replace("@VERSION@", version).replace("@ORIGINAL@", original).encode()


def _fixture_meta(body: bytes) -> bytes:
    noon = f"{DATE}T12:00:00.000Z"
    facts: dict[str, str | int] = {
        "sourceId": _EXAMPLE,
        "url": _URL,
        "contentHash": sha256(body),
        "bytes": len(body),
        "charset": "utf-8",
        "capturedAt": noon,
        "now": noon,
    }
    return json.dumps(facts, sort_keys=True, indent=2).encode() + b"\n"


def _starter(name: str) -> bytes:
    return (resources.files("pravda.tree") / "starter" / name).read_bytes()


def _lines(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _lacking(path: Path, lines: Sequence[str]) -> tuple[str, ...]:
    try:
        standing = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        standing = []
    return tuple(line for line in lines if line not in {known.strip() for known in standing})
