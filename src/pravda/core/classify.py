"""The verdict on one piece of evidence: small named rules in a fixed order, the first hit decides."""

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from pravda.core import markers
from pravda.core.charset import CharsetSource, from_content_type
from pravda.core.evidence import Content, Ending, Evidence, Note, Phase, Response
from pravda.core.headers import covers_whole, retry_after
from pravda.core.media import HEAD_BYTES, OCTET_STREAM, essence, satisfies
from pravda.core.outcome import Failure, Mark, Verdict
from pravda.core.rules import Check, Previous, Rules, Subject, evaluate, first_failure
from pravda.core.states import FACTS, Cause, FaultSide, Reason, State
from pravda.core.statuses import phrase, reason_of
from pravda.core.text import NotJSON, Page

_ENDINGS = {
    Ending.CUT: Reason.TRUNCATED_BODY,
    Ending.TIMED_OUT: Reason.BODY_TIMEOUT,
    Ending.TOO_LARGE: Reason.BODY_TOO_LARGE,
    Ending.TRUNCATED_CODING: Reason.TRUNCATED_ENCODING,
    Ending.CORRUPT: Reason.UNDECODABLE,
    Ending.UNSUPPORTED: Reason.UNSUPPORTED_ENCODING,
}
_POSITIVE = frozenset({"selector", "xpath", "json_path", "min_matches", "text_present", "matches"})
"""Rules whose success shows that this is the page the caller means."""

_TEXT_HEAD = 65_536  # bytes in which a wrong guess of the charset shows
_BLANK_BYTES = 1024  # a body of only white space is empty, when it is short enough to look at
_WAITING = frozenset({State.BLOCKED, State.DOWN})
"""States in which a later try may find the page, so that a Retry-After means something."""


_NO_PAGE = Page(b"", content_type=None, charset="utf-8")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Everything a verdict may rest on."""

    evidence: Evidence
    subject: Subject
    """The page; for a 304 the held one it confirms."""
    expect: Rules
    previous: Previous | None
    """What the last usable snapshot had; None: there is none."""
    artifacts: tuple[str, ...]
    """Names the caller cannot do without."""
    judge_drop: bool

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """All rules evaluated, also when something else decides."""
        return evaluate(self.expect, self.subject, self.previous, drop=self.judge_drop)

    @cached_property
    def seen(self) -> markers.Seen:
        """What signatures are looked up in."""
        response = self.evidence.response
        return markers.Seen(
            status=response.status if response else 0,
            headers=response.headers if response else (),
            asked_url=self.evidence.url,
            final_url=self.evidence.final_url,
            # the page that a 304 confirms was judged when it came: only the answer's own headers are new
            page=_NO_PAGE if self.evidence.is_confirmation else self.subject.page,
        )


def subject_of(evidence: Evidence, body: bytes) -> Subject:
    """The evidence's own page; `body` may be only the beginning of a long one."""
    content, response = evidence.content, evidence.response
    size = content.bytes if content else 0
    page = Page(
        body,
        content_type=response.value("content-type") if response else None,
        charset=(content.charset if content else None) or "utf-8",
        final_url=evidence.final_url,
        whole=len(body) >= size,
    )
    return Subject(page=page, size=size, final_url=evidence.final_url)


def classify(
    evidence: Evidence,
    subject: Subject,
    *,
    expect: Rules,
    previous: Previous | None = None,
    artifacts: tuple[str, ...] = (),
    judge_drop: bool = True,
) -> Verdict:
    """The verdict on evidence under the caller's rules."""
    case = Case(
        evidence=evidence,
        subject=subject,
        expect=expect,
        previous=previous,
        artifacts=artifacts,
        judge_drop=judge_drop,
    )
    failure = next((found for rule in _ORDER if (found := rule(case))), None)
    headers = evidence.response is not None
    state = FACTS[failure.reason].state_when(headers=headers) if failure else State.LIVE
    judged = evidence.response is not None and (evidence.content is not None or case.evidence.is_confirmation)
    return Verdict(
        state=state,
        failure=failure,
        checks=case.checks if judged else (),
        warnings=_warnings(case),
    )


def _fail(
    case: Case,
    reason: Reason,
    detail: str,
    *marks: Mark,
    phase: Phase = Phase.RESPONSE,
    raw: str = "",
) -> Failure:
    facts = FACTS[reason]
    return Failure(
        cause=facts.cause,
        reason=reason,
        fault=facts.fault,
        phase=phase,
        detail=detail,
        evidence=marks,
        retry_after_seconds=_retry_after(case, reason),
        raw=raw,
    )


