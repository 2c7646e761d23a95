"""Selectors, XPath, JSONPath and regular expressions: what they find, what is refused, and that they end."""

import json
import time

import pytest
from cssselect import HTMLTranslator
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from pravda.core.css import check_selector, count_selector
from pravda.core.jsonpath import check_json_path, count_json_path
from pravda.core.query import BadQuery, Unanswerable, said
from pravda.core.regex import check_regex, find_regex
from pravda.core.xpath import check_xpath, count_xpath

PAGE = (
    "<html><head><title>T</title></head><body><div id=a class='x y'><p>one<p class=x>two<span>s</span></div>"
    "<ul><li>1<li class=on>2<li>3</ul><table id=list><tr><td>a/b<td>c</table><p hidden>three</body></html>"
)


def tree(html: str) -> etree._Element:
    return etree.fromstring(html.encode(), etree.HTMLParser(encoding="utf-8"))


def css(selector: str, html: str = PAGE) -> int:
    check_selector(selector)
    return count_selector(selector, tree(html), html=True)


def xpath(path: str, html: str = PAGE) -> int:
    check_xpath(path)
    return count_xpath(path, tree(html))


def json_path(path: str, document: object) -> int:
    check_json_path(path)
    return count_json_path(path, document)


def seconds(run) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ("html", 1),
        ("p", 3),
        ("P.x", 1),
        ("table#list", 1),
        ("table#list td", 2),
        ("div p", 2),
        ("div > p", 2),
        ("body > p", 1),
        ("body div p span", 1),
        ("ul li + li", 2),
        ("li ~ li", 2),
        ("li.on ~ li", 1),
        ("li.on + li", 1),
        ("div ~ p", 1),
        ("div + p", 0),
        ("span p", 0),
        ("nav a b", 0),
        ("div, ul, div", 2),
        ("li:nth-child(2n+1)", 2),
        ("li:not(.on)", 2),
        ("p:nth-of-type(2)", 1),
        ("div:has(> p)", 1),
        ("p:not(div p)", 1),
        ("p:has(+ p)", 1),
        ("li:has(~ li)", 2),
        ("body:has(span)", 1),
        ("[class~=x]", 2),
        ("td:contains('a/b')", 1),
        ("a:hover", 0),
    ],
)
def test_selectors_match(selector, count):
    """A CSS selector counts each element once, whatever its combinators."""
    assert css(selector) == count


SIMPLE = st.sampled_from(["p", "div", "b", "*", ".k", "p.k"])
SELECTOR = st.lists(st.tuples(SIMPLE, st.sampled_from([" ", " > ", " + ", " ~ "])), min_size=1, max_size=4)


@given(
    SELECTOR,
    st.lists(st.sampled_from(["<p>", "<div>", "<b class=k>", "</div>", "</p>", "</b>", "t"]), max_size=30),
)
def test_selectors_match_as_one_xpath_would(parts, tags):
    """Matching compound by compound finds as many elements as the translation into one XPath."""
    selector = "".join(simple + combinator for simple, combinator in parts).rstrip(" >+~")
    root = tree("<html><body>" + "".join(tags))
    assert count_selector(selector, root, html=True) == count_xpath(
        HTMLTranslator().css_to_xpath(selector), root
    )


def test_selectors_in_xml_match_any_namespace():
    """In a feed a name means the element in any namespace, letters count, and entities are no siblings."""
    root = etree.fromstring(
        "<!DOCTYPE f [<!ENTITY x 'y'>]><f:feed xmlns:f='u:f' xmlns='u:d'><Entry/>&x;<Entry/><link/></f:feed>",
        etree.XMLParser(resolve_entities=False),
    )
    for selector, count in [
        ("feed > Entry", 2),
        ("entry", 0),
        ("*", 4),
        ("*|link", 1),
        ("Entry + Entry", 1),
        ("Entry:nth-of-type(2)", 0),
    ]:
        check_selector(selector)
        assert count_selector(selector, root, html=False) == count, selector


@pytest.mark.parametrize(
    "selector",
    [
        "",
        "a[",
        "a >",
        "a::text",
        "a::before",
        ":unknown(1)",
        "ns|a",
        "*:nth-of-type(2)",
        "a:not(" * 2_000,
        "p:not(a b c d)",
        "p:has(a b)",
        "a\x01",
    ],
)
def test_bad_selectors_are_refused(selector):
    """What cannot be matched, or not in bounded time, is a BadQuery."""
    with pytest.raises(BadQuery):
        check_selector(selector)


