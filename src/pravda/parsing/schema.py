"""The schema of a source's items: a pydantic model or a JSON Schema."""

import json
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Final, Protocol, cast

from pravda.parsing.values import Item, SchemaFailure

Check = Callable[[Item, str], tuple[SchemaFailure, ...]]
"""What is wrong with an item, given its place as `items[3]`; empty: nothing."""

_LARGEST_FILE: Final = 4 * 1024 * 1024  # bytes
_MOST_PER_ITEM: Final = 5
_LONGEST: Final = 300  # characters of one failure


class BadSchema(ValueError):
    """The schema cannot be used; the message says why."""


class _Error(Protocol):
    """One failure as jsonschema tells it."""

    json_path: str
    message: str


class _Validator(Protocol):
    """A JSON Schema that can be asked."""

    def iter_errors(self, instance: object) -> Iterable[_Error]: ...


class _Model(Protocol):
    """A pydantic model, of which only this is used."""

    def model_validate(self, obj: object) -> object: ...


class _Invalid(Protocol):
    """What a pydantic model raises."""

    def errors(self, *, include_url: bool, include_input: bool) -> list[dict[str, object]]: ...


def load_schema(name: str, root: Path) -> Check:
    """The check that a name stands for: `module:Model`, else a JSON Schema file below the tree's root."""
    if name.endswith(".json"):
        return _json_schema(root / name)
    module, _, model = name.partition(":")
    found = getattr(import_module(module), model, None)
    if not callable(getattr(found, "model_validate", None)):
        raise BadSchema(f"{name:.120} is no pydantic model")
    return _pydantic(cast(_Model, found))


def _pydantic(model: _Model) -> Check:
    def check(item: Item, path: str) -> tuple[SchemaFailure, ...]:
        try:
            model.model_validate(item)
        except ValueError as problem:
            if not hasattr(problem, "errors"):
                raise
            told = cast(_Invalid, problem).errors(include_url=False, include_input=False)
            return tuple(
                _failure(path + _steps(cast(tuple[object, ...], error["loc"])), str(error["msg"]))
                for error in told[:_MOST_PER_ITEM]
            )
        return ()

    return check


def _json_schema(path: Path) -> Check:
    validator = _validator(path)

    def check(item: Item, place: str) -> tuple[SchemaFailure, ...]:
        told = islice(validator.iter_errors(item), _MOST_PER_ITEM)
        return tuple(_failure(place + error.json_path.removeprefix("$"), error.message) for error in told)

    return check


def _validator(path: Path) -> _Validator:
    # an optional library, which only trees with a JSON Schema need
    try:
        validators, exceptions = (
            import_module("jsonschema.validators"),
            import_module("jsonschema.exceptions"),
        )
        registry = import_module("referencing").Registry()
    except ImportError:
        raise BadSchema("a JSON Schema needs the extra `jsonschema`") from None
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
        schema = json.loads(data) if len(data) <= _LARGEST_FILE else None
    except (OSError, ValueError, RecursionError) as problem:
        raise BadSchema(f"{path.name} cannot be read as JSON: {problem}") from None
    if not isinstance(schema, dict | bool):
        raise BadSchema(f"{path.name} is no JSON Schema")
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except exceptions.SchemaError as problem:
        raise BadSchema(f"{path.name} is no JSON Schema: {problem.message}") from None
    # A registry of our own: the library's would fetch what a `$ref` points at.
    return cast(_Validator, kind(schema, registry=registry, format_checker=kind.FORMAT_CHECKER))


def _failure(path: str, detail: str) -> SchemaFailure:
    return SchemaFailure(path=path[:_LONGEST], detail=" ".join(detail[: 4 * _LONGEST].split())[:_LONGEST])


def _steps(loc: tuple[object, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)
