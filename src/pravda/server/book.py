"""Captures that somebody may ask for again: kept with their answers for a day, whatever happens to the process."""

import hmac
import json
from dataclasses import dataclass
from hashlib import sha256

from pravda.core.digest import Json, canonical
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Answer
from pravda.core.wire import answer_to_json
from pravda.server.desk import Outcome, Status, Work
from pravda.server.ledger import Cell, Ledger
from pravda.server.problems import Kind, Problem

_LONGEST_KEY = 255  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A capture as it is written down."""

    id: str
    owner: str
    url: str
    """Without credentials."""
    status: Status
    created_at: float
    """Unix time."""
    ended_at: float | None
    fingerprint: str | None
    """Keyed hash of what was asked; None: there was no Idempotency-Key."""
    http_status: int | None
    """Of the answer; None: there is none."""
    document: dict[str, Json] | None
    """The answer or problem in its JSON form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An Idempotency-Key with what it was sent for."""

    key: str
    fingerprint: str


class Book:
    """Reads and writes records; every method blocks for a moment."""

    def __init__(self, ledger: Ledger, kept_seconds: float) -> None:
        self._ledger, self._kept_seconds = ledger, kept_seconds

    def claim(self, key: str | None, asked: dict[str, object]) -> Claim | None:
        """What an Idempotency-Key stands for; raises BadRequest."""
        if key is None:
            return None
        if not 0 < len(key) <= _LONGEST_KEY or not key.isascii() or not key.isprintable():
            raise BadRequest("Idempotency-Key", f"must be 1 to {_LONGEST_KEY} printable ASCII characters")
        text = canonical(json.loads(json.dumps(asked)))
        return Claim(key=key, fingerprint=hmac.new(self._ledger.secret, text, sha256).hexdigest())

    def begin(self, work: Work, claim: Claim | None, url: str) -> Record | None:
        """Write a capture down; the earlier one, where its Idempotency-Key is taken already."""
        now = work.created_at.timestamp()
        self._ledger.write("forget", before=now - self._kept_seconds)
        fresh = self._ledger.write(
            "insert_capture",
            id=work.id,
            owner=work.owner,
            url=url,
            created_at=now,
            idempotency=claim.key if claim else None,
            fingerprint=claim.fingerprint if claim else None,
        )
        if fresh or claim is None:
            return None
        rows = self._ledger.rows("claimed", owner=work.owner, idempotency=claim.key)
        # between the two statements the earlier one may have let go of the key
        return _record(rows[0]) if rows else self.begin(work, claim, url)

    def end(self, work: Work, http_status: int, now: float) -> None:
        """Write down how a capture ended; a key whose request got no answer may be used again."""
        outcome = work.outcome
        assert outcome is not None
        interrupted = isinstance(outcome, Problem) and outcome.kind is Kind.INTERRUPTED
        self._ledger.write(
            "end_capture",
            id=work.id,
            status=Status.INTERRUPTED if interrupted else Status.FINISHED,
            ended_at=now,
            http_status=http_status,
            document=json.dumps(document_of(outcome)),
            keep=int(isinstance(outcome, Answer)),
        )

    def drop(self, work: Work) -> None:
        """As if the capture had never been asked for."""
        self._ledger.write("drop_capture", id=work.id)

    def find(self, capture_id: str) -> Record | None:
        """A capture by id."""
        rows = self._ledger.rows("capture", id=capture_id)
        return _record(rows[0]) if rows else None

    def interrupt(self, now: float) -> None:
        """Call those interrupted that an earlier process left unfinished."""
        self._ledger.write("interrupt", ended_at=now)


def document_of(outcome: Outcome) -> dict[str, Json]:
    """An answer or a problem in its JSON form."""
    return answer_to_json(outcome) if isinstance(outcome, Answer) else outcome.to_json()


def _record(row: tuple[Cell, ...]) -> Record:
    capture_id, owner, url, status, created_at, ended_at, fingerprint, http_status, document = row
    return Record(
        id=str(capture_id),
        owner=str(owner),
        url=str(url),
        status=Status(str(status)),
        created_at=float(created_at or 0),
        ended_at=None if ended_at is None else float(ended_at),
        fingerprint=None if fingerprint is None else str(fingerprint),
        http_status=http_status if isinstance(http_status, int) else None,
        document=json.loads(str(document)) if document is not None else None,
    )
