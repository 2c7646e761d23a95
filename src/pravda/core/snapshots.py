"""How a snapshot is made from what was seen, asked and judged, and what two of them share."""

from dataclasses import replace

from pravda.core.classify import classify, subject_of
from pravda.core.evidence import Evidence, Phase, Trouble
from pravda.core.headers import after_not_modified
from pravda.core.outcome import Asked, Snapshot, Verdict
from pravda.core.ports import Held
from pravda.core.request import Request
from pravda.core.rules import Rules
from pravda.core.states import Reason

_BODIES = frozenset({"body", "payload"})
"""What a 304 has none of: they are those of the snapshot that it confirms."""


def asked_of(request: Request, identity: str, capture_id: str) -> Asked:
    """What of a request stays with its snapshots."""
    return Asked(
        page=request.url.page,
        identity=identity,
        capture_id=capture_id,
        key=request.key,
        expect=request.expect,
        conditional=request.conditional,
        tls=request.tls,
        artifacts=request.artifacts,
    )


def make(
    snapshot_id: str, evidence: Evidence, verdict: Verdict, asked: Asked, confirmed: Snapshot | None
) -> Snapshot:
    """The snapshot of an attempt; `confirmed` is the page that a 304 confirmed, None for any other answer."""
    if confirmed is None:
        return Snapshot(
            id=snapshot_id,
            evidence=evidence,
            verdict=verdict,
            asked=asked,
            validators=evidence.validators,
            content_captured_at=evidence.captured_at if evidence.content else None,
        )
    return Snapshot(
        id=snapshot_id,
        evidence=evidence,
        verdict=verdict,
        asked=asked,
        validators=after_not_modified(evidence.sent, evidence.validators, confirmed.validators),
        not_modified=True,
        content_from=confirmed.content_from or confirmed.id,  # never a chain
        content_captured_at=confirmed.content_captured_at,
    )


def confirming(evidence: Evidence, held: Snapshot) -> Evidence:
    """A 304's evidence: its own heads, and the content it confirms instead of an empty body."""
    own = tuple(artifact for artifact in evidence.artifacts if artifact.name not in _BODIES)
    return replace(evidence, content=held.evidence.content, artifacts=own)


def without_bytes(snapshot: Snapshot, reason: Reason, detail: str, raw: str) -> Snapshot:
    """The snapshot that can still be kept when its bodies cannot be written: facts and heads."""
    heads = tuple(
        artifact
        for artifact in snapshot.evidence.artifacts
        if not artifact.name.endswith(("body", "payload", "certificates"))
    )
    trouble = Trouble(reason=reason, phase=Phase.STORE, detail=detail, raw=raw[:500])
    evidence = replace(snapshot.evidence, trouble=trouble, artifacts=heads)
    verdict = classify(evidence, subject_of(evidence, b""), expect=Rules())
    return replace(snapshot, evidence=evidence, verdict=verdict)


def held_by(snapshot: Snapshot) -> Held | None:
    """What a conditional request may say of a held page; None: it came without validators."""
    if not snapshot.validators:
        return None
    return Held(url=snapshot.evidence.final_url, validators=snapshot.validators)


def has_artifacts(snapshot: Snapshot, holder: Snapshot, wanted: tuple[str, ...]) -> bool:
    """Whether a snapshot, with the one that holds its bytes, has every artifact that is asked for."""
    # without a content coding the body is the payload
    return set(wanted) - {"payload"} <= _names(snapshot) | _names(holder)


def alike(snapshot: Snapshot) -> object:
    """A value that is equal for snapshots whose usability is the same."""
    content, response = snapshot.evidence.content, snapshot.evidence.response
    return (
        content and content.sha256,
        response and response.value("content-type"),
        snapshot.evidence.final_url,
        snapshot.asked.tls,
        _names(snapshot),
    )


def _names(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(artifact.name for artifact in snapshot.evidence.artifacts)
