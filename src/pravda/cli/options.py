"""Options that commands share, and reading what they carry."""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import ByteSize, TypeAdapter, ValidationError

from pravda.core.mistake import BadRequest
from pravda.core.rule_values import INTEGER_RULES, Rule

Rules = dict[str, list[object]]

_RULE_FILE_BYTES = 1024 * 1024
_BYTE_SIZE = TypeAdapter(ByteSize)


class _Folder(click.Path):
    """A folder that has a name: pathlib would take an empty one for the working folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what is empty."""
        if value == "":
            self.fail("must not be empty", param, ctx)
        return super().convert(value, param, ctx)


def byte_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """The number of bytes in 1000000, 1MB or 1MiB, for an option's callback."""
    try:
        return None if value is None else int(_BYTE_SIZE.validate_python(value))
    except ValidationError:
        text = f"{value!r:.60} is no number of bytes; write 1000000, 1MB or 1MiB"
        raise click.BadParameter(text, ctx, param) from None


home = click.option(
    "--home",
    metavar="FOLDER",
    type=_Folder(file_okay=False, readable=False, path_type=Path),
    help="Folder of the archive. Default: PRAVDA_HOME, else the platform's folder for user data.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else on stdout.")


def pairs(field: str, texts: Iterable[str], mark: str, example: str) -> list[tuple[str, str]]:
    """Names and values from texts such as `name=value`; raises BadRequest."""
    out = []
    for text in texts:
        name, found, value = text.partition(mark)
        if not found:
            raise BadRequest(field, f"{text!r:.60} has no {mark!r}; write {example}")
        out.append((name.strip(), value))
    return out


def rules(file: str | None, texts: Iterable[str]) -> Rules | None:
    """The rules of `--expect-file` with those of `--expect` behind them; raises BadRequest."""
    out: Rules = {}
    if file is not None:
        for name, value in _rule_file(file).items():
            out[name] = list(value) if isinstance(value, list) else [value]
    for name, text in pairs("expect", texts, "=", "--expect selector='table#list'"):
        out.setdefault(name, []).append(_rule_value(name, text))
    return out or None


def _rule_value(name: str, text: str) -> object:
    """A number for a rule that takes numbers, else the text."""
    try:
        if name in INTEGER_RULES:
            return int(text)
        if name == Rule.MAX_DROP:
            return float(text)
    except ValueError:
        raise BadRequest(f"expect.{name}", f"{text!r:.60} is no number") from None
    return text


def _rule_file(name: str) -> Mapping[str, object]:
    data = read_file("expect_file", name, _RULE_FILE_BYTES)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise BadRequest("expect_file", f"{name!r:.200} is no JSON: {problem}") from None
    if not isinstance(value, dict):
        raise BadRequest("expect_file", f"{name!r:.200} must hold one object, rule names and their values")
    return value


def body(text: str | None) -> bytes | None:
    """What `--data` gives: the text, a file's bytes after `@`, or stdin's after `@-`; raises BadRequest."""
    if text is None:
        return None
    if not text.startswith("@"):
        return text.encode(errors="surrogateescape")
    return read_file("data", text[1:])


def read_file(field: str, name: str, limit: int | None = None) -> bytes:
    """The bytes of a file, or of stdin for `-`; raises BadRequest."""
    most = -1 if limit is None else limit + 1
    try:
        if name == "-":
            data = sys.stdin.buffer.read(most)
        else:
            with open(name, "rb") as file:
                data = file.read(most)
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise BadRequest(field, f"{name!r:.200} cannot be read: {reason}") from None
    if limit is not None and len(data) > limit:
        raise BadRequest(field, f"{name!r:.200} is larger than {limit} bytes")
    return data
