"""Where a key stands in a TOML text, which its parser does not tell."""

import re
from dataclasses import dataclass
from typing import Final

# TOML 1.0 "Keys" and "Table"; good enough to point at a line, never to read a value
_HEADER: Final = re.compile(r"\s*(\[\[?)([^\[\]]{1,200})\]")
_KEY: Final = re.compile(r"\s*([A-Za-z0-9_\-.\"' \t]{1,200}?)\s*=")
_FENCES: Final = ('"""', "'''")

Place = tuple[str, int, str]
"""Table, its number from 0 where there are several, and the dotted key in it; "" for the table itself."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a TOML text by what stands on them."""

    known: dict[Place, int]

    def find(self, table: str, number: int, key: str) -> int:
        """The line of a key, else of what holds it, else the first."""
        parts = key.split(".") if key else []
        for length in range(len(parts), -1, -1):
            line = self.known.get((table, number, ".".join(parts[:length])))
            if line is not None:
                return line
        return 1


def scan(text: str) -> Lines:
    """Note the line of every table and key."""
    known: dict[Place, int] = {}
    counts: dict[str, int] = {}
    table, number, prefix = "", 0, ""
    fence: str | None = None
    for line, content in enumerate(text.split("\n"), 1):
        if fence:
            fence = None if content.count(fence) % 2 else fence
            continue
        if header := _HEADER.match(content):
            name, _, prefix = _plain(header[2]).partition(".")
            if header[1] == "[[" and not prefix:
                counts[name] = counts.get(name, -1) + 1
            table, number = name, counts.get(name, 0)
            known.setdefault((table, number, prefix), line)
        elif key := _KEY.match(content):
            path = _plain(key[1])
            known.setdefault((table, number, f"{prefix}.{path}" if prefix else path), line)
        fence = next((mark for mark in _FENCES if content.count(mark) % 2), None)
    return Lines(known)


def _plain(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))