@pytest.mark.parametrize("selector", ["div p", "div div div div b", "p ~ p", "p + p", "b ~ p", "div > div p"])
def test_selectors_take_linear_time(selector):
    """A page made to explode a selector does not."""
    root = tree("<div>" * 200 + "<p>x</p>" * 10_000)
    assert seconds(lambda: count_selector(selector, root, html=True)) < 2


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("//li", 3),
        ("//table[@id='list']//td/text()", 2),
        ("//li/@class", 1),
        ("count(//li)", 3),
        ("count(//nav)", 0),
        ("count(//li) = 3", 1),
        ("count(//li) = 4", 0),
        ("string(//title)", 1),
        ("string(//nav)", 0),
        ("1 div 0", 1),
        ("0 div 0", 0),
        ("0.5", 1),
        ("-2", 1),
        ("//li[. = '2' or (. = '3')]", 2),
        ("//p | //li", 6),
        ("(//li)[1]", 1),
        ("//ul/descendant::li/following-sibling::li", 2),
        ("//li[contains(., '$x:y(')]", 0),
        ("concat(//li[1], //li//text())", 1),
        ("//div//p/ancestor::body", 1),
        ("//li/preceding::p", 2),
        ("//comment()", 0),
    ],
)
def test_xpath_counts(path, count):
    """Nodes are counted, numbers are taken as counts, truth and text count as one."""
    assert xpath(path) == count


@pytest.mark.parametrize(
    "path",
    [
        "",
        "//",
        "//li[",
        "//a)",
        "document('x')",
        "id('a')",
        "re:test(., 'x')",
        "unknown(1)",
        "$x",
        "//ns:a",
        "//ns:*",
        "count('x')",
        "substring('a')",
        "(" * 1_900,
        "//a[" * 400 + "]" * 400 + "]",
        "\x01",
        "'unclosed",
    ],
)
def test_bad_xpaths_are_refused(path):
    """Syntax errors, and whatever goes beyond the core functions of XPath 1.0, are a BadQuery."""
    with pytest.raises(BadQuery):
        check_xpath(path)


@pytest.mark.parametrize(
    "path",
    [
        "//div//p",
        "//p/following-sibling::p",
        "//p/following::p",
        "count(//div//p)",
        "//p/ancestor::div",
        "//p/preceding::b",
        "//p[following::b]",
    ],
)
def test_exploding_xpaths_are_not_run(path):
    """An XPath that would keep libxml2 busy for minutes on this page is not run."""
    page = "<div>" * 250 + "<p>x</p>" * 50_000
    with pytest.raises(Unanswerable, match="too large"):
        xpath(path, page)


@pytest.mark.parametrize(
    "selector", ["li:nth-child(2)", "li:not(a ~ li)", "li:last-of-type:nth-last-child(3n)"]
)
def test_selectors_that_count_too_much_are_not_run(selector):
    """Counting the siblings of each of very many siblings is not begun."""
    root = tree("<li>" * 60_000)
    with pytest.raises(Unanswerable, match="too large"):
        count_selector(selector, root, html=True)


def test_large_pages_are_searched():
    """Where one node looks around, or few do, a large page is no obstacle."""
    page = "<h2>x</h2>" + "<table>" + "<tr><td>a<td>b" * 5_000 + "</table>"
    assert xpath("//h2/following-sibling::table", page) == 1
    assert xpath("//table//tr", page) == 5_000
    assert xpath("//tr/td", page) == 10_000
    assert xpath("//table/tr//td", page) == 10_000


def test_an_xpath_that_fails_on_a_page_is_unanswerable():
    """What shows only on the page at hand is told, not raised as something else."""
    path = "//li[count(string(.)) > 1]"
    check_xpath(path)
    with pytest.raises(Unanswerable):
        xpath(path)


DOCUMENT = {"items": [{"id": 1, "name": "a\nb"}, {"id": 2, "name": "bc"}], "wanted": 2, "none": None}


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("$", 1),
        ("$.items", 1),
        ("$.items[*]", 2),
        ("$.nothing", 0),
        ("$.none", 1),
        ("$..id", 2),
        ("$.items[?@.id == $.wanted]", 1),
        ("$.items[?length(@.name) > 2 && !(@.id == 2)]", 1),
        ("$.items[?match(@.name, 'b.')]", 1),
        ("$.items[?match(@.name, 'b')]", 0),
        ("$.items[?match(@.name, 'a.b')]", 0),
        ("$.items[?search(@.name, '[.b]')]", 2),
        ("$.items[?search(@.name, 'a\\\\nb|x')]", 1),
        ("$.items[?search(@.id, 'x')]", 0),
        ("$.items[?search(@.name, @.id)]", 0),
        ("$.items[?search(@.name, '(')]", 0),
        ("$.items[?count(@.*) == 2]", 2),
    ],
)
def test_json_paths_count(path, count):
    """A JSONPath counts nodes, and its regular expressions are I-Regexps."""
    assert json_path(path, DOCUMENT) == count


