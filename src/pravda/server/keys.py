"""API keys: who may do what until when. Only hashes of them are kept."""

import hmac
import secrets
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from pravda.core.digest import sha256
from pravda.core.mistake import BadRequest
from pravda.errors import NotFound
from pravda.server.ledger import Cell, Ledger

PREFIX = "pravda"
_ID_BYTES = 6
_SECRET_BYTES = 32  # so many that a plain hash cannot be searched through
_NO_HASH = "0" * 64


class Scope(StrEnum):
    """What a key allows."""

    READ = "read"
    """Look at what is kept."""
    CAPTURE = "capture"
    """Have pages captured, and follow one's own captures."""
    ADMIN = "admin"
    """Everything, captures of other keys and the metrics among it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key, without its secret."""

    id: str
    """Public; stands in logs."""
    name: str
    """What its maker calls it."""
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    """None: never."""
    revoked_at: datetime | None = None
    per_minute: int | None = None
    """Requests; None: as the service says."""

    def is_valid(self, now: datetime) -> bool:
        """Whether it opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def allows(self, scope: Scope) -> bool:
        """Whether it is enough for a scope."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


class Keys:
    """The keys of one service."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def add(
        self,
        name: str,
        scopes: frozenset[Scope],
        now: datetime,
        *,
        expires_at: datetime | None = None,
        per_minute: int | None = None,
    ) -> tuple[Key, str]:
        """A new key and its token, which is told this once; raises BadRequest."""
        if not name.strip() or len(name) > 100 or not name.isprintable():
            raise BadRequest("name", "must be 1 to 100 printable characters")
        if not scopes:
            raise BadRequest("scope", f"must be one of {', '.join(Scope)}")
        if expires_at is not None and expires_at <= now:
            raise BadRequest("expires", "must lie in the future")
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        key = Key(
            id=secrets.token_hex(_ID_BYTES),
            name=name,
            scopes=scopes,
            created_at=now,
            expires_at=expires_at,
            per_minute=per_minute,
        )
        self._ledger.write(
            "insert_key",
            id=key.id,
            name=key.name,
            hash=sha256(secret.encode()),
            scopes=" ".join(sorted(scopes)),
            created_at=key.created_at.isoformat(),
            expires_at=expires_at.isoformat() if expires_at else None,
            per_minute=per_minute,
        )
        return key, f"{PREFIX}_{key.id}_{secret}"

    def all(self) -> tuple[Key, ...]:
        """Every key there ever was, oldest first."""
        return tuple(_key(row) for row in self._ledger.rows("keys"))

    def revoke(self, key_id: str, now: datetime) -> Key:
        """Close a key for ever; a second time changes nothing. Raises NotFound."""
        found = next((key for key in self.all() if key.id == key_id), None)
        if found is None:
            raise NotFound(f"there is no key {key_id[:60]!r}")
        if found.revoked_at is None:
            self._ledger.write("revoke_key", id=key_id, revoked_at=now.isoformat())
            found = replace(found, revoked_at=now)
        return found

    def are_demanded(self) -> bool:
        """Whether callers need one: as soon as there was any, so that revoking the last opens nothing."""
        return bool(self._ledger.rows("any_key"))

    def find(self, token: str, now: datetime) -> Key | None:
        """The valid key of a token, in a time that does not tell how much of it was right."""
        _, _, rest = token.partition("_")
        key_id, _, secret = rest.partition("_")
        rows = self._ledger.rows("key", id=key_id)
        kept = str(rows[0][1]) if rows else _NO_HASH
        right = hmac.compare_digest(kept, sha256(secret.encode("utf-8", "surrogateescape")))
        if not right or not rows or not token.startswith(f"{PREFIX}_"):
            return None
        key = _key(rows[0])
        return key if key.is_valid(now) else None


def _key(row: tuple[Cell, ...]) -> Key:
    key_id, _, name, scopes, created_at, expires_at, revoked_at, per_minute = row
    return Key(
        id=str(key_id),
        name=str(name),
        scopes=frozenset(Scope(word) for word in str(scopes).split()),
        created_at=datetime.fromisoformat(str(created_at)),
        expires_at=_moment(expires_at),
        revoked_at=_moment(revoked_at),
        per_minute=per_minute if isinstance(per_minute, int) else None,
    )


def _moment(cell: Cell) -> datetime | None:
    return datetime.fromisoformat(cell) if isinstance(cell, str) else None
