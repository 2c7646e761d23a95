"""Where a tree's files are, and how the JSON in them is read and written."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NoReturn

from pravda.core.digest import Json
from pravda.core.wire import NotPravda, read_time, time_text

SNAPSHOTS: Final = "snapshots"
FIXTURES: Final = "fixtures"
SOURCES: Final = "sources.toml"
HOSTS: Final = "_hosts.state.json"
LOCK: Final = "_refresh.lock"
IGNORED: Final = (f"/{SNAPSHOTS}/*.state.json", f"/{SNAPSHOTS}/*.lock", "*.tmp-*")
"""What git is told to ignore in a tree."""
VERBATIM: Final = (f"{SNAPSHOTS}/** -text", f"{FIXTURES}/** -text")
"""What `.gitattributes` says, since git would else change line ends on a clone."""

DEFAULT_EXTENSION: Final = "html"
LONGEST_JSON: Final = 1024 * 1024
"""Bytes; a longer metadata or state file is none of ours."""

_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}", re.ASCII)
_EXTENSION: Final = re.compile(r"[a-z0-9]{1,10}", re.ASCII)
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file: reserved with any extension
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.ASCII)
_LEFTOVER: Final = re.compile(
    r"(?P<file>[a-z0-9_][a-z0-9._-]{0,99}\.[a-z0-9]{1,10}(?:\.json)?)\.tmp-[0-9A-Za-z_-]{1,60}", re.ASCII
)
_META, _STATE = ".meta.json", ".state.json"


def id_problem(text: str) -> str | None:
    """Why a text cannot be a source's id; None: it can."""
    if not _ID.fullmatch(text):
        return "must be 1 to 100 of a-z, 0-9, dot, dash and underscore, and begin with a letter or a digit"
    if ".." in text:
        return "must not hold two dots in a row"
    if _DEVICE.fullmatch(text):
        return "is a device name on Windows, where no file can be called that"
    if text.endswith((".meta", ".state")) or ".tmp-" in text:
        return "would name its files as the tree names its metadata, state or temporary files"
    return None


def extension_problem(text: str) -> str | None:
    """Why a text cannot be the extension of stored pages; None: it can."""
    if not _EXTENSION.fullmatch(text):
        return "must be 1 to 10 of a-z and 0-9, without a dot"
    return None


def body_name(source_id: str, extension: str) -> str:
    """The file of a source's page."""
    return f"{source_id}.{extension}"


def meta_name(source_id: str) -> str:
    """The file that says what the page is."""
    return source_id + _META


def state_name(source_id: str) -> str:
    """The file of the last attempt."""
    return source_id + _STATE


def id_of(name: str) -> str | None:
    """The source whose metadata or state a file is; None: it is neither."""
    for suffix in (_META, _STATE):
        source_id = name.removesuffix(suffix)
        if source_id != name and id_problem(source_id) is None:
            return source_id
    return None


def is_file_of(source_id: str, name: str) -> bool:
    """Whether a file is a source's page, metadata or state."""
    return name in (meta_name(source_id), state_name(source_id)) or is_body_of(source_id, name)


def is_body_of(source_id: str, name: str) -> bool:
    """Whether a file is a source's page, under whatever extension."""
    rest = name.removeprefix(source_id + ".")
    return rest != name and _EXTENSION.fullmatch(rest) is not None


def leftover_of(name: str) -> str | None:
    """The file that a temporary file was to become; None: it is no temporary file of ours."""
    found = _LEFTOVER.fullmatch(name)
    return found["file"] if found else None


def read_object(data: bytes) -> dict[str, Json] | None:
    """The JSON object in a file; None: there is none, whatever the bytes are."""
    if len(data) > LONGEST_JSON:
        return None
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def write_object(value: Mapping[str, Json]) -> bytes:
    """The file of a JSON object: two-space JSON and a final newline."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # half a character has no UTF-8; its escape in Python is its escape in JSON too (RFC 8259 §7)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def merged(
    old: Mapping[str, Json], new: Mapping[str, Json], aliases: Mapping[str, str] | None = None
) -> dict[str, Json]:
    """The new values under the keys and in the order of the old file, unknown keys kept, new keys at the end."""
    standing = {name: alias for name, alias in (aliases or {}).items() if name not in old and alias in old}
    named = {standing.get(name, name): value for name, value in new.items()}
    return {**old, **named}


def moment(value: Json) -> datetime | None:
    """The time that a JSON value says, in UTC; None: it says none."""
    if not isinstance(value, str):
        return None
    try:
        return read_time(value)
    except (NotPravda, OverflowError):
        return None


def moment_text(when: datetime | None, standing: Json = None) -> str | None:
    """A time in UTC with milliseconds and Z; the standing text where it says the same."""
    if when is None:
        return None
    return standing if isinstance(standing, str) and moment(standing) == when else time_text(when)


def whole_milliseconds(when: datetime) -> datetime:
    """The time as a file can say it."""
    return when.astimezone(UTC).replace(microsecond=when.microsecond // 1000 * 1000)


def text_or_none(value: Json) -> str | None:
    """A JSON value where it is a text with something in it."""
    return value if isinstance(value, str) and value.strip() else None


def count_or_none(value: Json) -> int | None:
    """A JSON value where it is a whole number of things."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("too large a number to be written again")
    return number