@pytest.mark.parametrize(
    "path",
    [
        "",
        "items",
        "$.",
        "$[",
        "$[?unknown(@)]",
        "$[?length(@.*) > 1]",
        "$..*..*..*",
        "$" + "[*,*]" * 7,
        "$[?@.a[?@.b[?@..c..d..e]]]",
        "$[?count($..*) > 1]",
        "$[?$.a[*] && @.b]",
        "$[?" + "(" * 1_900,
        "$[" + "9" * 1_900 + "]",
        "$[?@ == 1" + "0" * 10 + "e999]",
    ],
)
def test_bad_json_paths_are_refused(path):
    """Syntax errors, and paths that could visit a value over and over, are a BadQuery."""
    with pytest.raises(BadQuery):
        check_json_path(path)


def test_json_paths_survive_any_document():
    """Endless nesting, patterns in the document, and half characters find nothing and raise nothing."""
    deep: object = 1
    for _ in range(50_000):
        deep = [deep]
    assert json_path("$..a", deep) == 0
    assert json_path("$[?@ == $[1]]", [deep, deep]) in (0, 2)
    hostile = [{"text": "a" * 50_000, "pattern": "(a|a)*b"}, {"text": "\ud800", "pattern": "\ud800"}]
    assert json_path("$[?match(@.text, @.pattern)]", hostile) in (0, 1)
    assert json_path("$[?match(@.text, @.pattern)]", [{"text": "a", "pattern": "a" * 5_000}]) == 0


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b+", "abbc", "bb"),
        (r"\d{4}-\d{2}", "on 2024-05-06", "2024-05"),
        ("(?i)ÉTÉ", "un été", "été"),
        ("^x", "ax", None),
        ("", "ab", ""),
        (r"\pL+", "日本 x", "日本"),
        ("a", "\ud800a", "a"),
    ],
)
def test_regexes_find(pattern, text, found):
    """The first match is given as text."""
    assert find_regex(pattern, text) == found


@pytest.mark.parametrize(
    "pattern", ["(", "a(?=b)", r"(a)\1", "a{1001}", r"(?:\pL{50}){50}", r"(?:\pL{1,20}){1,20}", "[z-a]"]
)
def test_bad_regexes_are_refused(pattern):
    """Syntax errors, look-around, back-references and patterns without measure are a BadQuery."""
    with pytest.raises(BadQuery):
        check_regex(pattern)


@pytest.mark.parametrize("pattern", ["(x+x+)+y", "(.*)*=", "^(a|a)*b$"])
def test_regexes_take_linear_time(pattern):
    """What hangs a backtracking engine is over at once."""
    assert seconds(lambda: find_regex(pattern, "x" * 100_000 + "a" * 100_000)) < 2


def test_what_a_library_said_is_short():
    """Words of a library are one line; without words the error's name stands."""
    assert said(ValueError("a\n b" + "x" * 500)) == "a b" + "x" * 197
    assert said(ValueError(b"bytes")) == "bytes"
    assert said(RecursionError()) == "RecursionError"


CODE = st.text(alphabet="abp$@.*/[]()?!=<>'\"|,:+~#-_ 0129&\\^{}é", max_size=40)


@given(CODE)
def test_no_query_raises_anything_else(text):
    """Whatever is written, it is taken or it is a BadQuery, and what is taken can be run."""
    root, document = tree(PAGE), json.loads('{"a": [1, {"b": "p"}]}')
    for check, run in (
        (
            check_selector,
            lambda: count_selector(text, root, html=True) + count_selector(text, root, html=False),
        ),
        (check_xpath, lambda: count_xpath(text, root)),
        (check_json_path, lambda: count_json_path(text, document)),
        (check_regex, lambda: len(find_regex(text, PAGE) or "")),
    ):
        try:
            check(text)
            assert run() >= 0
        except (BadQuery, Unanswerable):
            continue
