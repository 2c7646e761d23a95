"""Small texts for a terminal; whatever comes from outside passes `safe` first."""

import shlex
import shutil
import sys
from datetime import UTC, datetime, timedelta

import click

from pravda.core.mistake import BadRequest
from pravda.core.states import State
from pravda.core.urls import URL, BadURL, parse

_COLOURS = {
    State.LIVE: "green",
    State.BLOCKED: "yellow",
    State.GONE: "magenta",
    State.DOWN: "red",
    State.PARTIAL: "cyan",
}
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def safe(text: str, limit: int = 2000) -> str:
    """The text with everything escaped that could steer a terminal, hide or reorder letters, or break the line."""
    # not printable: controls, bidi and other format characters, surrogates, line separators, odd spaces
    cut = text if len(text) <= limit else f"{text[:limit]}..."
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in cut
    )


def badge(state: State, width: int = 0) -> str:
    """The state in brackets, coloured, padded to a width that does not count the colour's codes."""
    text = f"[{state.upper()}]"
    return click.style(text, fg=_COLOURS[state], bold=True) + " " * (width - len(text))


def span(seconds: float) -> str:
    """A duration in its largest whole unit."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "under 1 s"


def exactly(seconds: float) -> str:
    """A duration in its largest unit that leaves no rest."""
    for size, unit in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:g} s"


def ago(moment: datetime, now: datetime) -> str:
    """How long ago that was."""
    seconds = (now - moment) / timedelta(seconds=1)
    return "just now" if seconds < 1 else f"{span(seconds)} ago"


def size(count: int) -> str:
    """A number of bytes with the unit that suits it."""
    if count < 1000:
        return f"{count} B"
    power = min((len(str(count)) - 1) // 3, 3)
    return f"{count / 1000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"


def program() -> str:
    """What to type for `pravda` on this machine, which may not have it on the search path."""
    if shutil.which("pravda"):
        return "pravda"
    return "python -m pravda" if sys.argv[0].endswith("__main__.py") else shlex.quote(sys.argv[0])


def now() -> datetime:
    """Wall time in UTC."""
    return datetime.now(UTC)


def typed_url(text: str) -> URL:
    """The URL that a person typed as an argument; raises BadRequest."""
    try:
        return parse(text)
    except BadURL as problem:
        hint = "; write https:// in front of it" if _lacks_scheme(text) else ""
        raise BadRequest("url", f"{problem}{hint}") from None


def _lacks_scheme(text: str) -> bool:
    before, colon, _ = text.partition(":")
    if colon and "." not in before and not before.startswith(("localhost", "[")):
        return False  # what is before the colon is a scheme rather than a host, as in mailto:
    try:
        return "://" not in text and bool(parse(f"https://{text}"))
    except BadURL:
        return False
