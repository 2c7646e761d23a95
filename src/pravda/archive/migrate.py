"""The catalog's schema, brought up to date by whoever opens it first."""

import secrets
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from pravda.archive.connections import transaction
from pravda.archive.statements import migrations, named
from pravda.errors import ArchiveUnavailable

APPLICATION = 0x50525644
"""SQLite's `application_id`: "PRVD", so that no other program's database is taken for a catalog."""
SECRET_BYTES = 32

_MIGRATIONS = migrations()
_SQL = named("catalog.sql")
FORMAT = len(_MIGRATIONS)
"""The newest schema this code knows; SQLite's `user_version`."""


def migrate(connection: sqlite3.Connection, catalog: Path) -> None:
    """Bring a new or older catalog to FORMAT in one transaction; raises ArchiveUnavailable, sqlite3.Error."""
    if _known(connection, catalog) == FORMAT:
        return
    with transaction(connection):
        # again, since another process may have been faster
        found = _known(connection, catalog)
        for script in _MIGRATIONS[found:]:
            for statement in script:
                connection.execute(statement)
        if found == 0:
            _describe(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def refuse_older(connection: sqlite3.Connection, catalog: Path) -> None:
    """For a catalog that cannot be written: raises ArchiveUnavailable unless its format is this code's."""
    found = _known(connection, catalog)
    if found < FORMAT:
        raise ArchiveUnavailable(
            f"The catalog {catalog} has format {found} and must be brought to {FORMAT}, but it may not be written: "
            "open it once as a user who may write to its folder."
        )


def _known(connection: sqlite3.Connection, catalog: Path) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != APPLICATION and (tables or version):
        raise ArchiveUnavailable(
            f"{catalog} is another program's database: move it away, or set PRAVDA_HOME to another folder."
        )
    if version > FORMAT:
        raise ArchiveUnavailable(
            f"The catalog {catalog} has format {version}, and this version of Pravda reads up to {FORMAT}: "
            "use a newer Pravda."
        )
    return version


def _describe(connection: sqlite3.Connection) -> None:
    facts: dict[str, bytes | str | int] = {
        "secret": secrets.token_bytes(SECRET_BYTES),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "format": FORMAT,
        "stored_bytes": 0,
    }
    connection.executemany(
        _SQL["insert_meta"], [{"name": name, "value": value} for name, value in facts.items()]
    )
