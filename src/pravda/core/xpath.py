"""XPath 1.0 on hostile pages: nothing but its core functions, and priced before it is run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite

from lxml import etree

from pravda.core.query import BadQuery, Unanswerable, said

_MOST_WORK = 10**11  # comparisons of nodes, some tens of seconds; ordinary pages need under a thousandth
_STEP = 40  # what one step from node to node costs, in comparisons

# XPath 1.0 §2.3, §3 and §4, without id(), which needs a document type; what libxml2 and lxml add is left out.
_NAMES = frozenset(
    "and or div mod node text comment processing-instruction last position count local-name namespace-uri "  # noqa: SIM905 - words read better than quotes
    "name string concat starts-with contains substring-before substring-after substring string-length "
    "normalize-space translate boolean not true false lang number sum floor ceiling round".split()
)
_LITERAL = re.compile(r"\"[^\"]*\"|'[^']*'")
_CALLED = re.compile(r"([\w.-]+(?::[\w.-]+)?)\s*\(")
_PREFIX = re.compile(r"(?<!:):(?!:)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A place in a path from which nodes may look far around."""

    context: etree.XPath | None
    """Finds the nodes that stand there; None: a predicate, which any element may meet."""
    axis: str
    """Where they look: the axis' name, or `//`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """An expression that can be run."""

    find: etree.XPath
    """The whole of it, compiled."""
    stages: tuple[Stage, ...]
    """In the order of evaluation."""


def check_xpath(path: str) -> None:
    """Raise BadQuery unless the expression can be evaluated."""
    read_path(path)


def count_xpath(path: str, root: etree._Element) -> int:
    """Count the nodes; a number counts as it stands, a true value or a text that is not empty as one."""
    result = _run(read_path(path), root)
    if isinstance(result, list):
        return len(result)
    if isinstance(result, float) and isfinite(result) and result >= 1:
        return int(result)
    # XPath 1.0 §4.3: NaN is false; in Python it is true, and unlike everything else not equal to itself.
    return int(bool(result) and result == result)


@lru_cache(maxsize=256)
def read_path(path: str) -> Path:
    """Compile an expression without lxml's extensions; raises BadQuery."""
    blanked = blank_literals(path)
    _check_names(blanked)
    try:
        find = _compile(path)
        find(etree.Element("html"))  # some mistakes, as counting a text, show only when it runs
    except (etree.LxmlError, ValueError) as error:
        raise BadQuery(f"is not an expression of XPath 1.0: {said(error)}") from error
    return Path(find=find, stages=tuple(_stages(path, blanked)))


def find_nodes(path: Path, root: etree._Element) -> list[etree._Element]:
    """Give the nodes that a path finds, none where its result is no set of nodes; raises Unanswerable."""
    result = _run(path, root)
    return result if isinstance(result, list) else []


def blank_literals(path: str) -> str:
    """Give the path with its string literals made blank, all positions kept."""
    return _LITERAL.sub(lambda literal: "_" * len(literal[0]), path)


def _check_names(blanked: str) -> None:
    if "$" in blanked:
        raise BadQuery("uses a variable, and there are none; write the value itself")
    if _PREFIX.search(blanked):
        raise BadQuery("uses a namespace prefix, and none is known; write *[local-name()='…']")
    for name in _CALLED.findall(blanked):
        if name not in _NAMES:
            raise BadQuery(
                f"uses {name}(), which is not available; write a core function of XPath 1.0, not id()"
            )


def _compile(path: str) -> etree.XPath:
    return etree.XPath(path, regexp=False, smart_strings=False)


def _run(path: Path, root: etree._Element) -> object:
    for stage in path.stages:
        _check_work(stage, root)
    return _call(path.find, root)


def _call(find: etree.XPath, root: etree._Element) -> object:
    try:
        return find(root)
    except etree.LxmlError as error:
        raise Unanswerable(f"cannot be evaluated on this page: {said(error)}") from error


_TOKEN = re.compile(
    r"[\[\](),]|//|(?:ancestor|descendant)(?:-or-self)?\s*::|(?:following|preceding)(?:-sibling)?\s*::"
)


def _stages(path: str, blanked: str) -> Iterator[Stage]:
    """Find the far-looking steps, each with the expression that leads up to it."""
    starts, predicates = [0], 0
    for token in _TOKEN.finditer(blanked):
        match token[0]:
            case "[":
                predicates += 1
            case "]":
                predicates -= 1
            case "(" | ")" | "," if predicates:
                continue
            case "(":
                starts.append(token.end())
            case ")":
                starts.pop()
            case ",":
                starts[-1] = token.end()
            case axis if predicates:
                yield Stage(context=None, axis=axis.rstrip(": \t\r\n"))
            case axis:
                try:
                    context = _compile(path[starts[-1] : token.start()].rstrip("/ \t\r\n"))
                except etree.XPathError:
                    continue  # nothing leads up to it: it starts from one node
                yield Stage(context=context, axis=axis.rstrip(": \t\r\n"))


def _check_work(stage: Stage, root: etree._Element) -> None:
    """Refuse a step that would keep libxml2 busy; outside predicates it compares each node reached with all it has."""
    elements = sum(1 for _ in root.iter())
    contexts = elements if stage.context is None else _size(_call(stage.context, root))
    each = _STEP if stage.context is None else elements
    reached = contexts * elements
    if contexts < 2 or reached * each <= _MOST_WORK:
        return
    if stage.axis.endswith("-sibling"):
        reached = min(reached, sum(len(element) ** 2 for element in root.iter()))
    elif stage.axis not in ("following", "preceding"):
        reached = min(reached, _lineage(root))
    if reached * each > _MOST_WORK:
        raise Unanswerable("page too large for this query; write one that looks less far around")


def _size(result: object) -> int:
    return len(result) if isinstance(result, list) else 1


def _lineage(root: etree._Element) -> int:
    """Count the pairs of an element and one that holds it."""
    depth = pairs = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        pairs += depth if event == "start" else 0
    return pairs
