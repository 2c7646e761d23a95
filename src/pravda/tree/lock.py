"""One refresh of a tree at a time."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pravda.core.digest import Json
from pravda.core.wire import time_text
from pravda.errors import PravdaError
from pravda.tree.layout import count_or_none, read_object, text_or_none, write_object

_LONGEST = 4096
_LOOKS, _PAUSE = 50, 0.01  # times, and seconds between them


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who works on a tree."""

    pid: int | None
    """None: it did not say, or has not said yet."""
    host: str | None
    since: str | None
    """RFC 3339."""

    def __str__(self) -> str:
        who = f"process {self.pid}" if self.pid else "another process"
        where = f" on {self.host}" if self.host else ""
        return who + where + (f" since {self.since}" if self.since else "")


class TreeBusy(PravdaError):
    """Another process works on the tree; `holder` says which."""

    def __init__(self, folder: Path, holder: Holder) -> None:
        super().__init__(f"{folder} is being refreshed by {holder}; nothing was asked or changed")
        self.holder = holder


class TreeUnavailable(PravdaError):
    """The tree's folder cannot be worked in."""


@contextmanager
def locked(path: Path, now: datetime) -> Iterator[None]:
    """Hold the lock of a tree; raises TreeBusy and TreeUnavailable.

    The kernel drops the lock with the process that holds it, however that ends, so none is ever stale.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as problem:
        raise TreeUnavailable(f"{path} cannot be opened: {problem.strerror}") from problem
    try:
        _take(descriptor, path)
        said: dict[str, Json] = {"pid": os.getpid(), "host": socket.gethostname(), "since": time_text(now)}
        with suppress(OSError):  # a full disk stops no refresh that may find everything unchanged
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, write_object(said), 0)
        yield
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TreeBusy(path.parent, _holder(descriptor)) from None
    except OSError as problem:
        raise TreeUnavailable(f"{path} cannot be locked: {problem.strerror}") from problem


def _holder(descriptor: int) -> Holder:
    said: Mapping[str, Json] = {}
    for _ in range(_LOOKS):  # the holder writes who it is right after it took the lock
        if said := read_object(os.pread(descriptor, _LONGEST, 0)) or {}:
            break
        time.sleep(_PAUSE)
    host, since = text_or_none(said.get("host")), text_or_none(said.get("since"))
    return Holder(
        pid=count_or_none(said.get("pid")), host=_printable(host) or None, since=_printable(since) or None
    )


def _printable(text: str | None) -> str:
    return "".join(letter for letter in (text or "") if letter.isprintable())[:100]
