"""The seam between pages and items: texts cleaned, URLs checked, dates untouched; then the schema."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.urls import BadURL, whatwg_href
from pravda.parsing.clean import Fix, clean_item, clean_text
from pravda.parsing.runner import Runner
from pravda.parsing.schema import BadSchema, load_schema
from pravda.parsing.values import Item, Repair, Trouble
from tests.groves import URL, grove, job, write


def cleaned(item: Item) -> tuple[Item, list[Repair]]:
    """An item cleaned, with what was repaired."""
    repairs: list[Repair] = []
    return clean_item(item, "items[3]", URL, repairs.append), repairs


@pytest.mark.parametrize(
    ("text", "clean", "fixes"),
    [
        ("as it is", "as it is", ()),
        ("日本語 – «ёлка» 🙂 ½ ﬁ １２", "日本語 – «ёлка» 🙂 ½ ﬁ １２", ()),
        ("a\x00b\x1b[31mc\x7f\x9f", "ab[31mc", (Fix.CONTROL,)),
        ("a\ud800b\ufffe", "a\ufffdb", (Fix.CONTROL,)),
        ("a\u200bb\ufeffc\u2060d\u00ade", "abcde", (Fix.ZERO_WIDTH,)),
        ("a\U000e0041b\u3164", "ab", (Fix.ZERO_WIDTH,)),
        ("\u202egnp.exe\u202c", "gnp.exe", (Fix.BIDI,)),
        ("a\u2066b\u2069\u200f", "ab", (Fix.BIDI,)),
        ("  a \t\n b\u00a0c\u3000d\u2028e ", "a b c d e", (Fix.WHITE_SPACE,)),
        ("<b>Big</b> <i class='x'>day</i>", "Big day", (Fix.MARKUP,)),
        ("one<br>two<p>three", "one two three", (Fix.MARKUP,)),
        ("<!-- note -->a<script>alert(1)</script>b", "a b", (Fix.MARKUP, Fix.WHITE_SPACE)),
        ("a<script>never ends", "a", (Fix.MARKUP, Fix.WHITE_SPACE)),
        ("Fish &amp; Chips &#x2019; &eacute;", "Fish & Chips ’ é", (Fix.MARKUP,)),
        ("&amp;amp;amp;lt;", "<", (Fix.MARKUP,)),
        ("Fish &amp;Chips;", "Fish &Chips;", (Fix.MARKUP,)),
        ("&lt;b&gt;x&lt;/b&gt;", "x", (Fix.MARKUP,)),
        ("a&#8203;b", "ab", (Fix.ZERO_WIDTH, Fix.MARKUP)),
        # somebody's text, not markup
        ("a < b and c > d", "a < b and c > d", ()),
        ("<TBD> AT&T &nonsense; R&D;", "<TBD> AT&T &nonsense; R&D;", ()),
        ("x &copy y", "x &copy y", ()),
        # joiners are spelling here, and a trick there
        ("نمی\u200cخواهم", "نمی\u200cخواهم", ()),
        ("क्\u200dष", "क्\u200dष", ()),
        ("👩\u200d🚀", "👩\u200d🚀", ()),
        ("pay\u200dpal \u200c", "paypal", (Fix.ZERO_WIDTH, Fix.WHITE_SPACE)),
        # no form of a date is touched
        ("2026-03-01", "2026-03-01", ()),
        ("２０２６年３月１日", "２０２６年３月１日", ()),
        ("03/04/26 5 PM", "03/04/26 5 PM", ()),
    ],
)
def test_texts(text, clean, fixes):
    """A text comes out as a reader sees it; what was done is named."""
    assert clean_text(text) == (clean, fixes)


NASTY = st.text(
    st.sampled_from("ab<>&;/!-#x0 amplt\u200b\u200d\u202e\x00\ud800\n\u00a0brscipt♥👩क") | st.characters(),
    max_size=80,
)


@given(NASTY)
def test_cleaning_is_done_once(text):
    """What is clean stays as it is."""
    clean, _ = clean_text(text)
    assert clean_text(clean) == (clean, ())


@given(NASTY)
def test_nothing_harmful_is_left(text):
    """No control character, no half character, no direction mark, no odd white space survives."""
    clean, _ = clean_text(text)
    clean.encode()
    assert clean == " ".join(clean.split())
    assert not set(clean) & {chr(code) for code in (*range(32), *range(0x7F, 0xA0), *range(0x202A, 0x202F))}


@pytest.mark.parametrize(
    "text",
    [
        "<" * 200_000,
        "<b" * 200_000,
        "<b>" * 200_000,
        "<script>" * 100_000,
        "<!--" * 100_000,
        "&amp;" * 200_000,
        "&#38;#38;" * 100_000,
        "<" * 100_000 + "b>" * 100_000,
        "&" * 100_000 + "amp;" * 100_000,
        "\u200d" * 200_000,
        " " * 200_000 + "x",
        "&amp;" * 100_000 + "x",
    ],
    ids=lambda text: repr(text[:8]),
)
def test_hostile_texts_take_no_time(text):
    """No text makes cleaning slow."""
    began = time.perf_counter()
    clean, _ = clean_text(text)
    assert time.perf_counter() - began < 3
    assert len(clean) <= len(text)


@pytest.mark.parametrize(
    ("key", "value", "out"),
    [
        ("url", "https://other.example/a?b=1&c=2#d", "https://other.example/a?b=1&c=2#d"),
        ("url", " https://other.example/ ", "https://other.example/"),
        ("url", "HTTPS://Other.example", "HTTPS://Other.example"),
        ("url", "/a b", "https://example.org/a%20b"),
        ("href", "?page=2", "https://example.org/list?page=2"),
        ("imageUrl", "//cdn.example/x.png", "https://cdn.example/x.png"),
        ("source_link", "x", "https://example.org/x"),
        ("url", "", ""),
        ("url", "javascript:alert(1)", None),
        ("url", "java\nscript:alert(1)", None),
        ("url", "data:text/html,x", None),
        ("url", "mailto:a@b.example", None),
        ("url", "http://[", None),
        ("url", "https://" + "a" * 70_000, None),
        # elsewhere only what could run is taken out
        ("title", "javascript:alert(1)", None),
        ("title", "DATA:text/html;base64,AAAA", None),
        ("title", "data: what we know", "data: what we know"),
        ("title", "javascript: the good parts", "javascript: the good parts"),
        ("title", "/a/b", "/a/b"),
        ("curl", "a relative word", "a relative word"),
    ],
)
def test_urls(key, value, out):
    """A URL is http or https and absolute, or it is null; texts under other keys are left to be texts."""
    item, _ = cleaned({key: value})
    assert item == {key: out}


@given(st.from_regex(r"/[A-Za-z0-9_~.?=&+%/-]{0,30}", fullmatch=True))
def test_links_are_resolved_as_a_browser_does(link):
    """Whatever way is taken to it, a link comes out as the URL Standard has it, or as null where it is none."""
    item, _ = cleaned({"url": link})
    try:
        assert item == {"url": whatwg_href(link, URL)}
    except BadURL:
        assert item == {"url": None}


def test_repairs_name_their_place():
    """Each repair says where, through lists and objects, also in keys."""
    item, repairs = cleaned(
        {
            "title": "a  b",
            "links": ["/x", {"deep er": "c\x00", "n": 1}],
            "odd\u200b key": None,
            "odd key": "left out",
        }
    )
    assert item == {
        "title": "a b",
        "links": ["https://example.org/x", {"deep er": "c", "n": 1}],
        "odd key": None,
    }
    assert [(repair.path, repair.what) for repair in repairs] == [
        ("items[3].title", ("white_space",)),
        ("items[3].links[1]['deep er']", ("control",)),
        ("items[3]['odd key'] (key)", ("zero_width",)),
        ("items[3]['odd key']", ("double_key",)),
    ]


SCHEMAS = """
    from datetime import date
    from pydantic import BaseModel, field_validator

    class Event(BaseModel):
        title: str
        day: date
        tags: list[str] = []

    class Raises(BaseModel):
        title: str

        @field_validator("title")
        @classmethod
        def check(cls, value):
            raise RuntimeError("a bug")

    class Asserts:
        @staticmethod
        def model_validate(value):
            raise ValueError("not pydantic's own")

    nothing = 1

    def parse(page):
        return page.json
