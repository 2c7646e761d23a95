"""SQL by name, out of the .sql files beside this code."""

import re
import sqlite3
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def named(file: str) -> dict[str, str]:
    """The statements of one file in `sql`, by the name above each."""
    text = files("pravda.archive").joinpath("sql", file).read_text("utf-8")
    _, *parts = _NAME.split(text)
    return {name: sql.strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}


def migrations() -> tuple[tuple[str, ...], ...]:
    """The statements of each migration, oldest first."""
    folder = files("pravda.archive").joinpath("migrations")
    scripts = sorted((item.name, item) for item in folder.iterdir() if item.name.endswith(".sql"))
    return tuple(_split(item.read_text("utf-8")) for _, item in scripts)


def _split(script: str) -> tuple[str, ...]:
    """Single statements: `executescript` would commit between them, and a migration is one transaction."""
    found: list[str] = []
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement.strip())
            statement = ""
    return tuple(found)
