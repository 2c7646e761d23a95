"""Parsers by name, and what they make of a page. Runs in the worker, beside nothing that must survive."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Final

from pravda.parsing.page import Page
from pravda.parsing.values import Limits, Trouble

COMMAND: Final = "cmd:"
CAN_PARSE: Final = "can_parse"
"""Name of the optional structural check in a parser's module."""

Parse = Callable[[Page], Iterable[object]]


class Failed(Exception):
    """A parser gave no items."""

    def __init__(self, trouble: Trouble, detail: str, trace: str = "") -> None:
        super().__init__(detail)
        self.trouble, self.detail, self.trace = trouble, detail, trace


def load(name: str, root: Path, limits: Limits) -> Parse:
    """The parser of a name, which gives items or raises Failed."""
    if name.startswith(COMMAND):
        return _program(name.removeprefix(COMMAND), root, limits)
    module_name, _, function = name.partition(":")
    try:
        module = import_module(module_name)
    except BaseException as problem:  # a module is anybody's code, and may even leave the interpreter
        raise Failed(Trouble.NOT_LOADED, f"{module_name}: {described(problem)}", trace_of(problem)) from None
    parse = getattr(module, function, None)
    if not callable(parse):
        raise Failed(Trouble.NOT_LOADED, f"{module_name} has no function {function!r}")
    return _checked(parse, getattr(module, CAN_PARSE, None))


def described(problem: BaseException) -> str:
    """An exception on one line."""
    if isinstance(problem, SystemExit):
        return f"it left the interpreter with {problem.code!r:.100}"
    try:
        text = str(problem)
    except Exception:  # the message too is the parser's code
        text = ""
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


def trace_of(problem: BaseException) -> str:
    """The traceback, without the frames of ours above the parser's."""
    try:
        told = traceback.TracebackException.from_exception(problem, limit=-30)
        ours = os.path.dirname(__file__)
        while len(told.stack) > 1 and told.stack[0].filename.startswith(ours):
            del told.stack[0]
        return "".join(told.format())
    except Exception:  # as above
        return ""


def _checked(parse: Parse, can_parse: object) -> Parse:
    """The parser behind the structural check of its module, if there is one."""

    def items(page: Page) -> Iterator[object]:
        if callable(can_parse) and not can_parse(page):
            raise Failed(Trouble.REJECTED, f"{CAN_PARSE} says that this is not the page it knows.")
        found: object = parse(page)
        if isinstance(found, str | bytes | dict) or not isinstance(found, Iterable):
            kind = type(found).__name__
            raise Failed(Trouble.UNUSABLE, f"It gave a value of type {kind:.80}, not a list of items.")
        yield from found

    return items


def _program(line: str, root: Path, limits: Limits) -> Parse:
    """A program as a parser: the bytes on standard input, a JSON list on standard output."""
    arguments = _arguments(line, root)

    def items(page: Page) -> Iterable[object]:
        # a file takes the body whether the program reads it or not; a pipe could fill up
        with tempfile.TemporaryFile() as body:
            body.write(page.bytes)
            body.seek(0)
            try:
                program = subprocess.Popen(  # noqa: S603  # the sources file's own program, without a shell
                    arguments, cwd=root, stdin=body, stdout=subprocess.PIPE, env=_environment(page)
                )
            except (OSError, ValueError) as problem:
                raise Failed(Trouble.NOT_LOADED, f"{arguments[0]:.200}: {described(problem)}") from None
        with program:
            assert program.stdout is not None
            output = program.stdout.read(limits.output + 1)
            if len(output) > limits.output:
                program.kill()
                raise Failed(Trouble.TOO_MUCH, f"It wrote more than {limits.output:,} bytes.")
        if program.returncode != 0:
            raise Failed(Trouble.REJECTED, f"{arguments[0]:.200} ended with exit code {program.returncode}.")
        return _listed(output, page)

    return items


def _arguments(line: str, root: Path) -> list[str]:
    try:
        arguments = shlex.split(line)
    except ValueError as problem:
        raise Failed(Trouble.NOT_LOADED, f"{line:.200}: {problem}") from None
    if not arguments:
        raise Failed(Trouble.NOT_LOADED, "it names no program")
    if arguments[0] in ("python", "python3"):
        arguments[0] = sys.executable  # the one that Pravda runs in, with what is installed beside it
    if shutil.which(root / arguments[0] if os.sep in arguments[0] else arguments[0]) is None:
        raise Failed(Trouble.NOT_LOADED, f"there is no program {arguments[0]!r:.200}")
    return arguments


def _environment(page: Page) -> dict[str, str]:
    told = {
        "PRAVDA_SOURCE": page.source_id,
        "PRAVDA_URL": page.url.replace("\0", ""),
        "PRAVDA_CHARSET": page.charset,
        "PRAVDA_CAPTURED_AT": _moment(page.captured_at),
        "PRAVDA_NOW": _moment(page.now),
    }
    return {**os.environ, **told}


def _moment(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _listed(output: bytes, page: Page) -> list[object]:
    answer = Page(output, url=page.url, charset="utf-8", captured_at=page.captured_at, now=page.now)
    try:
        found = answer.json
    except ValueError:
        raise Failed(Trouble.UNUSABLE, "What it wrote is no JSON.") from None
    if not isinstance(found, list):
        raise Failed(Trouble.UNUSABLE, "What it wrote is no JSON list.")
    return found
