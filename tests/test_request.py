"""What a caller may ask for, and what is refused at the door."""

from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.mistake import BadRequest
from pravda.core.request import DEFAULT_MAX_BYTES, OnFailure, Request, RobotsMode, Timeouts, TlsMode
from pravda.core.rules import Rules
from pravda.core.states import State

URL = "https://example.org/list"
FAILING = frozenset({State.BLOCKED, State.GONE, State.DOWN, State.PARTIAL})


def request(**fields):
    return Request.parse(URL, **fields)


def refusal(**fields):
    with pytest.raises(BadRequest) as refused:
        request(**fields)
    assert len(str(refused.value)) < 400
    str(refused.value).encode()
    return refused.value.field


def test_defaults():
    """A bare URL is a GET through the HTTP engine, always fresh, that any failure may not replace."""
    bare = request()
    assert bare.url.page == URL
    assert (bare.method, bare.headers, bare.cookies, bare.body, bare.engine) == ("GET", (), (), None, "http")
    assert (bare.max_age, bare.max_stale_age, bare.stale_if, bare.key) == (None, None, FAILING, None)
    assert (bare.conditional, bare.artifacts, bare.expect) == (False, (), Rules())
    assert (bare.timeouts, bare.max_bytes) == (Timeouts(), DEFAULT_MAX_BYTES)
    assert (bare.tls, bare.on_failure) == (TlsMode.VERIFY, OnFailure.RAISE)


@pytest.mark.parametrize(
    ("field", "given", "read"),
    [
        ("method", "post", "POST"),
        ("headers", {"Accept": " text/csv\t"}, (("Accept", "text/csv"),)),
        ("headers", [["A", "1"], ("a", "2")], (("A", "1"), ("a", "2"))),
        ("headers", {"X": "caf\xe9"}, (("X", "caf\xe9"),)),
        ("cookies", {"a": "1"}, (("a", "1"),)),
        ("cookies", [("prefs[x]", '"a, b"')], (("prefs[x]", '"a, b"'),)),
        ("engine", "http", "http"),
        ("expect", {"selector": "table"}, Rules(selector=("table",))),
        ("expect", Rules(min_bytes=1), Rules(min_bytes=1)),
        ("max_age", "1h30m", 5400.0),
        ("max_age", 0, 0.0),
        ("max_stale_age", "P7D", 604800.0),
        ("max_stale_age", 0, 0.0),
        ("stale_if", "down, blocked", frozenset({State.DOWN, State.BLOCKED})),
        ("stale_if", ["gone"], frozenset({State.GONE})),
        ("stale_if", frozenset({State.GONE}), frozenset({State.GONE})),
        ("stale_if", [], frozenset()),
        ("key", "list 1", "list 1"),
        ("conditional", True, True),
        ("artifacts", "body, request,body", ("body", "request")),
        ("artifacts", ["payload"], ("payload",)),
        ("timeouts", {"total": "2m", "idle": 1}, Timeouts(total=120.0, idle=1.0)),
        ("timeouts", Timeouts(connect=1.0), Timeouts(connect=1.0)),
        ("max_bytes", 1, 1),
        ("tls", "insecure", TlsMode.INSECURE),
        ("tls", TlsMode.INSECURE, TlsMode.INSECURE),
        ("on_failure", "return", OnFailure.RETURN),
    ],
)
def test_good_values(field, given, read):
    """A good value is read into its one form."""
    assert getattr(request(**{field: given}), field) == read


@pytest.mark.parametrize("body", ["é", "é".encode(), bytearray("é".encode()), memoryview("é".encode())])
def test_body(body):
    """A body is bytes, or text sent as UTF-8."""
    assert request(method="POST", body=body).body == "é".encode()


def test_none_means_absent():
    """None is the same as not given, so that loose callers can pass every field."""
    names = "method headers body expect max_age stale_if key artifacts timeouts max_bytes tls robots"
    assert request(**dict.fromkeys(names.split())) == request()
    assert Timeouts().but(None) == Timeouts()


