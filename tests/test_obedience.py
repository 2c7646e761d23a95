"""A capture that obeys robots.txt, over real sockets."""

import asyncio
from pathlib import Path

import pravda
from pravda.core.outcome import Answer
from pravda.core.states import Reason, State
from tests.origin import BODY, HT, Origin, R


def captured(origin: Origin, home: Path, *paths: str, **fields: object) -> list[Answer]:
    """The answers to captures made one after the other."""

    async def story() -> list[Answer]:
        async with pravda.open(home=home, allow_addresses="127.0.0.1") as archive:
            return [await archive.capture(origin.url(path), on_failure="return", **fields) for path in paths]

    return asyncio.run(story())


def site(robots: bytes) -> Origin:
    """An origin with two pages, a redirect between them, and rules."""
    return Origin(
        routes={
            "/robots.txt": [R(b"200 OK", robots, b"Content-Type: text/plain")],
            "/open": [R(b"200 OK", BODY, HT)],
            "/moved": [R(b"302 Found", b"", b"Location: /private")],
            "/private": [R(b"200 OK", BODY, HT)],
        }
    )


def test_robots_are_ignored_unless_told_to_obey(tmp_path: Path) -> None:
    """A page asked for by name is captured without a look at robots.txt."""
    with site(b"User-agent: *\nDisallow: /\n") as origin:
        (answer,) = captured(origin, tmp_path, "/open")
        assert answer.snapshot is not None
        assert origin.targets() == ["/open"]


def test_a_disallowed_page_is_kept_as_refused_and_never_asked_for(tmp_path: Path) -> None:
    """R-C1: the refusal is a snapshot, blocked by robots_disallowed; the page is not requested."""
    with site(b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n") as origin:
        (answer,) = captured(origin, tmp_path, "/open", robots="obey")
        assert answer.attempt is not None
        assert answer.attempt.verdict.failure is not None
        assert (answer.attempt.state, answer.attempt.verdict.failure.reason) == (
            State.BLOCKED,
            Reason.ROBOTS_DISALLOWED,
        )
        assert origin.targets() == ["/robots.txt"]


def test_a_redirect_to_a_disallowed_page_is_not_followed(tmp_path: Path) -> None:
    """R-C6: the redirect's target is judged too, and never requested; the redirect itself is kept."""
    with site(b"User-agent: *\nDisallow: /private\n") as origin:
        (answer,) = captured(origin, tmp_path, "/moved", robots="obey")
        assert answer.attempt is not None
        assert answer.attempt.verdict.failure is not None
        assert answer.attempt.verdict.failure.reason is Reason.ROBOTS_DISALLOWED
        assert answer.attempt.evidence.response is not None
        assert answer.attempt.evidence.response.status == 302
        assert "/private" not in origin.targets()


def test_a_pause_nobody_waits_for_is_told(tmp_path: Path) -> None:
    """R-C14: a site that wants a day between requests gives one page; the next capture says when to come back."""
    with site(b"User-agent: *\nCrawl-delay: 86400\n") as origin:
        first, second = captured(origin, tmp_path, "/open", "/open?again", robots="obey")
        assert first.snapshot is not None
        assert second.attempt is not None
        assert second.attempt.verdict.failure is not None
        assert "not to be asked again before" in second.attempt.verdict.failure.detail
        assert origin.targets() == ["/robots.txt", "/open"]
