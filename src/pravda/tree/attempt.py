"""What an attempt means for a tree: what may be sent, what is to be stored, when to ask again. No I/O."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pravda.core.charset import detect
from pravda.core.evidence import Evidence, Note, Phase
from pravda.core.headers import after_not_modified
from pravda.core.outcome import Failure, Mark, Verdict
from pravda.core.ports import Held
from pravda.core.rules import Previous, Rules, Subject, count_matches, evaluate
from pravda.core.states import FACTS, Cause, FaultSide, Reason, State
from pravda.core.text import Page
from pravda.core.urls import BadURL, parse, redact
from pravda.tree.files import StoredPage
from pravda.tree.layout import whole_milliseconds
from pravda.tree.meta import Meta
from pravda.tree.results import Outcome
from pravda.tree.sources import Source
from pravda.tree.state import SourceState, next_due

_TYPES: Final = {
    "html": "text/html",
    "json": "application/json",
    "csv": "text/csv",
    "xml": "application/xml",
    "txt": "text/plain",
    "pdf": "application/pdf",
}
_LONGEST_HEADER, _LONGEST_NOTE = 80, 500  # characters
_CHARSET_HEAD = 65_536  # bytes in which a byte order mark or a declaration is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a parser made of a page."""

    items: int | None
    """None: it was not counted, since something broke."""
    problem: str | None = None
    """Why it rejects the page; None: it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """A stored page that is intact, comes from the source's URL and passes today's rules."""

    meta: Meta
    subject: Subject

    def held(self, source: Source) -> Held | None:
        """The validators that may be sent; None: there are none."""
        if not self.meta.validators:
            return None
        return Held(url=self.meta.final_url or source.request.url.page, validators=self.meta.validators)

    def previous(self, expect: Rules) -> Previous | None:
        """What `max_drop` compares a new page with; None: nothing asks for it."""
        if expect.max_drop is None:
            return None
        return Previous(bytes=self.subject.size, matches=count_matches(expect, self.subject.page))


def usable(source: Source, stored: StoredPage) -> Usable | None:
    """The stored page as far as a request may rest on it; None: the page must be had anew."""
    meta, body = stored.meta, stored.body
    if meta is None or body is None or not stored.intact or not _is_of(source, meta):
        return None
    expect = source.request.expect
    page = Page(
        body,
        content_type=_content_type(source, expect),
        charset=meta.charset,
        final_url=meta.came_from,
        whole=True,
    )
    subject = Subject(page=page, size=len(body), final_url=meta.came_from)
    passes = all(check.passed for check in evaluate(expect, subject, None, drop=False))
    return Usable(meta=meta, subject=subject) if passes else None


def parser_verdict(verdict: Verdict, parsed: Parsed, min_items: int) -> Verdict:
    """The verdict once the parser has spoken."""
    problem = parsed.problem
    if problem is None and (parsed.items or 0) < min_items:
        problem = f"{parsed.items or 0} items, at least {min_items} are demanded"
    if problem is None:
        return verdict
    facts, said = FACTS[Reason.PARSER_REJECTED], printable(problem)
    failure = Failure(
        cause=facts.cause,
        reason=Reason.PARSER_REJECTED,
        fault=facts.fault,
        phase=Phase.CHECK,
        detail=f"{facts.sentence} {said}",
        evidence=(Mark(where="parser", matched=said[:200]),),
    )
    return replace(verdict, state=facts.state, failure=failure)


def unstored_verdict(verdict: Verdict, reason: Reason, detail: str) -> Verdict:
    """The verdict when an accepted page could not be stored."""
    facts = FACTS[reason]
    failure = Failure(
        cause=facts.cause, reason=reason, fault=facts.fault, phase=Phase.STORE, detail=printable(detail)
    )
    return replace(verdict, state=facts.state_when(headers=True), failure=failure)


def outcome_of_failure(failure: Failure) -> Outcome:
    """How a verdict that is not live is called."""
    if failure.cause is Cause.ROBOTS_DISALLOWED:
        return Outcome.SKIPPED_ROBOTS
    rules_failed = failure.cause is Cause.INVALID_CONTENT and failure.phase is Phase.CHECK
    return Outcome.REJECTED if rules_failed else Outcome.FAILED


def was_asked(evidence: Evidence) -> bool:
    """Whether a request of this attempt went out."""
    heads = (artifact.name == "request" for artifact in evidence.artifacts)
    return evidence.response is not None or bool(evidence.redirects) or any(heads)


def next_meta(source: Source, stored: StoredPage, evidence: Evidence, body: bytes, items: int | None) -> Meta:
    """The metadata after an accepted answer; `body` is what is stored then."""
    at, old = whole_milliseconds(evidence.captured_at), stored.meta
    url = redact(source.url)
    if evidence.is_confirmation:
        assert old is not None  # its validators were sent
        validators = after_not_modified(evidence.sent, evidence.validators, old.validators)
        return replace(old, url=url, validators=validators, last_confirmed_at=at)
    content = evidence.content
    assert content is not None  # an accepted answer has a body
    same = old is not None and old.content_hash == content.sha256
    return Meta(
        source_id=source.id,
        url=url,
        content_hash=content.sha256,
        size=content.bytes,
        charset=charset_of(evidence, body),
        validators=evidence.validators,
        content_changed_at=old.content_changed_at if old and same else at,
        last_confirmed_at=at,
        # without a parser nobody counts anew, but what was counted in these very bytes still holds
        item_count=old.item_count if old and same and source.parser is None else items,
        final_url=None if evidence.final_url == source.request.url.page else evidence.final_url,
        standing=old.standing if old else b"",
    )


def charset_of(evidence: Evidence, body: bytes) -> str:
    """The encoding that is recorded for a body, also where its type is none of text."""
    found = evidence.content.charset if evidence.content else None
    types = evidence.response.values("content-type") if evidence.response else ()
    return (found or detect(body[:_CHARSET_HEAD], types).name).lower()


def is_change(stored: StoredPage, sha256: str) -> bool:
    """Whether bytes with this hash are new content; damaged metadata leaves the stored bytes to compare with."""
    return sha256 != (stored.meta.content_hash if stored.meta else stored.body_hash)


def next_state(
    source: Source, old: SourceState, evidence: Evidence, verdict: Verdict, started: datetime
) -> SourceState:
    """The record after an attempt; the old one where a fault of ours kept it from going out."""
    failure = verdict.failure
    local = failure is not None and failure.fault is FaultSide.LOCAL
    if local and not was_asked(evidence):
        return old
    failures, refusals = _streaks(old, failure)
    status = evidence.response.status if evidence.response else None
    return replace(
        old,
        last_checked_at=whole_milliseconds(started),
        last_status=status,
        state=verdict.state,
        cause=failure.cause if failure else None,
        reason=failure.reason if failure else None,
        failures=failures,
        refusals=refusals,
        next_due_at=next_due(
            whole_milliseconds(started),
            interval=source.interval,
            failures=failures,
            status=status,
            retry_after=failure.retry_after_seconds if failure else None,
            answered=whole_milliseconds(evidence.captured_at),
        ),
    )


def drop_warning(source: Source, old: Meta | None, new: Meta) -> Note | None:
    """Told when far fewer items, or bytes where nobody counts items, were stored than before."""
    if old is None:
        return None
    before, now, what = old.item_count, new.item_count, "items"
    if before is None or now is None:
        before, now, what = old.size, new.size, "bytes"
    if not before or (before - now) / before <= source.warn_drop:
        return None
    return Note(code="drop", detail=f"{now:,} {what}, {before:,} before.")


def note_of(evidence: Evidence, failure: Failure) -> str:
    """One line on what turned us away."""
    response = evidence.response
    said = [failure.detail.rstrip(". ")]
    if response is not None and failure.phase is not Phase.CHECK:
        if str(response.status) not in failure.detail:
            said.append(str(response.status))
        if server := response.value("server"):
            said.append(f"Server: {_ascii(server)}")
        if response.value("cf-ray") is not None:
            said.append("CF-RAY present")
        if wait := response.value("retry-after"):
            said.append(f"Retry-After: {_ascii(wait)}")
    return printable("; ".join(said))


def printable(text: str) -> str:
    """One line without control characters, of bounded length."""
    line = " ".join(text[: 4 * _LONGEST_NOTE].split())
    return "".join(letter for letter in line if letter.isprintable())[:_LONGEST_NOTE]


def state_words(state: State | None, cause: Cause | None) -> str:
    """How a recorded state is told in a note."""
    return "" if state is None else f", last {state}" + (f" ({cause})" if cause else "")


def _ascii(value: str) -> str:
    return "".join(letter for letter in value if " " <= letter <= "~").strip()[:_LONGEST_HEADER]


def _streaks(old: SourceState, failure: Failure | None) -> tuple[int, int]:
    """Failures and refusals in a row; a fault of ours says nothing of the source."""
    if failure is None:
        return 0, 0
    if failure.fault is FaultSide.LOCAL:
        return old.failures, old.refusals
    if failure.cause is Cause.ROBOTS_DISALLOWED:
        return old.failures, old.refusals + 1
    return old.failures + 1, 0


def _is_of(source: Source, meta: Meta) -> bool:
    """Whether the stored page came from where the source points today."""
    if meta.url == redact(source.url):
        return True
    try:
        return parse(meta.url).page == source.request.url.page
    except BadURL:
        return False


def _content_type(source: Source, expect: Rules) -> str | None:
    # The header is not kept in a tree. It was judged when the bytes came; now only bytes that contradict it count.
    named = [name for name in expect.media_type if not name.endswith("/*")]
    return named[0] if named else _TYPES.get(source.extension)