def test_robots():
    """A capture that somebody asked for ignores robots.txt unless told to obey."""
    assert request(robots="ignore") == request()
    assert request(robots="obey").robots is RobotsMode.OBEY


HUGE = 10**5000
BAD: list[tuple[str, list[object]]] = [
    ("method", ["HEAD", "head", "TRACE", "CONNECT", "", "GET ", 5, b"GET", "ge\ud800"]),
    ("headers", ["A: b", b"x", 5, HUGE, ["A"], [["A"]], [["A", 1]], {"A": 1}, {1: "a"}, [["A", "b", "c"]]]),
    ("headers", [[None], {"A": None}, [("a", b"b")], [["A", "b"]] * 201, cycle([("a", "b")])]),
    ("cookies", ["a=1", 5, [["a"]], {"a": 1}, {"a": None}, {f"c{n}": "" for n in range(151)}]),
    ("cookies", [{f"c{n}": "x" * 1000 for n in range(9)}, [("a", "b")] * 201]),
    ("body", [5, ["a"], {"a": 1}, "\ud800", HUGE]),
    ("engine", ["curl", "HTTP", "", 5, None.__class__]),
    ("expect", ["selector=x", 5, [["selector", "x"]], HUGE]),
    ("max_age", [-1, -0.5, "-1", float("nan"), float("inf"), True, "soon", "", [], {}, HUGE]),
    ("max_stale_age", [-1, "-7d", float("nan"), float("inf"), False, "1y", b"1d", HUGE]),
    (
        "stale_if",
        ["live", "", "down,", "dowm", ["live"], [5], [[]], 5, True, {"down": True}, b"down", [HUGE]],
    ),
    ("key", ["", "  ", "a\nb", "a\0", "\ud800", "x" * 1025, 5, b"k", True]),
    ("conditional", ["true", 1, 0, [], HUGE]),
    ("artifacts", ["dom", "screenshot", "", ["a"], [["body"]], [5], 5, b"body", {"body": 1}]),
    ("timeouts", ["5s", 5, [["total", 5]], HUGE]),
    ("max_bytes", [0, -1, 1.5, "5", True, 2**53, HUGE, float("nan"), None.__class__]),
    ("tls", ["off", "", True, 5]),
    ("on_failure", ["ignore", "", False]),
    ("robots", ["OBEY", "", True]),
]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param(field, value, id=f"{field}-{n}")
        for field, values in BAD
        for n, value in enumerate(values)
    ],
)
def test_bad_values(field, value):
    """A bad value of any kind is a mistake that names its field and stays short."""
    assert refusal(**{field: value}) == field


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"headers": {"A b": "1"}}, "headers.'A b'"),
        ({"headers": {"": "1"}}, "headers.''"),
        ({"headers": {"A:": "1"}}, "headers.'A:'"),
        ({"headers": {":path": "/"}}, "headers.':path'"),
        ({"headers": {"A\r\nB": "1"}}, r"headers.'A\r\nB'"),
        ({"headers": {"\ud800": "1"}}, r"headers.'\ud800'"),
        ({"headers": {"A" * 257: "1"}}, "headers.'" + "A" * 59),
        ({"headers": {"A": "b\r\nC: d"}}, "headers.A"),
        ({"headers": {"A": "b\0"}}, "headers.A"),
        ({"headers": {"A": "\u20ac"}}, "headers.A"),
        ({"headers": {"A": "\ud800"}}, "headers.A"),
        ({"headers": {"A": "x" * 65_537}}, "headers.A"),
        ({"headers": {"host": "x"}}, "headers.host"),
        ({"headers": {"Content-Length": "5"}}, "headers.Content-Length"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "headers.Transfer-Encoding"),
        ({"headers": {"If-None-Match": '"a"'}}, "headers.If-None-Match"),
        ({"headers": {"Cookie": "a b=1"}}, "headers.Cookie.'a b'"),
        ({"headers": {"Cookie": "=1"}}, "headers.Cookie.''"),
        ({"cookies": {"": "1"}}, "cookies.''"),
        ({"cookies": {"a=b": "1"}}, "cookies.'a=b'"),
        ({"cookies": {"a": "b;c"}}, "cookies.a"),
        ({"cookies": {"a": "b\r\nSet: x"}}, "cookies.a"),
        ({"cookies": {"a": "b\tc"}}, "cookies.a"),
        ({"cookies": {"a": "é"}}, "cookies.a"),
        ({"cookies": {"a": "x" * 4096}}, "cookies.a"),
        ({"expect": {"selektor": "x"}}, "expect.selektor"),
        ({"expect": {"selector": "a["}}, "expect.selector"),
        ({"expect": {"matches": "("}}, "expect.matches"),
        ({"expect": {"min_matches": 3}}, "expect.min_matches"),
        ({"timeouts": {"all": 5}}, "timeouts.all"),
        ({"timeouts": {"a\nb\ud800": 5}}, r"timeouts.'a\nb\ud800'"),
        ({"timeouts": {5: 5}}, "timeouts.5"),
        ({"timeouts": {"total": 0}}, "timeouts.total"),
        ({"timeouts": {"total": -1}}, "timeouts.total"),
        ({"timeouts": {"total": "soon"}}, "timeouts.total"),
        ({"max_stael_age": 5}, "max_stael_age"),
        ({"a b\n": 5}, r"'a b\n'"),
        ({"x" * 10_000: 5}, "'" + "x" * 59),
        ({"body": "x"}, "body"),
    ],
)
def test_mistakes_within_a_field(fields, name):
    """A mistake deep inside a field names the very part."""
    assert refusal(**fields) == name


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org/", "file:///etc/passwd", "http://[bad", "http://a b/", 5, None, b"x",
     "http://" + "a" * 70_000, "javascript:alert(1)", "http://exa\ud800mple.org:99999/"],
)  # fmt: skip
def test_bad_urls(url):
    """What is no http or https URL is a mistake of the field `url`, and no password is repeated."""
    with pytest.raises(BadRequest) as refused:
        Request.parse(url)
    assert refused.value.field == "url"


