"""Files beside the snapshots: read within bounds, written whole or not at all, and not when nothing changed."""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pravda.parsing.values import Item, Json

_encode_line: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False).encode

LONGEST: Final = 256 * 1024 * 1024
"""Bytes; a longer file is no page that was pinned here."""


class Unreadable(ValueError):
    """A file cannot be read as what it should be; the message names it."""


def read(path: Path, limit: int = LONGEST) -> bytes | None:
    """The bytes of a regular file; None: there is none. Raises Unreadable."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as problem:
        raise Unreadable(f"{path.name} cannot be read: {problem.strerror}") from None
    if len(data) > limit:
        raise Unreadable(f"{path.name} is longer than {limit:,} bytes")
    return data


def read_json(path: Path) -> Json:
    """The JSON value in a file; None: there is no file. Raises Unreadable."""
    data = read(path)
    if data is None:
        return None
    try:
        value: Json = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Unreadable(f"{path.name} is no JSON") from None
    return value


def write(path: Path, data: bytes) -> bool:
    """Put bytes in place of a file's, unless they are there already; whether they were not. Raises OSError."""
    with suppress(OSError):
        if path.read_bytes() == data:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    return True


def lines(items: Sequence[Item], indent: str = "") -> str:
    """A JSON list with one item a line, keys in order: as short as it can be and still show a change by itself."""
    if not items:
        return "[]"
    inner = ",\n".join(f"{indent}  {one_line(item)}" for item in items)
    return f"[\n{inner}\n{indent}]"


def one_line(value: Json | Mapping[str, Json]) -> str:
    """A JSON value on one line, keys in order."""
    return _encode_line(value)


def pretty(value: Json | Mapping[str, Json]) -> str:
    """A JSON value over several lines, keys in order."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=2)


def encoded(text: str) -> bytes:
    """The bytes of a JSON text, with a final newline."""
    # half a character has no UTF-8; its escape in Python is its escape in JSON too (RFC 8259 §7)
    return text.encode("utf-8", "backslashreplace") + b"\n"