def _retry_after(case: Case, reason: Reason) -> float | None:
    """What the server says of a later try, where it is the server that turns us away for now."""
    facts, response = FACTS[reason], case.evidence.response
    temporary = facts.state in _WAITING or reason is Reason.CLIENT_ERROR  # RFC 9110 §15.5.14: 413 too
    if response is None or facts.fault is FaultSide.LOCAL or not temporary:
        return None
    return retry_after(response.value("retry-after"), case.evidence.captured_at)


def _of_trouble(case: Case, reason: Reason) -> Failure:
    trouble = case.evidence.trouble
    assert trouble is not None
    mark = Mark(where=f"engine {case.evidence.engine}", matched=(trouble.raw or trouble.detail)[:200])
    return _fail(case, reason, trouble.detail, mark, phase=trouble.phase, raw=trouble.raw)


def _local_fault(case: Case) -> Failure | None:
    trouble = case.evidence.trouble
    if trouble is None or FACTS[trouble.reason].fault is FaultSide.SOURCE:
        return None
    return _of_trouble(case, trouble.reason)


def _redirect(case: Case) -> Failure | None:
    """A redirect that could not be followed: there is no final response to judge."""
    trouble, response = case.evidence.trouble, case.evidence.response
    if trouble is None or FACTS[trouble.reason].cause not in (Cause.REDIRECT_ERROR, Cause.ROBOTS_DISALLOWED):
        return None
    if response is not None and response.status // 100 != 3:
        return None
    return _of_trouble(case, trouble.reason)


def _no_response(case: Case) -> Failure | None:
    if case.evidence.response is not None:
        return None
    trouble = case.evidence.trouble
    if trouble is None:
        return _fail(case, Reason.EMPTY_RESPONSE, "The engine saw neither a response nor a fault.")
    facts = FACTS[trouble.reason]
    if facts.state is State.DOWN or facts.cause is Cause.TLS_FAILURE:
        return _of_trouble(case, trouble.reason)
    return _of_trouble(
        case, Reason.RESPONSE_TIMEOUT if facts.cause is Cause.TIMEOUT else Reason.EMPTY_RESPONSE
    )


def _decisive_marker(case: Case) -> Failure | None:
    findings = markers.decisive(case.seen)
    return _found(case, findings) if findings else None


def _found(case: Case, findings: tuple[markers.Finding, ...]) -> Failure:
    first = findings[0]
    marks = tuple(
        Mark(where=found.where, matched=found.matched) for found in findings if found.reason is first.reason
    )
    detail = f"{FACTS[first.reason].sentence.removesuffix('.')} ({first.signature})."
    return _fail(case, first.reason, detail, *marks)


def _status(case: Case) -> Failure | None:
    response = _response(case)
    mark = Mark(where="status", matched=str(response.status))
    reason = _status_reason(response, case)
    if reason is None:
        return None
    return _fail(case, reason, _status_words(response.status, reason), mark)


def _status_words(status: int, reason: Reason) -> str:
    words = phrase(status)
    match reason:
        case Reason.UNEXPECTED_NOT_MODIFIED:
            return f"{words}, although no validators were sent"
        case Reason.REDIRECT_UNRESOLVED:
            return f"{words} without a target that could be followed"
        case Reason.EMPTY_RESPONSE:
            return f"{words}, and then no final answer"
    # a code that few know says nothing by itself
    return words if words != str(status) else f"{words}: {FACTS[reason].sentence}"


def _status_reason(response: Response, case: Case) -> Reason | None:
    given = case.evidence.asked_headers
    if response.status == 304:
        return None if case.evidence.sent else Reason.UNEXPECTED_NOT_MODIFIED
    if response.status == 206:
        whole = "range" in given or covers_whole(response.value("content-range"))
        return None if whole else Reason.PARTIAL_CONTENT
    return reason_of(response.status, accept_given="accept" in given)


def _response(case: Case) -> Response:
    response = case.evidence.response
    assert response is not None  # the rules before have decided otherwise
    return response


def _integrity(case: Case) -> Failure | None:
    content, trouble = case.evidence.content, case.evidence.trouble
    if content is not None and content.ending is not Ending.COMPLETE:
        reason = _ENDINGS[content.ending]
        declared = "" if content.declared_bytes is None else f" of {content.declared_bytes:,} declared"
        detail = f"{FACTS[reason].sentence} {content.wire_bytes:,} bytes came{declared}."
        mark = Mark(where="body", matched=content.ending.value)
        raw = trouble.raw if trouble else ""
        return _fail(case, reason, detail, mark, phase=Phase.BODY, raw=raw)
    return None if trouble is None else _of_trouble(case, _after_headers(trouble.reason))


