"""Budgets, limits, cancellation and machines that run out of things, over real sockets."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import textwrap
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pravda.core.evidence import Ending
from pravda.core.mistake import BadRequest
from pravda.core.ports import Order
from pravda.core.request import Request
from pravda.core.states import FaultSide
from pravda.engines.http import HttpEngine
from tests.certificates import authority
from tests.disks import small_disk
from tests.looking import Clock, Look, engine, laid_out, look, look_with, looks, options
from tests.origin import BODY, HT, K, Origin, R, Script, Sleep

MARGIN = 1.0  # seconds a busy machine may be late


@pytest.fixture
def origin():
    with Origin() as made:
        made.routes["/ok"] = [R(b"200 OK", BODY, HT)]
        yield made


@pytest.fixture
def silent():
    """A URL whose server takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def full_backlog() -> Iterator[str]:
    """A server that cannot take another connection, so that attempts to connect hang."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    waiting = [socket.socket() for _ in range(4)]
    try:
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        for each in (*waiting, listener):
            each.close()


def ran_out(seen: Look, budget: str) -> bool:
    """Whether the evidence names this budget."""
    return seen.evidence.trouble is not None and f"`{budget}`" in seen.evidence.trouble.detail


# budgets


def test_connecting_has_its_budget():
    """A server that takes no connection is a connect_timeout within the budget `connect`."""
    with full_backlog() as url:
        seen = look(url, timeouts={"connect": 0.3})
    assert seen.outcome == ("down", "connect_timeout")
    assert ran_out(seen, "connect")
    assert 0.3 <= seen.seconds < 0.3 + MARGIN
    assert seen.kept == {}


def test_the_tls_greeting_belongs_to_connecting(silent):
    """A server that takes the connection and greets nobody is a connect_timeout too."""
    seen = look(f"https://{silent}/", timeouts={"connect": 0.3})
    assert seen.outcome == ("down", "connect_timeout")
    assert seen.seconds < 0.3 + MARGIN


def test_the_first_byte_has_its_budget(silent):
    """Connected and then nothing is a response_timeout; the request that went out is kept."""
    seen = look(f"http://{silent}/", timeouts={"first_byte": 0.3})
    assert seen.outcome == ("down", "response_timeout")
    assert ran_out(seen, "first_byte")
    assert seen.seconds < 0.3 + MARGIN
    assert list(seen.kept) == ["request"]


def test_trickled_headers_do_not_renew_the_budget(origin):
    """Headers that come one by one must all be there within `first_byte`; what came is kept."""
    origin.routes["/"] = [b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n", Sleep(0.05)] * 100]
    seen = look(origin.url("/"), timeouts={"first_byte": 0.4})
    assert seen.outcome == ("down", "response_timeout")
    assert seen.seconds < 0.4 + MARGIN
    assert seen.kept["response"].startswith(b"HTTP/1.1 200 OK\r\nX: y\r\n")


def test_interim_answers_do_not_renew_the_budget(origin):
    """A server that keeps saying 102 does not hold a capture for ever."""
    origin.routes["/"] = [b"HTTP/1.1 102 Processing\r\n\r\n", Sleep(0.05)] * 100
    seen = look(origin.url("/"), timeouts={"first_byte": 0.4})
    assert seen.outcome == ("down", "response_timeout")
    assert seen.kept["interim"].startswith(b"HTTP/1.1 102 Processing\r\n\r\n")


def test_a_silence_inside_a_body_has_its_budget(origin):
    """A body that stops coming is a body_timeout of the budget `idle`."""
    origin.routes["/"] = [R(b"200 OK", b"begin", HT, cl=100), Sleep(5)]
    seen = look(origin.url("/"), timeouts={"idle": 0.3})
    assert (seen.outcome, seen.body) == (("partial", "body_timeout"), b"begin")
    assert ran_out(seen, "idle")
    assert seen.seconds < 0.3 + MARGIN


def test_a_body_has_its_budget(origin):
    """A body that keeps coming is a body_timeout of the budget `body`."""
    origin.routes["/"] = [R(b"200 OK", b"", HT, cl=1000), *[b"x", Sleep(0.05)] * 100]
    seen = look(origin.url("/"), timeouts={"body": 0.4})
    assert seen.outcome == ("partial", "body_timeout")
    assert ran_out(seen, "body")
    assert seen.evidence.content is not None
    assert seen.evidence.content.ending is Ending.TIMED_OUT
    assert seen.body.startswith(b"xx")


def test_all_redirects_share_the_total_budget(origin):
    """Each hop is quick enough, all together are not."""
    for number in range(20):
        hop = R(b"302 Found", b"", b"Location: /%d" % (number + 1))
        origin.routes[f"/{number}"] = [Sleep(0.15), hop]
    seen = look(origin.url("/0"), timeouts={"total": 0.5})
    assert seen.outcome == ("down", "response_timeout")
    assert ran_out(seen, "total")
    assert 2 <= len(seen.evidence.redirects) <= 3
    assert seen.seconds < 0.5 + MARGIN


def test_the_order_may_leave_less_than_the_request_allows(silent):
    """A second try has what the first one left."""
    seen = look(f"http://{silent}/", budget=0.2)
    assert ran_out(seen, "total")
    assert seen.seconds < 0.2 + MARGIN


# limits


def test_headers_without_end_are_cut(origin):
    """The stream of header lines stops at the limit; nothing grows with it."""
    origin.routes["/"] = [b"HTTP/1.1 200 OK\r\n", *[b"X: %s\r\n" % (b"y" * 1000)] * 100_000]
    seen = look(origin.url("/"))
    assert seen.outcome == ("down", "headers_too_large")
    assert len(seen.kept["response"]) <= 256 * 1024


@pytest.mark.parametrize("line", [b"X: y\r\n", b"a:\r\n", b" fold\r\n"])
def test_very_many_short_header_lines_cost_no_time(origin, line):
    """A quarter of a megabyte of tiny lines is read or refused in linear time."""
    origin.routes["/"] = [b"HTTP/1.1 200 OK\r\nX: y\r\n" + line * (260_000 // len(line)) + b"\r\nok"]
    seen = look(origin.url("/"))
    assert seen.outcome == ("down", "headers_too_large")
    assert seen.seconds < 2


def test_trailers_are_bounded_in_size_and_time(origin):
    """Trailers count as headers."""
    origin.routes["/"] = [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + b"a:\r\n" * 200_000
    ]
    seen = look(origin.url("/"))
    assert seen.state.value == "partial"
    assert seen.body == b"ok"
    assert seen.seconds < 2


def test_interim_answers_without_end_are_cut(origin):
    """Interim blocks count as headers."""
    origin.routes["/"] = [b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 1000] * 100
    seen = look(origin.url("/"))
    assert seen.outcome == ("down", "headers_too_large")


def test_redirects_without_end_are_a_loop(origin):
    """Twenty redirects are followed, to ever new URLs, and no more."""
    for number in range(40):
        origin.routes[f"/{number}"] = [R(b"302 Found", b"", b"Location: /%d" % (number + 1))]
    seen = look(origin.url("/0"))
    assert seen.outcome == ("down", "redirect_loop")
    assert len(seen.evidence.redirects) == 20
    assert len(origin.log) == 21


def test_redirects_that_change_a_cookie_each_time_end_as_well(origin):
    """New cookies make the same URL a new question, but not for ever."""
    counter = iter(range(1000))
    origin.routes["/"] = [
        lambda *_: R(b"302 Found", b"", b"Location: /", b"Set-Cookie: n=%d" % next(counter))
    ]
    assert look(origin.url("/")).outcome == ("down", "redirect_loop")
    assert len(origin.log) == 21


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow_with_a_stream(origin, tmp_path):
    """Of 300 MB that stream by, only pieces are ever in memory."""
    origin.routes["/"] = [R(b"200 OK", b"", b"Content-Type: video/mp2t", cl=False), *[bytes(1 << 20)] * 300]

    async def run() -> tuple[int, int]:
        peak, before = 0, resident()
        async with engine(spool_folder=tmp_path) as made:
            request = Request.parse(origin.url("/"))
            task = asyncio.create_task(made.observe(Order(request=request, budget=60)))
            while not task.done():
                peak = max(peak, resident())
                await asyncio.sleep(0.01)
            observed = task.result()
            size = observed.contents["body"].size
            for contents in observed.contents.values():
                contents.close()
        return size, peak - before

    size, growth = asyncio.run(run())
    assert size == 300 << 20
    assert growth < 40 << 20


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_more_headers_or_cookies_than_fit_are_a_mistake(origin):
    """What libcurl would cut or leave out without a word is refused before anything is sent."""
    with pytest.raises(BadRequest, match="headers"):
        look(origin.url("/ok"), headers={f"X-{n}": "v" * 60_000 for n in range(16)})
    with pytest.raises(BadRequest, match="cookies"):
        look(origin.url("/ok"), cookies={f"n{n}": "v" for n in range(151)})
    with pytest.raises(BadRequest, match="cookies"):
        look(origin.url("/ok"), cookies={"a": "v" * 5000, "b": "v" * 5000})
    assert origin.log == []


def test_a_large_request_head_is_recorded_whole(origin):
    """Heads that leave in several pieces are put together again."""
    seen = look(origin.url("/ok"), headers={f"X-{n}": "v" * 60_000 for n in range(14)})
    assert seen.kept["request"] == origin.log[0]
    assert len(origin.log[0]) > 800_000


# this machine's own troubles


def test_a_spool_that_cannot_be_written_keeps_what_it_has(origin, tmp_path):
    """A folder that is not there is our own storage_error; the bytes before it are evidence."""
    origin.routes["/"] = [R(b"200 OK", b"", HT, cl=3_000_000), b"a" * 500_000, *[b"b" * 500_000] * 5]
    seen = look(origin.url("/"), using={"spool_folder": tmp_path / "absent", "spool_memory": 1_000_000})
    assert seen.outcome == ("partial", "storage_unavailable")
    assert seen.failure.fault is FaultSide.LOCAL
    assert seen.evidence.content is not None
    assert seen.evidence.content.ending is not Ending.COMPLETE
    assert seen.body.startswith(b"a" * 100_000)


def test_a_full_disk_is_told_apart_from_the_source(origin, tmp_path):
    """A disk that fills while a body streams is disk_full, partial, with all that fitted."""
    with small_disk(tmp_path) as disk:
        origin.routes["/"] = [R(b"200 OK", b"", HT, cl=8 << 20), *[b"x" * (1 << 20)] * 8]
        seen = look(origin.url("/"), using={"spool_folder": disk, "spool_memory": 1000})
        assert seen.outcome == ("partial", "disk_full")
        assert seen.failure.fault is FaultSide.LOCAL
        assert 1_000_000 < len(seen.body) <= 2 << 20


def test_the_last_decoded_bytes_may_not_fit_either(origin, tmp_path):
    """What a decoder holds back until the end is written then, and may fail then."""
    origin.routes["/"] = [R(b"200 OK", zlib.compress(b"text " * 100), HT, b"Content-Encoding: deflate")]
    seen = look(origin.url("/"), using={"spool_folder": tmp_path / "absent", "spool_memory": 100})
    assert seen.outcome == ("partial", "storage_unavailable")
    assert seen.kept["payload"]


_STARVED = """
    import asyncio, json, os, resource, sys
    from tests.looking import engine, look_with

    async def run(url):
        outcomes = []
        for spare in range(0, 9 if "nowhere" not in url else 3):
            async with engine() as made:
                await look_with(made, sys.argv[2])  # everything that is opened once is open
                used = len(os.listdir("/proc/self/fd")) - 1
                resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, hard))
                outcomes.append((await look_with(made, url, fresh_connection=True)).outcome)
                resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        print(json.dumps(outcomes))

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    asyncio.run(run(sys.argv[1]))
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "nowhere.example"])
def test_a_process_out_of_descriptors_blames_itself(origin, host):
    """However few are left, it is resource_exhausted of our own and never the source's DNS or network."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_STARVED), origin.url("/ok", host), origin.url("/ok")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parent.parent,
    )
    outcomes = json.loads(done.stdout)
    assert ["down", "resource_exhausted"] in outcomes
    assert outcomes[-1] == ["live", None] or host == "nowhere.example"
    assert all(each in (["down", "resource_exhausted"], ["live", None]) for each in outcomes)


_SILENT_NAMES = """
    import asyncio, json, time
    from tests.looking import engine, look_with
    from pravda.core.request import Request
    from pravda.core.ports import Order

    async def run():
        async with engine() as made:
            seen = await look_with(made, "http://page.example.org/", timeouts={"connect": 0.4})
            task = asyncio.create_task(look_with(made, "http://page.example.org/"))
            await asyncio.sleep(0.2)
            task.cancel()
            cancelled = await task
            return [seen.outcome, seen.evidence.trouble.detail, cancelled.outcome]

    started = time.monotonic()
    result = asyncio.run(run())
    print(json.dumps([*result, time.monotonic() - started]))