def test_a_password_is_not_repeated():
    """A broken URL may hold a password, which no message shows."""
    with pytest.raises(BadRequest) as refused:
        Request.parse("http://user:hunter2@[bad/")
    assert "hunter2" not in str(refused.value)


def test_unknown_field_names_the_known_ones():
    """An unknown field is refused with the fields there are."""
    with pytest.raises(BadRequest, match="max_stale_age, method"):
        request(max_stale="7d")


def test_cookie_header_is_moved():
    """A Cookie header lives under the rules of cookies, after those given as such."""
    moved = request(headers=[("cookie", ' a=1; b="x=y";; c '), ("X", "1")], cookies={"z": "0"})
    assert moved.headers == (("X", "1"),)
    assert moved.cookies == (("z", "0"), ("a", "1"), ("b", '"x=y"'), ("c", ""))


def test_a_get_with_an_empty_body_is_a_get():
    """An empty body is no body."""
    assert request(body="").method == "GET"


LOOSE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = "method headers cookies body engine expect max_age max_stale_age stale_if key conditional artifacts"


@given(st.sampled_from([*FIELDS.split(), "timeouts", "max_bytes", "tls", "on_failure", "robots"]), LOOSE)
def test_any_value_is_taken_or_refused(field, value):
    """Whatever JSON stands in a field, the answer is a request or a mistake that names the field."""
    try:
        taken = request(**{field: value})
    except BadRequest as refused:
        name = refused.field
    else:
        assert isinstance(taken, Request)
        name = field
    assert name.startswith(field)
