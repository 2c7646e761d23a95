"""The public conformance suites, where they are at hand: they are read from beside the project, never copied."""

import json
from pathlib import Path
from typing import Any

import pytest

SUITES = Path(__file__).resolve().parent.parent.parent / "shared" / "conformance"


def cases(name: str, *tags: str, key: str = "tag") -> list[Any]:
    """The cases of a suite whose `key` is one of the tags, all where none is given; skips where the suite is absent."""
    path = SUITES / name
    if not path.is_file():
        pytest.skip(f"the conformance suite {name} is not beside the project")
    found = [case for case in json.loads(path.read_text("utf-8"))["cases"] if not tags or case[key] in tags]
    assert found, f"no case of {name} carries {tags}"
    return found
