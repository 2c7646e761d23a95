"""CSS selectors, matched compound by compound in linear time."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from cssselect import GenericTranslator, HTMLTranslator, SelectorError
from cssselect import parse as parse_selector
from cssselect.parser import CombinedSelector, Element, Tree
from cssselect.xpath import XPathExpr
from lxml import etree

from pravda.core.query import BadQuery, said
from pravda.core.xpath import Path, blank_literals, find_nodes, read_path


def check_selector(selector: str) -> None:
    """Raise BadQuery unless the selector can be matched."""
    _compiled(selector, html=True)
    _compiled(selector, html=False)


def count_selector(selector: str, root: etree._Element, *, html: bool) -> int:
    """Count the elements that the selector matches."""
    found: set[etree._Element] = set()
    for steps in _compiled(selector, html=html):
        found |= _select(steps, root)
    return len(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One compound of a selector, as `li.open` in `ul > li.open`."""

    combinator: str
    """How it hangs on the compound before it: a space, ">", "+" or "~"; of no meaning for the first."""
    path: Path
    """Finds every element that fits the compound by itself."""


class _AnyNamespace(GenericTranslator):
    """Names in XML, where one without a prefix stands for any namespace (Selectors 4 §5.1)."""

    def xpath_element(self, selector: Element) -> XPathExpr:
        if not selector.element or selector.namespace:
            return super().xpath_element(selector)
        name = self.xpath_literal(selector.element)
        return XPathExpr(element="*").add_condition(f"local-name() = {name}")


_HTML = HTMLTranslator()
_XML = _AnyNamespace()
_PLAIN_XML = GenericTranslator()  # for :nth-of-type() and its like, which need a name


@lru_cache(maxsize=256)
def _compiled(selector: str, *, html: bool) -> tuple[tuple[_Step, ...], ...]:
    try:
        parsed = parse_selector(selector)
        if any(one.pseudo_element is not None for one in parsed):
            raise BadQuery("names a pseudo-element, as ::text, which is no element; leave it out")
        compiled = _html_steps if html else _xml_steps
        return tuple(compiled(one.parsed_tree) for one in parsed)
    except (SelectorError, RecursionError) as error:
        raise BadQuery(f"is not a CSS selector that can be matched: {said(error)}") from error


def _html_steps(tree: Tree) -> tuple[_Step, ...]:
    return _steps(tree, _HTML)


def _xml_steps(tree: Tree) -> tuple[_Step, ...]:
    try:
        return _steps(tree, _XML)
    except SelectorError:
        return _steps(tree, _PLAIN_XML)


def _steps(tree: Tree, translator: GenericTranslator) -> tuple[_Step, ...]:
    steps: list[_Step] = []
    while isinstance(tree, CombinedSelector):
        steps.append(_Step(combinator=tree.combinator, path=_compound(tree.subselector, translator)))
        tree = tree.selector
    steps.append(_Step(combinator="", path=_compound(tree, translator)))
    return tuple(reversed(steps))


_FURTHER_STEP = re.compile(r"(?<!\.)/(?!self::)")
# These would multiply when they stand in one another; what :nth-child() counts does not.
_RELATION = re.compile(r"(?<!count\()\b(?:ancestor|descendant|preceding-sibling|following-sibling)::")


def _compound(tree: Tree, translator: GenericTranslator) -> Path:
    path = str(translator.xpath(tree))
    blanked = blank_literals(path)
    if _FURTHER_STEP.search(blanked) or len(_RELATION.findall(blanked)) > 2:
        raise BadQuery("holds too many combinators inside :has() or :not(); write one")
    return read_path(f"descendant-or-self::{path}")


def _select(steps: tuple[_Step, ...], root: etree._Element) -> set[etree._Element]:
    """Match from left to right with sets; as one XPath, `div p` and `p ~ p` take libxml2 cubic time."""
    found = set(find_nodes(steps[0].path, root))
    for step in steps[1:]:
        if not found:
            break
        hangs = _HANGS[step.combinator]
        answers: _Answers = {}
        found = {element for element in find_nodes(step.path, root) if hangs(element, found, answers)}
    return found


_Next: TypeAlias = Callable[[etree._Element], etree._Element | None]
_Answers: TypeAlias = dict[etree._Element, bool]
_Hangs: TypeAlias = Callable[[etree._Element, set[etree._Element], _Answers], bool]


def _parent(element: etree._Element) -> etree._Element | None:
    return element.getparent()


def _previous(element: etree._Element) -> etree._Element | None:
    return next(element.itersiblings("*", preceding=True), None)


def _at_once(step: _Next) -> _Hangs:
    def hangs(element: etree._Element, left: set[etree._Element], answers: _Answers) -> bool:
        return step(element) in left

    return hangs


def _somewhere(step: _Next) -> _Hangs:
    def hangs(element: etree._Element, left: set[etree._Element], answers: _Answers) -> bool:
        """Walk to the left side, or to where the answer is known, and note it for all on the way."""
        way = [element]
        reached = step(element)
        while reached is not None and reached not in left and reached not in answers:
            way.append(reached)
            reached = step(reached)
        answer = reached is not None and (reached in left or answers[reached])
        answers.update(dict.fromkeys(way, answer))
        return answer

    return hangs


_HANGS = {
    " ": _somewhere(_parent),
    ">": _at_once(_parent),
    "+": _at_once(_previous),
    "~": _somewhere(_previous),
}
