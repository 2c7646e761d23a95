"""Items as parsers give them, made JSON values."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Final
from uuid import UUID

from pravda.parsing.values import Item, Json

DEEPEST: Final = 40
"""Levels of lists and objects in one item."""

_LARGEST: Final = 10**1000  # far below the length at which Python refuses to write an integer


class NotPlain(ValueError):
    """A value that JSON has no form for; the message names the place."""


def plain_item(value: object, path: str) -> Item:
    """An item as a JSON object; raises NotPlain."""
    if type(value) is dict and all(map(_is_plain, value, value.values())):
        return value
    found = _plain(value, path, 0)
    if not isinstance(found, dict):
        raise NotPlain(f"{path} is {_kind(value)}; an item is a dict, a dataclass or a pydantic model")
    return found


def _is_plain(key: object, value: object) -> bool:
    """Whether an entry is a JSON object's as it stands, told fast: it is so for nearly all."""
    return type(key) is str and (type(value) is str or value is None)


def _plain(value: object, path: str, depth: int) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value.value if isinstance(value, Enum) else value)
    if isinstance(value, int | float):
        return _number(value, path)
    if depth > DEEPEST:
        raise NotPlain(f"{path[:200]} is nested too deep")
    if isinstance(value, Mapping):
        return {_key(key, path): _plain(part, f"{path}.{key}", depth + 1) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, f"{path}[{place}]", depth + 1) for place, part in enumerate(value)]
    return _object(value, path, depth)


def _object(value: object, path: str, depth: int) -> Json:
    """What is neither a text, a number, a mapping nor a list."""
    if isinstance(value, Enum):
        return _plain(value.value, path, depth + 1)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: _plain(getattr(value, item.name), f"{path}.{item.name}", depth + 1)
            for item in fields(value)
        }
    # pydantic is asked by the name of its method, so that a tree without models does not pay for its import
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return _plain(dump(mode="json"), path, depth + 1)
    raise NotPlain(f"{path[:200]} is {_kind(value)}, which JSON has no form for")


def _number(value: int | float, path: str) -> int | float:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotPlain(f"{path[:200]} is {value}, which JSON has no form for")
        return float(value)
    if abs(value) >= _LARGEST:
        raise NotPlain(f"{path[:200]} is a number of more than a thousand digits")
    return int(value)


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise NotPlain(f"{path[:200]} has {_kind(key)} for a key; keys are texts")
    return str(key.value) if isinstance(key, Enum) else key


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__:.80}"
