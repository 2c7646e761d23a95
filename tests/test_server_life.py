"""From start to end: stops, kills, restarts, and backups while captures run."""

import shutil
import signal
import sqlite3
import threading
import time
from pathlib import Path

import httpx
import pytest

from pravda.archive.verify import Counts, verify
from tests.origin import BODY, HT, Origin, R, Sleep
from tests.serving import Daemon, Serving


@pytest.fixture
def origin():
    """A site whose pages come at once, after a moment, or never."""
    with Origin() as site:
        live = R(b"200 OK", BODY, HT)
        site.routes.update(
            {
                "/live": [live],
                "/soon": [Sleep(0.7), live],
                "/never": [R(b"200 OK", BODY[:100], HT, cl=len(BODY)), Sleep(15.0)],
            }
        )
        yield site


def is_clean(home: Path) -> bool:
    """Whether a look through the archive finds no damage, and found rows at all."""
    counts = Counts()
    findings = [finding for finding in verify(home, counts=counts) if finding.is_damage]
    return not findings and counts.rows > 0


def states(daemon: Daemon, url: str) -> list[str | None]:
    """The reasons, or None, of what is kept of a page."""
    items = daemon.client.get("/snapshots", params={"url": url}).json()["items"]
    return [item["failure"] and item["failure"]["reason"] for item in items]


def test_a_stop_waits_for_what_ends_in_time(tmp_path, origin):
    """A capture that ends within the grace is answered, and the service leaves with exit code 0."""
    replies: list[httpx.Response] = []
    with Daemon(tmp_path / "home", ("--grace", "10s")) as daemon:
        asking = threading.Thread(target=lambda: replies.append(daemon.capture(origin.url("/soon"))))
        asking.start()
        while not origin.log:
            time.sleep(0.01)
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(timeout=20) == 0
        asking.join()
    assert (replies[0].status_code, replies[0].json()["result"]) == (201, "fresh")


def test_a_stop_keeps_what_does_not_end_as_cancelled(tmp_path, origin):
    """Beyond the grace a capture is kept as cancelled with what was seen, and its caller hears 503, or finds it interrupted."""
    replies: list[httpx.Response] = []
    url = origin.url("/never")
    with Daemon(tmp_path / "home", ("--grace", "0.3s")) as daemon:
        place = daemon.capture(url, {"Prefer": "respond-async"}).headers["Location"]
        asking = threading.Thread(target=lambda: replies.append(daemon.capture(url, method="POST")))
        asking.start()
        while len(origin.log) < 2:
            time.sleep(0.01)
        time.sleep(0.2)  # so that the beginning of the page has come
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(timeout=20) == 0
        asking.join()
        assert replies[0].status_code == 503
        assert replies[0].json()["type"] == "urn:pravda:problem:interrupted"
        assert replies[0].headers["Retry-After"]
        daemon.start()
        told = daemon.client.get(place).json()
        assert (told["status"], told["http_status"]) == ("interrupted", 503)
        assert states(daemon, url) == ["cancelled", "cancelled"]
        (first, _) = daemon.client.get("/snapshots", params={"url": url}).json()["items"]
        assert daemon.client.get(f"/snapshots/{first['id']}/artifacts/body").content == BODY[:100]


def test_a_kill_is_told_at_the_next_start(tmp_path, origin):
    """A capture that a killed process left is told as interrupted, and its Idempotency-Key may be used again."""
    head = {"Prefer": "respond-async", "Idempotency-Key": "k"}
    with Daemon(tmp_path / "home") as daemon:
        place = daemon.capture(origin.url("/soon"), head).headers["Location"]
        daemon.stop(signal.SIGKILL)
        daemon.start()
        told = daemon.client.get(place).json()
        assert (told["status"], told["answer"], told["problem"]) == ("interrupted", None, None)
        assert daemon.client.get(told["events"]).text.startswith("event: end\n")
        again = daemon.capture(origin.url("/soon"), head)
        assert (again.status_code, again.headers["Location"] != place) == (202, True)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_stop_and_start_under_load_loses_no_acknowledged_capture(tmp_path, origin, how):
    """Whatever was answered 201 is there after a stop or a kill, every 202 has an end, and the archive is clean."""
    fresh: list[str] = []
    taken: list[str] = []
    ended = threading.Event()

    def crawl(url: str, number: int) -> None:
        with httpx.Client(base_url=url, timeout=10, trust_env=False) as client:
            for turn in range(10_000):
                asked = {"url": origin.url(f"/live?{number}-{turn}")}
                head = {"Prefer": "respond-async"} if turn % 3 == 0 else {}
                try:
                    reply = client.post("/snapshots", json=asked, headers=head)
                except httpx.HTTPError:
                    return
                if reply.status_code == 201:
                    fresh.append(reply.headers["Location"])
                elif reply.status_code == 202:
                    taken.append(reply.headers["Location"])
                if ended.is_set():
                    return

    with Daemon(tmp_path / "home", ("--per-minute", "0", "--grace", "5s")) as daemon:
        crawlers = [threading.Thread(target=crawl, args=(daemon.url, number)) for number in range(6)]
        for crawler in crawlers:
            crawler.start()
        while len(fresh) < 60:
            time.sleep(0.01)
        daemon.stop(how)
        ended.set()
        for crawler in crawlers:
            crawler.join()
        daemon.start()
        assert {daemon.client.get(place).status_code for place in fresh} == {200}
        ends = {daemon.client.get(place).json()["status"] for place in taken}
        assert ends <= ({"finished"} if how is signal.SIGTERM else {"finished", "interrupted"})
        assert daemon.stop() == 0
    assert is_clean(tmp_path / "home")


def test_a_backup_taken_while_captures_run_is_whole(tmp_path, origin):
    """Catalog first, blobs after it, while captures run: the copy is a clean archive that serves what it holds."""
    home, copy = tmp_path / "home", tmp_path / "copy"
    big = b"<title>x</title>" + b"<p>some words of a page that is too big for the catalog</p>" * 2000
    origin.routes["/big"] = [lambda request, _: R(b"200 OK", big + request[:60], HT)]
    ended = threading.Event()
    with Serving(home) as service:

        def crawl(number: int) -> None:
            with service.another() as client:
                for turn in range(10_000):
                    reply = client.post("/snapshots", json={"url": origin.url(f"/big?{number}-{turn}")})
                    assert reply.status_code == 201
                    if ended.is_set():
                        return

        crawlers = [threading.Thread(target=crawl, args=(number,)) for number in range(4)]
        for crawler in crawlers:
            crawler.start()
        time.sleep(0.5)
        copy.mkdir()
        # as docs/deployment.md says: what the catalog names is on the disk before the row is
        with sqlite3.connect(home / "catalog.sqlite3") as source:
            source.execute("VACUUM INTO ?", (str(copy / "catalog.sqlite3"),))
        source.close()
        shutil.copytree(home / "blobs", copy / "blobs")
        time.sleep(0.2)
        ended.set()
        for crawler in crawlers:
            crawler.join()
    assert is_clean(copy)
    with Serving(copy) as service:
        (newest,) = service.client.get("/snapshots", params={"limit": 1}).json()["items"]
        assert service.client.get(f"/snapshots/{newest['id']}/artifacts/body").content.startswith(big)
        assert service.capture(origin.url("/live")).status_code == 201
