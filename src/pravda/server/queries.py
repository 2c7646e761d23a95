"""The query of a request, read strictly: what is unknown or doubled is a mistake, never passed over."""

from collections.abc import Iterable

from starlette.requests import Request as HttpRequest

from pravda.core.mistake import BadRequest, shown


def read(request: HttpRequest, known: Iterable[str]) -> dict[str, str]:
    """Name → value; raises BadRequest."""
    names, found = tuple(known), dict[str, str]()
    for name, value in request.query_params.multi_items():
        if name not in names:
            listed = ", ".join(names) or "none"
            raise BadRequest(
                name if name.isidentifier() and len(name) < 60 else shown(name),
                f"is no parameter here; there are: {listed}",
            )
        if name in found:
            raise BadRequest(name, "is given twice")
        found[name] = value
    return found


def read_count(name: str, text: str, most: int) -> int:
    """A whole number from 1 to a limit; raises BadRequest."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise BadRequest(name, f"must be a whole number from 1 to {most}")
    return int(text)
