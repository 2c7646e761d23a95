"""What a caller prefers (RFC 7240)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,6})"?', re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """How long the answer may take."""

    wait: float | None = None
    """Seconds after which 202 is the answer; None: the answer is waited for."""
    applied: str = ""
    """What `Preference-Applied` says; empty: nothing."""


def read(values: Iterable[str]) -> Preference:
    """The preference in the Prefer fields; what is unknown is passed over (RFC 7240 §2)."""
    asynchronous, wait = False, None
    for one in ",".join(values).split(","):
        word = one.partition(";")[0].strip()
        if word.lower() == "respond-async":
            asynchronous = True
        elif wait is None and (found := _WAIT.fullmatch(word)):
            wait = float(found[1])  # of several, the first holds
    applied = [
        *(("respond-async",) if asynchronous else ()),
        *((f"wait={wait:.0f}",) if wait is not None else ()),
    ]
    return Preference(
        wait=wait if wait is not None else 0.0 if asynchronous else None, applied=", ".join(applied)
    )
