"""What is said of an attempt, what is kept of it, and what a caller gets back."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from pravda.core.evidence import Evidence, Note, Phase, Validators
from pravda.core.request import TlsMode
from pravda.core.rules import Check, Rules
from pravda.core.states import EXIT_OF_STATE, Cause, Exit, FaultSide, Reason, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One thing that a verdict rests on."""

    where: str
    """"status", "header cf-mitigated", "script text", "body", "rule selector"…"""
    matched: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a page is not live."""

    cause: Cause
    reason: Reason
    fault: FaultSide
    phase: Phase
    detail: str
    evidence: tuple[Mark, ...] = ()
    retry_after_seconds: float | None = None
    raw: str = ""
    """The engine's own words, untouched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The law's judgement of one piece of evidence under one set of rules."""

    state: State
    failure: Failure | None = None
    """None exactly when the state is live."""
    checks: tuple[Check, ...] = ()
    warnings: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What of the request stays with a snapshot."""

    page: str
    """The URL's identity: as the WHATWG serialises it, without fragment and credentials."""
    identity: str
    """Hash of everything that makes two requests the same."""
    capture_id: str
    """The operation this attempt was made for; its attempts share it."""
    key: str | None = None
    expect: Rules = field(default_factory=Rules)
    conditional: bool = False
    tls: TlsMode = TlsMode.VERIFY
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One stored attempt, good or bad."""

    id: str
    """UUIDv7."""
    evidence: Evidence
    verdict: Verdict
    asked: Asked
    validators: Validators = field(default_factory=Validators)
    """Those in force: received with the page, or repeated and renewed by a 304."""
    not_modified: bool = False
    content_from: str | None = None
    """The snapshot whose bytes a 304 confirmed, never itself a 304; None: the bytes are this one's own."""
    content_captured_at: datetime | None = None
    """When the bytes came; None: there are none."""

    @property
    def state(self) -> State:
        """The stored verdict's state."""
        return self.verdict.state

    @property
    def captured_at(self) -> datetime:
        """When the evidence was taken."""
        return self.evidence.captured_at

    @property
    def usable(self) -> bool:
        """Live; the rules of its own request are part of that verdict."""
        return self.verdict.state is State.LIVE

    @property
    def order(self) -> tuple[datetime, str]:
        """Newest is highest."""
        return self.evidence.captured_at, self.id

    def judged(self, verdict: Verdict) -> "Snapshot":
        """The same evidence under another verdict."""
        return replace(self, verdict=verdict)


class Result(StrEnum):
    """How a capture ended."""

    FRESH = "fresh"
    STALE = "stale"
    REUSED = "reused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest usable snapshot, however old."""

    id: str
    captured_at: datetime
    age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a capture gives back; ages in seconds, all from the one clock reading at its start."""

    result: Result
    snapshot: Snapshot | None
    """The evidence to use; None exactly when the result is failed."""
    attempt: Snapshot | None
    """The last attempt; None exactly when the result is reused."""
    attempts: tuple[str, ...] = ()
    age_seconds: float | None = None
    max_stale_age_seconds: float | None = None
    newest_usable: Newest | None = None

    @property
    def stale(self) -> bool:
        """Whether an earlier snapshot stands in for a failed attempt."""
        return self.result is Result.STALE

    @property
    def exit_code(self) -> Exit:
        """What `pravda capture` exits with."""
        if self.result is not Result.FAILED or self.attempt is None or self.attempt.verdict.failure is None:
            return Exit.OK
        return exit_of(self.attempt.verdict.failure, self.attempt.state)

    @property
    def problem(self) -> str:
        """One sentence on why there is no usable snapshot; "" when there is one."""
        if self.result is not Result.FAILED or self.attempt is None or self.attempt.verdict.failure is None:
            return ""
        failure = self.attempt.verdict.failure
        sentence = f"{self.attempt.state}, {failure.reason}: {failure.detail.rstrip('.')}."
        if self.newest_usable is None:
            return f"{sentence} No earlier snapshot is kept that this request may use."
        when = self.newest_usable.captured_at.isoformat(timespec="seconds")
        return f"{sentence} The newest usable snapshot is {self.newest_usable.id}, captured at {when}."


def exit_of(failure: Failure, state: State) -> Exit:
    """The exit code of a failure: our own fault has one code, else the state decides."""
    return Exit.LOCAL_FAULT if failure.fault is FaultSide.LOCAL else EXIT_OF_STATE[state]
