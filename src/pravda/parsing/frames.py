"""What travels between Pravda and the process that runs parsers. JSON in both directions: nothing of it is executed."""

import json
import struct
from collections.abc import Sequence
from datetime import datetime
from typing import BinaryIO, Final

from pravda.parsing.values import Item, Job, Json, Parsing, Problem, Repair, SchemaFailure, Trouble

_SIZES: Final = struct.Struct(">IQ")
_SIZE: Final = struct.Struct(">Q")
ANSWER_HEAD: Final = _SIZE.size


class Nonsense(ValueError):
    """An answer that the worker never gives by itself."""


def write_job(job: Job, *, only_load: bool = False) -> bytes:
    """A job, or the question whether it could be done."""
    head: dict[str, Json] = {
        "source_id": job.source_id,
        "parser": job.parser,
        "url": job.url,
        "charset": job.charset,
        "captured_at": job.captured_at.isoformat(),
        "now": job.now.isoformat(),
        "schema": job.schema,
        "sanitize": job.sanitize,
        "only_load": only_load,
    }
    text = json.dumps(head).encode()
    return _SIZES.pack(len(text), len(job.body)) + text + job.body


def read_job(stream: BinaryIO) -> tuple[Job, bool] | None:
    """The next job, and whether it is only to be loaded; None: there are no more."""
    sizes = stream.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return None
    head_size, body_size = _SIZES.unpack(sizes)
    head = json.loads(stream.read(head_size))
    only_load = head.pop("only_load")
    for name in ("captured_at", "now"):
        head[name] = datetime.fromisoformat(head[name])
    return Job(body=stream.read(body_size), **head), only_load


def write_parsing(parsing: Parsing, items: Sequence[str] = ()) -> bytes:
    """What a parser made of a page, its items written already."""
    problem = parsing.problem
    head: dict[str, Json] = {
        "problem": [problem.trouble, problem.detail, problem.traceback] if problem else None,
        "repairs": [[repair.path, list(repair.what)] for repair in parsing.repairs],
        "repaired": parsing.repaired,
        "failures": [[failure.path, failure.detail] for failure in parsing.failures],
        "failed": parsing.failed,
    }
    text = f'{json.dumps(head)[:-1]}, "items": [{", ".join(items)}]}}'
    return text.encode()


def frame(answer: bytes) -> bytes:
    """An answer behind its length."""
    return _SIZE.pack(len(answer)) + answer


def answer_size(head: bytes) -> int:
    """The length of an answer."""
    (size,) = _SIZE.unpack(head)
    return int(size)


def read_parsing(answer: bytes, said: str) -> Parsing:
    """What the worker answered; raises Nonsense."""
    try:
        return _parsing(json.loads(answer), said)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise Nonsense("the answer is none of the worker's") from problem


def _parsing(read: dict[str, Json], said: str) -> Parsing:
    if read["problem"] is not None:
        trouble, detail, trace = _list(read["problem"])
        problem = Problem(trouble=Trouble(str(trouble)), detail=str(detail), traceback=str(trace))
        return Parsing(items=None, problem=problem, said=said)
    return Parsing(
        items=tuple(_item(item) for item in _list(read["items"])),
        repairs=tuple(
            Repair(path=str(path), what=tuple(str(word) for word in _list(what)))
            for path, what in map(_list, _list(read["repairs"]))
        ),
        repaired=_count(read["repaired"]),
        failures=tuple(
            SchemaFailure(path=str(path), detail=str(detail))
            for path, detail in map(_list, _list(read["failures"]))
        ),
        failed=_count(read["failed"]),
        said=said,
    )


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _item(value: Json) -> Item:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _count(value: Json) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value
