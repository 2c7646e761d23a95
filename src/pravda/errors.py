"""What raises: misuse and broken infrastructure. A page's trouble never does.

Exception
├── ValueError
│   └── BadRequest            the caller's mistake, names the field
└── PravdaError
    ├── NoUsableSnapshot      a capture ended without usable evidence; carries the attempt
    ├── NotFound              no such snapshot or artifact
    ├── Damaged               stored bytes are missing or no longer what was stored
    ├── StorageTrouble        bytes could not be written; the row still can
    └── ArchiveUnavailable    nothing could be kept, so nothing is acknowledged
"""

from pravda.core.mistake import BadRequest
from pravda.core.outcome import Answer, Newest, Snapshot
from pravda.core.states import Reason

__all__ = [
    "ArchiveUnavailable",
    "BadRequest",
    "Damaged",
    "NoUsableSnapshot",
    "NotFound",
    "PravdaError",
    "StorageTrouble",
]


class PravdaError(Exception):
    """Anything Pravda raises that is not the caller's mistake."""


class NoUsableSnapshot(PravdaError):
    """The capture failed and nothing kept may stand in for it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.problem)
        self.answer = answer

    def __reduce__(self) -> tuple[type["NoUsableSnapshot"], tuple[Answer]]:
        return type(self), (self.answer,)

    @property
    def attempt(self) -> Snapshot | None:
        """The attempt that failed, as it is kept."""
        return self.answer.attempt

    @property
    def newest_usable(self) -> Newest | None:
        """The newest usable snapshot that was too old or not allowed, if any."""
        return self.answer.newest_usable


class NotFound(PravdaError):
    """There is no such thing in this archive."""


class Damaged(PravdaError):
    """Stored bytes are missing, unreadable or changed; they are not handed out as evidence."""


class StorageTrouble(PravdaError):
    """Bytes could not be written; `reason` is one of the storage reasons."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason

    def __reduce__(self) -> tuple[type["StorageTrouble"], tuple[Reason, str]]:
        return type(self), (self.reason, str(self))


class ArchiveUnavailable(PravdaError):
    """The catalog takes no row, so nothing is acknowledged; reads go on where they can."""

    def __init__(self, detail: str, newest_usable: Newest | None = None) -> None:
        super().__init__(detail)
        self.newest_usable = newest_usable

    def __reduce__(self) -> tuple[type["ArchiveUnavailable"], tuple[str, Newest | None]]:
        return type(self), (str(self), self.newest_usable)