"""


def test_silent_name_servers_hold_up_nothing(tmp_path):
    """They end with the budget `connect`, can be cancelled, and closing does not wait for them."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux can give a process name servers of its own")
    conf = tmp_path / "resolv.conf"
    conf.write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        try:
            server.bind(("127.0.0.1", 53))
        except OSError as problem:
            pytest.skip(f"port 53 is not to be had: {problem}")
        command = f'mount --bind "{conf}" /etc/resolv.conf || exit 77; exec "$@"'
        started = time.monotonic()
        done = subprocess.run(
            [
                "unshare",
                "--mount",
                "sh",
                "-c",
                command,
                "sh",
                sys.executable,
                "-c",
                textwrap.dedent(_SILENT_NAMES),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=Path(__file__).parent.parent,
        )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no name servers of one's own here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    outcome, detail, cancelled, seconds = json.loads(done.stdout)
    assert outcome in (["down", "dns_server_failure"], ["down", "local_network"])
    assert "`connect`" in detail
    assert cancelled == ["down", "cancelled"]
    assert seconds < 0.6 + 1.0 + MARGIN
    assert time.monotonic() - started < 10


_NO_NETWORK = """
    import asyncio, json
    from tests.looking import looks

    seen = looks("http://8.8.8.8/", "http://page.example.org/", timeouts={"connect": 3})
    print(json.dumps([each.outcome for each in seen]))
"""


def test_a_machine_without_network_blames_itself():
    """Neither an address out of reach nor a name without answer is the source's fault then."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux can take a process off the network")
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", textwrap.dedent(_NO_NETWORK)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parent.parent,
    )
    if done.returncode != 0 and "unshare" in done.stderr:
        pytest.skip(f"no network can be taken away here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["down", "local_network"]] * 2


# cancellation


async def cancelled(
    made: HttpEngine, url: str, after: Callable[[], Awaitable[None]], **fields: object
) -> Look:
    """What an attempt saw that is cancelled once `after` has come back."""
    request = Request.parse(url, **fields)
    task = asyncio.create_task(made.observe(Order(request=request, budget=20)))
    await after()
    task.cancel()
    return laid_out(await task, request)


def after_requests(origin: Origin, count: int) -> Callable[[], Awaitable[None]]:
    """Comes back when the origin has read so many requests, and a moment later."""

    async def wait() -> None:
        while len(origin.log) < count:  # noqa: ASYNC110  # the origin's threads know no events of this loop
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)

    return wait


async def a_moment() -> None:
    """Long enough for a handshake to have begun."""
    await asyncio.sleep(0.1)


def run_cancelled(url: str, after: Callable[[], Awaitable[None]], **fields: object) -> Look:
    """The same with an engine of its own, which must be as usable as before."""

    async def run() -> Look:
        async with engine() as made:
            return await cancelled(made, url, after, **fields)

    before = descriptors()
    seen = asyncio.run(run())
    assert seen.reason == "cancelled"
    assert seen.failure.fault is FaultSide.LOCAL
    assert settled(before)
    return seen


def descriptors() -> int:
    """Open descriptors of this process; 0 where they cannot be counted."""
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.exists() else 0


def settled(before: int) -> bool:
    """Whether no more descriptors are open than before, once the origin's threads have noticed."""
    deadline = time.monotonic() + 3
    while descriptors() > before and time.monotonic() < deadline:
        time.sleep(0.02)
    return descriptors() <= before


def test_cancelled_while_the_resolver_is_asked_again(monkeypatch):
    """Finding out why a name has no address is part of the attempt."""
    monkeypatch.setattr("pravda.engines.lookup._look_up", lambda host: asyncio.sleep(5))
    assert run_cancelled("http://nowhere.invalid/", a_moment).state.value == "down"


def test_cancelled_while_connecting():
    """Nothing was sent and nothing is kept."""
    with full_backlog() as url:
        seen = run_cancelled(url, a_moment)
    assert (seen.state.value, seen.kept) == ("down", {})


def test_cancelled_while_greeting(silent):
    """A TLS handshake under way is let go of."""
    assert run_cancelled(f"https://{silent}/", a_moment).state.value == "down"


def test_cancelled_while_waiting_for_an_answer(origin):
    """The request that went out is kept."""
    origin.routes["/"] = [Sleep(0.5)]
    seen = run_cancelled(origin.url("/"), after_requests(origin, 1))
    assert (seen.state.value, list(seen.kept)) == ("down", ["request"])


def test_cancelled_inside_the_body(origin):
    """Headers and the bytes that came are kept; it is partial."""
    origin.routes["/"] = [R(b"200 OK", b"begin", HT, cl=100), Sleep(0.5)]
    seen = run_cancelled(origin.url("/"), after_requests(origin, 1))
    assert (seen.state.value, seen.body) == ("partial", b"begin")


def test_cancelled_with_a_large_body_leaves_no_file(origin, tmp_path):
    """Spooled bytes are kept with the evidence, and the spool leaves nothing in its folder."""
    origin.routes["/"] = [R(b"200 OK", b"x" * 100_000, HT, cl=10**6), Sleep(0.5)]

    async def run() -> Look:
        async with engine(spool_folder=tmp_path, spool_memory=10) as made:
            return await cancelled(made, origin.url("/"), after_requests(origin, 1))

    assert len(asyncio.run(run()).body) == 100_000
    assert list(tmp_path.iterdir()) == []


def test_cancelled_after_a_redirect(origin):
    """The hops before are kept."""
    origin.routes["/"] = [R(b"302 Found", b"", b"Location: /slow")]
    origin.routes["/slow"] = [Sleep(0.5)]
    seen = run_cancelled(origin.url("/"), after_requests(origin, 2))
    assert (seen.state.value, seen.hops) == ("down", [("/", 302)])
    assert "hop-1-head" in seen.kept


def test_closing_an_engine_ends_what_it_runs(origin):
    """An attempt under way ends as cancelled, and the engine can be used again."""
    origin.routes["/"] = [R(b"200 OK", b"begin", HT, cl=100), Sleep(0.5)]

    async def run() -> tuple[Look, Look]:
        async with engine() as made:
            request = Request.parse(origin.url("/"))
            task = asyncio.create_task(made.observe(Order(request=request, budget=20)))
            await after_requests(origin, 1)()
            await made.close()
            ended = laid_out(await task, request)
            return ended, await look_with(made, origin.url("/ok"))

    ended, again = asyncio.run(run())
    assert (ended.outcome, ended.body) == (("partial", "cancelled"), b"begin")
    assert again.outcome == ("live", None)


def test_nothing_is_left_open_after_many_attempts(origin, tmp_path):
    """Good, broken, refused and redirected attempts give all their descriptors and files back."""
    origin.routes["/big"] = [R(b"200 OK", b"x" * 100_000, HT)]
    origin.routes["/cut"] = [R(b"200 OK", b"x" * 50_000, HT, cl=100_000)]
    origin.routes["/hop"] = [R(b"302 Found", b"x" * 50_000, b"Location: /big")]
    origin.routes["/bad"] = [b"nonsense"]
    urls = [origin.url(path) for path in ("/big", "/cut", "/hop", "/bad")] * 10
    before = descriptors()
    looks(*urls, "http://nowhere.invalid/", using={"spool_folder": tmp_path, "spool_memory": 1000})
    assert settled(before)
    assert list(tmp_path.iterdir()) == []


# connections


def test_an_open_connection_is_reused_and_a_fresh_one_made_when_asked():
    """Pages of one server share a connection; a retry gets a new one."""
    with Origin(keep_alive=True) as origin:
        origin.routes["/"] = [K(BODY, HT)]

        async def run() -> None:
            async with engine() as made:
                for fresh in (False, False, True):
                    seen = await look_with(made, origin.url("/"), fresh_connection=fresh)
                    assert seen.outcome == ("live", None)

        asyncio.run(run())
        assert (origin.connections, len(origin.log)) == (2, 3)


def test_a_connection_that_died_in_the_meantime_is_replaced(origin):
    """The request is repeated on a new connection and recorded once."""
    with Origin(keep_alive=True) as origin:
        origin.routes["/"] = Script([K(BODY, HT)], [K(BODY, HT)])

        async def run() -> Look:
            async with engine() as made:
                await look_with(made, origin.url("/"))
                origin.hang_up()
                return await look_with(made, origin.url("/"))

        seen = asyncio.run(run())
        assert seen.outcome == ("live", None)
        assert seen.kept["request"].count(b"GET / HTTP/1.1") == 1
        assert origin.connections == 2


def test_one_engine_serves_one_loop_after_another(origin):
    """A loop that has ended takes its connections along; the next one makes new ones."""
    made = HttpEngine(options(), Clock())
    for _ in range(2):
        seen = asyncio.run(look_with(made, origin.url("/ok")))
        assert seen.outcome == ("live", None)
    asyncio.run(made.close())


def test_many_attempts_run_at_the_same_time(origin):
    """Fifty slow answers take no longer than one."""
    origin.routes["/"] = [Sleep(0.3), R(b"200 OK", BODY, HT)]

    async def run() -> list[Look]:
        async with engine() as made:
            return await asyncio.gather(*(look_with(made, origin.url("/")) for _ in range(50)))

    started = time.monotonic()
    assert [seen.outcome for seen in asyncio.run(run())] == [("live", None)] * 50
    assert time.monotonic() - started < 3


def test_tls_is_over_when_an_engine_is_closed():
    """A secure connection kept for reuse is closed with the engine."""
    with Origin(tls=authority().server("127.0.0.1"), keep_alive=True) as origin:
        origin.routes["/"] = [K(BODY, HT)]
        before = descriptors()
        assert look(origin.url("/"), using={"ca_file": authority().file}).outcome == ("live", None)
        assert settled(before)