def _after_headers(reason: Reason) -> Reason:
    """What a trouble means once the response headers were complete: what came is evidence, but not all of it."""
    facts = FACTS[reason]
    if facts.state in (State.PARTIAL, State.BLOCKED):
        return reason
    return Reason.BODY_TIMEOUT if facts.cause is Cause.TIMEOUT else Reason.TRUNCATED_BODY


def _empty(case: Case) -> Failure | None:
    size, page = case.subject.size, case.subject.page
    blank = size <= _BLANK_BYTES and page.whole and not page.text.strip()
    if case.evidence.is_confirmation or not blank:
        return None
    nothing = f"{size:,} bytes of white space" if size else "an empty body"
    return _fail(
        case,
        Reason.EMPTY_CONTENT,
        f"{phrase(_response(case).status)} with {nothing}.",
        Mark(where="body", matched=f"{size} bytes"),
        phase=Phase.BODY,
    )


def _callers_rules(case: Case) -> Failure | None:
    failed = first_failure(case.checks)
    if failed is None:
        return None
    expected = f"{failed.expected!s:.120}"
    found = "nothing" if failed.found is None else f"{failed.found!s:.120}"
    mark = Mark(where=f"rule {failed.rule}", matched=found)
    reason = Reason(failed.reason)
    detail = f"{FACTS[reason].sentence} The rule {failed.rule} demands {expected}; found: {found}."
    return _fail(case, reason, detail, mark, phase=Phase.CHECK)


def _weak_finding(case: Case) -> Failure | None:
    if case.evidence.is_confirmation or any(
        check.passed and check.rule in _POSITIVE for check in case.checks
    ):
        return None
    findings = markers.weak(case.seen)
    return _found(case, findings) if findings else None


def _artifacts(case: Case) -> Failure | None:
    kept = {artifact.name for artifact in case.evidence.artifacts}
    if "body" in kept:
        kept.add("payload")  # without a content coding the body is the payload
    if case.evidence.is_confirmation:
        kept |= {"body", "payload"}  # those of the snapshot that the 304 confirms
    missing = [name for name in case.artifacts if name not in kept]
    if not missing:
        return None
    names = ", ".join(missing)
    return _fail(
        case,
        Reason.ARTIFACT_MISSING,
        f"{FACTS[Reason.ARTIFACT_MISSING].sentence} Missing: {names}.",
        Mark(where="artifacts", matched=names),
        phase=Phase.STORE,
    )


_Rule = Callable[[Case], Failure | None]
_ORDER: tuple[_Rule, ...] = (
    _local_fault,
    _redirect,
    _no_response,
    _decisive_marker,
    _status,
    _integrity,
    _empty,
    _callers_rules,
    _weak_finding,
    _artifacts,
)


def _warnings(case: Case) -> tuple[Note, ...]:
    """What is odd about a page without deciding anything."""
    response, content = case.evidence.response, case.evidence.content
    if response is None:
        return ()
    notes: list[Note] = []
    if response.tls and not response.tls.verified:
        why = f" ({response.tls.problem})" if response.tls.problem else ""
        notes.append(
            Note(code="tls_not_verified", detail=f"The certificate was not verified, as asked{why}.")
        )
    if content is None or not content.bytes or case.evidence.is_confirmation:
        return tuple(notes)
    return (
        *notes,
        *_about_type(response, case.subject.page),
        *_about_text(response, content, case.subject.page),
    )


def _about_type(response: Response, page: Page) -> Iterator[Note]:
    claimed = essence(response.value("content-type"))
    if claimed and claimed != OCTET_STREAM and not satisfies(claimed, claimed, page.body[:HEAD_BYTES]):
        detail = f"The header says {claimed:.100}, the bytes are {page.media_type}."
        yield Note(code="media_type_mismatch", detail=detail)
    if page.is_json and page.whole:
        try:
            _ = page.json
        except NotJSON as problem:
            yield Note(code="not_json", detail=f"The page claims to be JSON and is not: {problem!s:.100}.")


def _about_text(response: Response, content: Content, page: Page) -> Iterator[Note]:
    declared = from_content_type(response.values("content-type"))
    if declared and content.charset and declared != content.charset:
        detail = f"The header says {declared}, the bytes are {content.charset}."
        yield Note(code="charset_mismatch", detail=detail)
    if content.charset_from == CharsetSource.DEFAULT and not _is_utf8(page.body[:_TEXT_HEAD]):
        detail = f"No charset is declared, and the bytes are not {content.charset}, which is assumed."
        yield Note(code="charset_undeclared", detail=detail)


def _is_utf8(head: bytes) -> bool:
    """Whether the beginning of a page can be UTF-8; a character cut off at its end does not count against it."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True
