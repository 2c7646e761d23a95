"""Every attempt of a refresh, kept in an archive as a capture would be."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from pravda.core.digest import identity
from pravda.core.evidence import Evidence
from pravda.core.headers import after_not_modified
from pravda.core.outcome import Asked, Snapshot
from pravda.core.ports import Archive, Engine, Held, Observed, Order, Query
from pravda.core.request import Request
from pravda.core.states import State
from pravda.errors import Damaged
from pravda.tree.run import Attempt


class Keeper:
    """Makes snapshots of a refresh's attempts."""

    def __init__(self, archive: Archive, new_id: Callable[[], str]) -> None:
        self._archive, self._new_id = archive, new_id

    async def __call__(self, attempt: Attempt) -> None:
        """Keep one attempt; raises Damaged, StorageTrouble and ArchiveUnavailable."""
        evidence, verdict = attempt.observed.evidence, attempt.verdict
        assert verdict is not None  # no keeper is handed an attempt that was not judged
        validators, holder = evidence.validators, None
        if evidence.is_confirmation:
            held = Held(url=evidence.final_url, validators=evidence.sent)
            holder = await self.holder(attempt.request, held)
            if holder is None:
                raise Damaged("the page that a 304 confirmed is no longer in the archive")
            validators = after_not_modified(evidence.sent, validators, holder.validators)
            evidence = _pointing(evidence, holder)
        snapshot = Snapshot(
            id=self._new_id(),
            evidence=evidence,
            verdict=verdict,
            asked=self._asked(attempt.request),
            validators=validators,
            not_modified=holder is not None,
            content_from=(holder.content_from or holder.id) if holder else None,
            content_captured_at=_content_time(evidence, holder),
        )
        contents = attempt.observed.contents
        await self._archive.keep(
            snapshot, {artifact.name: contents[artifact.name] for artifact in evidence.artifacts}
        )

    async def holder(self, request: Request, held: Held) -> Snapshot | None:
        """The newest live snapshot, if it came with these validators and its bytes can be read."""
        query = Query(identity=identity(request, self._archive.secret), state=State.LIVE, limit=1)
        found = await self._archive.find(query)
        if not found or found[0].validators != held.validators or found[0].evidence.final_url != held.url:
            return None
        source = found[0].content_from
        holder = await self._archive.get(source) if source else found[0]
        try:
            readable = holder is not None and await self._archive.read(holder, "body", 0) is not None
        except Damaged:
            return None
        return found[0] if readable else None

    def _asked(self, request: Request) -> Asked:
        return Asked(
            page=request.url.page,
            identity=identity(request, self._archive.secret),
            capture_id=self._new_id(),
            key=request.key,
            expect=request.expect,
            conditional=request.conditional,
            tls=request.tls,
            artifacts=request.artifacts,
        )


class KeptEngine:
    """An engine that sends validators only where the archive, too, holds what they speak of.

    A 304 would else be kept as a page without bytes.
    """

    def __init__(self, inner: Engine, keeper: Keeper) -> None:
        self.name = inner.name
        self._inner, self._keeper = inner, keeper

    async def observe(self, order: Order) -> Observed:
        """One attempt."""
        if order.held and not await self._keeper.holder(order.request, order.held):
            order = replace(order, held=None)
        return await self._inner.observe(order)

    async def close(self) -> None:
        """Close the inner engine."""
        await self._inner.close()


def _pointing(evidence: Evidence, holder: Snapshot) -> Evidence:
    """A 304's evidence: its own heads, and the content it confirms instead of an empty body."""
    own = tuple(artifact for artifact in evidence.artifacts if artifact.name not in ("body", "payload"))
    return replace(evidence, content=holder.evidence.content, artifacts=own)


def _content_time(evidence: Evidence, holder: Snapshot | None) -> datetime | None:
    if holder:
        return holder.content_captured_at
    return evidence.captured_at if evidence.content else None