"""
EVENT = {
    "type": "object",
    "required": ["title", "day"],
    "properties": {
        "title": {"type": "string"},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
GIVEN = [
    {"title": "a", "day": "2026-03-01"},
    {"title": "b", "day": "1 March"},
    {"day": "2026-03-01", "title": "c", "tags": ["x", 1]},
    {"title": "d", "day": "2026-03-02"},
]


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """A runner over a tree with schemas."""
    root = grove(tmp_path_factory.mktemp("grove"), schemas=SCHEMAS)
    write(root, "event.json", json.dumps(EVENT))
    write(root, "remote.json", '{"$ref": "http://127.0.0.1:9/event.json"}')
    write(root, "broken.json", "{")
    write(root, "list.json", "[]")
    write(root, "wrong.json", '{"type": "nonsense"}')
    with Runner(root) as runner:
        yield runner


def held_to(runner: Runner, schema: str, given_items: object = GIVEN):
    """Items held to a schema."""
    return runner.run(job("parsers.schemas:parse", json.dumps(given_items).encode(), schema=schema))


@pytest.mark.parametrize("schema", ["parsers.schemas:Event", "event.json"])
def test_items_that_do_not_fit_are_left_out_and_told(runner, schema):
    """A schema, be it a model or JSON Schema, keeps items out and names their place in what the parser gave."""
    if schema.endswith(".json"):
        pytest.importorskip("jsonschema", reason="needs the extra jsonschema")
    found = held_to(runner, schema)
    assert [item["title"] for item in found.items or ()] == ["a", "d"]
    assert found.failed == 2
    assert [failure.path for failure in found.failures] == ["items[1].day", "items[2].tags[1]"]
    assert all(failure.detail for failure in found.failures)


def test_many_failures_are_counted(runner):
    """The first hundred failures are told, the rest counted."""
    found = held_to(runner, "parsers.schemas:Event", [{}] * 300)
    assert (found.items, found.failed, len(found.failures)) == ((), 300, 100)


@pytest.mark.parametrize(
    ("schema", "kind", "words"),
    [
        ("parsers.schemas:nothing", Trouble.NOT_LOADED, "is no pydantic model"),
        ("parsers.schemas:absent", Trouble.NOT_LOADED, "is no pydantic model"),
        ("parsers.absent:Event", Trouble.NOT_LOADED, "No module named 'parsers.absent'"),
        ("parsers.schemas:Raises", Trouble.RAISED, "RuntimeError: a bug"),
        ("parsers.schemas:Asserts", Trouble.RAISED, "ValueError: not pydantic's own"),
        ("absent.json", Trouble.NOT_LOADED, "absent.json cannot be read as JSON"),
        ("broken.json", Trouble.NOT_LOADED, "broken.json cannot be read as JSON"),
        ("list.json", Trouble.NOT_LOADED, "list.json is no JSON Schema"),
        ("wrong.json", Trouble.NOT_LOADED, "wrong.json is no JSON Schema: 'nonsense' is not valid"),
        ("remote.json", Trouble.RAISED, "Unresolvable"),
    ],
)
def test_schemas_that_cannot_be_used(runner, schema, kind, words):
    """A schema that cannot be used is the source's failure; what it refers to elsewhere is never fetched."""
    if schema.endswith(".json"):
        pytest.importorskip("jsonschema", reason="needs the extra jsonschema")
    problem = held_to(runner, schema).problem
    assert problem is not None
    assert problem.trouble is kind
    assert words in problem.detail


def test_without_the_extra_a_json_schema_says_so(tmp_path, monkeypatch):
    """Where jsonschema is not installed, the message names the extra."""
    monkeypatch.setitem(__import__("sys").modules, "jsonschema.validators", None)
    with pytest.raises(BadSchema, match="needs the extra `jsonschema`"):
        load_schema("event.json", tmp_path)


def test_a_source_may_go_without_cleaning(runner):
    """With `sanitize = false` items leave as the parser gave them, half characters included."""
    given_items = [{"title": "a  <b>\ud800\u202e", "url": "javascript:x"}]
    found = runner.run(
        job("parsers.schemas:parse", json.dumps(given_items).encode(), sanitize=False, schema=None)
    )
    assert found.items == tuple(given_items)
    assert found.repaired == 0


def test_repairs_are_counted(runner):
    """The first hundred repairs are told, the rest counted."""
    found = runner.run(job("parsers.schemas:parse", json.dumps([{"a": " x"}] * 300).encode()))
    assert (found.repaired, len(found.repairs)) == (300, 100)
