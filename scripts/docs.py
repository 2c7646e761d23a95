"""Bring the generated parts of docs/ up to date; with --check only say whether they are."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

from click import Context
from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from pravda.cli.main import cli
from pravda.cli.table import COMMANDS
from pravda.core.request import Timeouts
from pravda.core.states import FACTS, Exit, FaultSide
from pravda.core.statuses import reason_of
from pravda.settings import Settings

DOCS = Path(__file__).parent.parent / "docs"

_EXITS = {
    Exit.OK: "fresh, reused or stale; anything with `--allow-failure`",
    Exit.DIFFERENT: "two things that were compared differ",
    Exit.USAGE: "bad request, option or setting; nothing was fetched",
    Exit.STALE: "stale, with `--fail-on-stale`",
    Exit.NOT_FOUND: "nothing found",
    Exit.DAMAGED: "a check of the archive found damage",
    Exit.BLOCKED: "failed: blocked",
    Exit.GONE: "failed: gone",
    Exit.DOWN: "failed: down",
    Exit.PARTIAL: "failed: partial",
    Exit.LOCAL_FAULT: "failed through our own fault",
    Exit.ARCHIVE: "the archive cannot keep the attempt, or what it holds is damaged",
    Exit.INTERRUPTED: "interrupted; the attempt is kept as cancelled",
}
_ELSEWHERE = {206: "`partial` / `partial_content`, unless the range covers the whole", 304: "see above"}


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    """A Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def reasons() -> Iterator[str]:
    """Every reason with its facts."""
    yield from table(
        ("reason", "cause", "state", "fault", "exit code", "sentence"),
        (
            (
                f"`{reason}`",
                f"`{facts.cause}`",
                f"{facts.state}; {facts.state_after_headers} after headers"
                if facts.state_after_headers
                else facts.state.value,
                "ours" if facts.fault is FaultSide.LOCAL else "source",
                str(int(facts.exit_code)),
                facts.sentence,
            )
            for reason, facts in FACTS.items()
        ),
    )


def statuses() -> Iterator[str]:
    """What each status says by itself."""

    def says(status: int) -> str:
        if status in _ELSEWHERE:
            return _ELSEWHERE[status]
        reason = reason_of(status)
        return f"`{FACTS[reason].state_when(headers=True)}` / `{reason}`" if reason else "validated"

    by_class: dict[int, dict[str, list[int]]] = {}
    for status in range(100, 1000):
        by_class.setdefault(min(status // 100, 6), {}).setdefault(says(status), []).append(status)
    yield from table(
        ("status", "says"), (row for class_, said in by_class.items() for row in _rows(class_, said))
    )


def _rows(class_: int, said: dict[str, list[int]]) -> Iterator[tuple[str, ...]]:
    """What is said of single statuses of a class, then of all others."""
    *special, (most, _) = sorted(said.items(), key=lambda item: len(item[1]))
    for text, statuses in sorted(special, key=lambda item: item[1]):
        yield ", ".join(map(str, statuses)), text
    yield f"{'other ' if special else ''}{f'{class_}xx' if class_ < 6 else '600 and above'}", most


def exits() -> Iterator[str]:
    """Every exit code."""
    yield from table(("code", "meaning"), ((str(int(code)), _EXITS[code]) for code in Exit))


def commands() -> Iterator[str]:
    """Every command's help."""
    pravda = Context(cli, info_name="pravda", terminal_width=100, **cli.context_settings)
    for name in COMMANDS:
        command = cli.get_command(pravda, name)
        assert command is not None
        with Context(command, info_name=name, parent=pravda) as context:
            yield from (
                "",
                f"## pravda {name}",
                "",
                "```text",
                *command.get_help(context).splitlines(),
                "```",
            )


def settings() -> Iterator[str]:
    """Every setting with its default."""
    yield from table(
        ("variable", "keyword", "default", "meaning"),
        (
            (f"`PRAVDA_{name.upper()}`", f"`{name}`", _default(name), field.description or "")
            for name, field in Settings.model_fields.items()
        ),
    )


def _default(name: str) -> str:
    value = Settings.model_fields[name].default
    if value is PydanticUndefined or value is None or value == "" or isinstance(value, SecretStr):
        return "–"
    return f"`{value:g}` s" if isinstance(value, float) else f"`{value}`"


def budgets() -> Iterator[str]:
    """The budgets of time and their defaults."""
    defaults = Timeouts()
    yield from table(
        ("budget", "default"),
        ((f"`{item.name}`", f"{getattr(defaults, item.name):g} s") for item in fields(defaults)),
    )


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "reasons": reasons,
    "statuses": statuses,
    "exits": exits,
    "commands": commands,
    "settings": settings,
    "budgets": budgets,
}
"""Name of a generated part, as its markers say it → what makes its lines."""


def filled(text: str) -> str:
    """The text with what stands between `<!-- begin NAME -->` and `<!-- end NAME -->` made anew."""
    for name, make in PARTS.items():
        before, begin, rest = text.partition(f"<!-- begin {name} -->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->")
        if begin and end:
            text = before + begin + "\n".join(make()) + "\n" + end + after
    return text


def main() -> int:
    """Write, or check."""
    check, old = "--check" in sys.argv[1:], []
    for path in (*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md"):
        text = path.read_text("utf-8")
        if text != (new := filled(text)):
            old.append(path.name)
            if not check:
                path.write_text(new, "utf-8")
    if check and old:
        print(f"out of date: {', '.join(old)}; run `make docs`", file=sys.stderr)
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main())
