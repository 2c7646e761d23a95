"""What a refresh came to, per source and as a whole."""

from dataclasses import dataclass
from enum import StrEnum

from pravda.core.digest import Json
from pravda.core.evidence import Note
from pravda.core.states import Cause, FaultSide, Reason, State
from pravda.tree.state import SourceState


class Outcome(StrEnum):
    """What became of one source in one run."""

    FETCHED = "fetched"
    """New content is stored."""
    UNCHANGED = "unchanged"
    """The source confirmed the stored content, by a 304 or by the same bytes."""
    REJECTED = "rejected"
    """A page came, but not one that the rules or the parser take."""
    FAILED = "failed"
    SKIPPED_INTERVAL = "skipped_interval"
    SKIPPED_SPACING = "skipped_spacing"
    """The host wants a longer pause than a run waits for."""
    SKIPPED_ROBOTS = "skipped_robots"
    PLANNED = "planned"
    """A dry run would have asked."""


LOST = frozenset({Outcome.FAILED, Outcome.REJECTED, Outcome.SKIPPED_ROBOTS})
"""Outcomes that, were there no other, make a run a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceResult:
    """What became of one source."""

    source_id: str
    outcome: Outcome
    record: SourceState
    """As it is after the run, with the streaks."""
    state: State | None = None
    """Of this attempt, of the last one where none was made; None: there never was one, or it was no page's doing."""
    cause: Cause | None = None
    reason: Reason | None = None
    fault: FaultSide | None = None
    """Whose trouble it was; None: there was none."""
    status: int | None = None
    """HTTP status; None: no answer came."""
    items: int | None = None
    """What the parser found, in the stored page for a 304; None: nobody counted."""
    note: str = ""
    """One printable line on what happened."""
    asked: bool = False
    """Whether a request for the page went out."""
    forced: bool = False
    """Whether it was asked although it was not due."""
    assumed_robots: bool = False
    """Whether robots.txt could not be read and leave was assumed by the sources file."""
    proxied: bool = False
    """Whether it was asked through the host's own proxy."""
    written: tuple[str, ...] = ()
    """Tracked files written, by name in the snapshots folder."""
    confirms: bool = False
    """Whether they changed in nothing but the time of confirmation."""
    warnings: tuple[Note, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """The result in the report."""
        return {
            "sourceId": self.source_id,
            "result": self.outcome,
            "state": self.state,
            "cause": self.cause,
            "reason": self.reason,
            "status": self.status,
            "items": self.items,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a whole run came to."""

    results: tuple[SourceResult, ...]
    """In the order of the sources file."""
    warnings: tuple[Note, ...] = ()
    """Of the run itself; those of sources stand with them."""

    @property
    def changed(self) -> int:
        """Sources with new content."""
        return self._count(Outcome.FETCHED)

    @property
    def confirmed(self) -> int:
        """Sources that confirmed what is stored."""
        return self._count(Outcome.UNCHANGED)

    @property
    def attempted(self) -> int:
        """Sources that were asked."""
        return sum(result.asked for result in self.results)

    @property
    def dirty(self) -> bool:
        """Whether any tracked file was written."""
        return bool(self.written)

    @property
    def confirms_only(self) -> bool:
        """Whether tracked files were written and say nothing new but the time of confirmation."""
        return self.dirty and all(result.confirms for result in self.results if result.written)

    @property
    def written(self) -> tuple[str, ...]:
        """Tracked files written, by name in the snapshots folder."""
        return tuple(name for result in self.results for name in result.written)

    @property
    def broken(self) -> tuple[str, ...]:
        """Sources that have failed three times in a row or more, also those that were skipped."""
        return tuple(result.source_id for result in self.results if result.record.broken)

    @property
    def refused(self) -> tuple[str, ...]:
        """Sources that robots.txt does not allow, also those that were skipped."""
        return tuple(result.source_id for result in self.results if result.record.refusals)

    @property
    def forced(self) -> tuple[str, ...]:
        """Sources asked although they were not due."""
        return tuple(result.source_id for result in self.results if result.forced)

    @property
    def assumed_robots(self) -> tuple[str, ...]:
        """Sources asked although robots.txt could not be read."""
        return tuple(result.source_id for result in self.results if result.assumed_robots)

    @property
    def proxied(self) -> tuple[str, ...]:
        """Sources asked through a proxy of their host."""
        return tuple(result.source_id for result in self.results if result.proxied)

    @property
    def hard_failure(self) -> bool:
        """Whether every selected source failed or was refused."""
        return bool(self.results) and all(result.outcome in LOST for result in self.results)

    @property
    def exit_code(self) -> int:
        """What `pravda refresh` exits with, the build left aside."""
        return 1 if self.hard_failure else 0

    def all_warnings(self) -> tuple[tuple[str | None, Note], ...]:
        """Every warning with the source it is about; None: the run."""
        own: tuple[tuple[str | None, Note], ...] = tuple((None, note) for note in self.warnings)
        return own + tuple((result.source_id, note) for result in self.results for note in result.warnings)

    def to_json(self) -> dict[str, Json]:
        """The report of `--json`."""
        return {
            "results": [result.to_json() for result in self.results],
            "changed": self.changed,
            "attempted": self.attempted,
            "confirmed": self.confirmed,
            "dirty": self.dirty,
            "broken": list(self.broken),
            "refused": list(self.refused),
            "forced": list(self.forced),
            "assumedRobots": list(self.assumed_robots),
            "warnings": [
                {"sourceId": source_id, "code": note.code, "detail": note.detail}
                for source_id, note in self.all_warnings()
            ],
            "hardFailure": self.hard_failure,
        }

    def _count(self, outcome: Outcome) -> int:
        return sum(result.outcome is outcome for result in self.results)
