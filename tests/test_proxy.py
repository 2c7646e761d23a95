"""The configured proxy: its troubles are ours, its credentials stay with it, and no other proxy is asked."""

import socket

import pytest

from pravda.core.mistake import BadRequest
from pravda.core.states import FaultSide
from tests.certificates import authority
from tests.looking import Look, look
from tests.origin import BODY, HT, Origin, R
from tests.proxy import Proxy
from tests.test_transfer import full_backlog

HOST = "page.example"
PASSWORD = "hush-hush"


@pytest.fixture
def origin():
    with Origin() as made:
        made.routes["/"] = [R(b"200 OK", BODY, HT)]
        yield made


@pytest.fixture
def secure():
    with Origin(tls=authority().server(HOST)) as made:
        made.routes["/"] = [R(b"200 OK", BODY, HT)]
        yield made


def through(proxy: Proxy, url: str, credentials: str = "", **fields: object) -> Look:
    """The look at a page through a proxy."""
    using = {"proxy": f"http://{credentials}127.0.0.1:{proxy.port}", "ca_file": authority().file}
    return look(url, using=using, **fields)


def test_plain_pages_are_asked_of_the_proxy(origin):
    """The request goes out in absolute form, escapes untouched, and the name is the proxy's to resolve."""
    origin.routes["/a%2fb"] = [R(b"200 OK", BODY, HT)]
    with Proxy(("127.0.0.1", origin.port)) as proxy:
        seen = through(proxy, f"http://{HOST}/a%2fb?q=%c3")
    assert (seen.outcome, seen.body) == (("live", None), BODY)
    assert proxy.log[0].startswith(b"GET http://page.example/a%2fb?q=%c3 HTTP/1.1\r\n")
    assert origin.targets() == ["/a%2fb?q=%c3"]
    assert seen.kept["request"] == proxy.log[0]
    assert seen.response.remote_address is None


def test_secure_pages_go_through_a_tunnel(secure):
    """The proxy's own answer is no part of the evidence; the certificate is the page's."""
    with Proxy(("127.0.0.1", secure.port)) as proxy:
        seen = through(proxy, f"https://{HOST}/", headers={"X-Mine": "secret"})
    assert (seen.outcome, seen.body) == (("live", None), BODY)
    assert proxy.log[0].startswith(b"CONNECT page.example:443 HTTP/1.1\r\n")
    assert b"\r\nUser-Agent: pravda/test\r\n" in proxy.log[0]
    assert b"X-Mine" not in proxy.log[0]
    assert b"X-From-Proxy" not in seen.kept["response"]
    assert seen.kept["request"] == secure.log[0]
    assert seen.response.tls is not None
    assert seen.response.tls.verified


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_credentials_go_to_the_proxy_alone(origin, secure, scheme):
    """They are not sent to the page's server through a tunnel, and kept nowhere."""
    target = secure if scheme == "https" else origin
    with Proxy(("127.0.0.1", target.port), credentials=f"me:{PASSWORD}".encode()) as proxy:
        seen = through(proxy, f"{scheme}://{HOST}/", f"me:{PASSWORD}@")
    assert seen.outcome == ("live", None)
    if scheme == "https":
        assert b"roxy-" not in target.log[0]
    for secret in (PASSWORD, "bWU6aHVzaC1odXNo"):
        assert secret not in repr(seen)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("credentials", ["", f"me:wrong-{PASSWORD}@"])
def test_a_proxy_that_wants_credentials_is_our_own_fault(origin, secure, scheme, credentials):
    """407 from the proxy is local_proxy_auth, whether it comes as an answer or instead of a tunnel."""
    target = secure if scheme == "https" else origin
    with Proxy(("127.0.0.1", target.port), credentials=b"me:right") as proxy:
        seen = through(proxy, f"{scheme}://{HOST}/", credentials)
    assert seen.reason == "local_proxy_auth"
    assert seen.failure.fault is FaultSide.LOCAL
    assert target.log == []
    assert PASSWORD not in repr(seen)


def test_a_407_through_a_tunnel_is_the_servers(secure):
    """What a page's server says is not the proxy's word."""
    secure.routes["/"] = [R(b"407 Proxy Authentication Required", b"x", b"Proxy-Authenticate: Basic")]
    with Proxy(("127.0.0.1", secure.port)) as proxy:
        assert through(proxy, f"https://{HOST}/").outcome == ("blocked", "auth_required")


def test_a_407_without_a_proxy_is_the_servers(origin):
    """Straight from a server it is a login."""
    origin.routes["/"] = [R(b"407 Proxy Authentication Required", b"x", b"Proxy-Authenticate: Basic")]
    assert look(origin.url("/")).outcome == ("blocked", "auth_required")


@pytest.mark.parametrize("url", ["http://page.example/", "https://page.example/"])
@pytest.mark.parametrize(
    "refusal",
    [
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
        b"",
    ],
)
def test_a_proxy_that_refuses_a_tunnel_is_our_own_fault(url, refusal):
    """Without a tunnel nothing is known of the source; a plain answer cannot be told from the page's own."""
    with Proxy(("127.0.0.1", 9), refusal=refusal) as proxy:
        seen = through(proxy, url)
    if url.startswith("https"):
        assert seen.outcome == ("down", "local_proxy")
    else:
        assert seen.state.value in ("blocked", "down")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_down_is_our_own_fault(scheme):
    """Refused, unknown or silent, it is local_proxy and says nothing of the page."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        for proxy in (f"http://127.0.0.1:{port}", "http://proxy.invalid:3128", f"socks5h://127.0.0.1:{port}"):
            seen = look(f"{scheme}://{HOST}/", using={"proxy": proxy}, timeouts={"connect": 2})
            assert seen.outcome == ("down", "local_proxy")
            assert seen.failure.fault is FaultSide.LOCAL


def test_a_proxy_that_takes_no_connection_is_our_own_fault():
    """A timeout before the proxy was reached is the proxy's; one behind it would be the page's."""
    with full_backlog() as url:
        seen = look(f"http://{HOST}/", using={"proxy": url}, timeouts={"connect": 0.3})
    assert seen.outcome == ("down", "local_proxy")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        proxy = f"http://127.0.0.1:{silent.getsockname()[1]}"
        seen = look(f"https://{HOST}/", using={"proxy": proxy}, timeouts={"connect": 0.3})
    assert seen.outcome == ("down", "connect_timeout")


def test_addresses_inside_are_refused_through_a_proxy_too(origin):
    """What the URL itself shows is judged before a proxy is asked; names are the proxy's to resolve."""
    with Proxy(("127.0.0.1", origin.port)) as proxy:
        with pytest.raises(BadRequest):
            through(proxy, "http://169.254.169.254/")
        origin.routes["/"] = [R(b"302 Found", b"", b"Location: http://10.0.0.1/")]
        assert through(proxy, f"http://{HOST}/").outcome == ("blocked", "unsafe_address")
    assert len(proxy.log) == 1


def test_proxies_of_the_environment_are_not_asked(origin, monkeypatch):
    """Only the one that was configured for Pravda counts."""
    with Proxy(("127.0.0.1", origin.port)) as proxy:
        for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert look(origin.url("/")).outcome == ("live", None)
        assert proxy.log == []
        monkeypatch.setenv("no_proxy", "*")
        assert through(proxy, f"http://{HOST}/").outcome == ("live", None)
        assert len(proxy.log) == 1
