"""Pravda keeps durable evidence of web pages and hands back the newest evidence that is good enough.

import pravda

async with pravda.open() as archive:
    answer = await archive.capture("https://example.org/", max_stale_age="7d")

with pravda.open_blocking() as archive:
    answer = archive.capture("https://example.org/", max_stale_age="7d")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravda.assemble import open, open_blocking
    from pravda.blocking import BlockingPravda
    from pravda.capture import Pravda
    from pravda.core.outcome import Answer, Snapshot
    from pravda.core.ports import Query
    from pravda.core.request import Request
    from pravda.core.states import Reason, State
    from pravda.errors import (
        ArchiveUnavailable,
        BadRequest,
        Damaged,
        NotFound,
        NoUsableSnapshot,
        PravdaError,
    )

_HOMES = {
    "Answer": "core.outcome",
    "ArchiveUnavailable": "errors",
    "BadRequest": "errors",
    "BlockingPravda": "blocking",
    "Damaged": "errors",
    "NoUsableSnapshot": "errors",
    "NotFound": "errors",
    "Pravda": "capture",
    "PravdaError": "errors",
    "Query": "core.ports",
    "Reason": "core.states",
    "Request": "core.request",
    "Snapshot": "core.outcome",
    "State": "core.states",
    "open": "assemble",
    "open_blocking": "assemble",
}

__all__ = [
    "Answer",
    "ArchiveUnavailable",
    "BadRequest",
    "BlockingPravda",
    "Damaged",
    "NoUsableSnapshot",
    "NotFound",
    "Pravda",
    "PravdaError",
    "Query",
    "Reason",
    "Request",
    "Snapshot",
    "State",
    "open",
    "open_blocking",
]


def __getattr__(name: str) -> object:
    """Load a name when it is first asked for (PEP 562), so that importing Pravda costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
