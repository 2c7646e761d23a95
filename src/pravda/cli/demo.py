"""`pravda demo`: a site of our own that breaks, so that fresh, stale and failed are seen on one screen."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import click

from pravda.assemble import open as open_pravda
from pravda.cli.report import answer_lines
from pravda.cli.trouble import told
from pravda.cli.words import now, program
from pravda.core.outcome import Answer

_PAGE = b"""<!doctype html>
<html lang=en><meta charset=utf-8><title>Register of bridges</title>
<h1>Register of bridges</h1>
<table id=list>
<tr><th>Bridge<th>Opened
<tr><td>Stone bridge<td>1853
<tr><td>Iron bridge<td>1892
<tr><td>Rope bridge<td>1921
</table>
<p>A small page that Pravda brought along to show what it does.
</html>
"""
_BROKEN = b"<!doctype html><title>503</title><h1>Service Unavailable</h1>\n"

_STEPS = (
    (False, "", "1. The site works: the page is captured and kept."),
    (
        True,
        "7d",
        "2. The site breaks: a snapshot up to 7 days old may stand in, and the failed attempt is kept.",
    ),
    (
        True,
        "",
        "3. Still broken, and nothing may stand in: the answer is a failure (as a command, exit code 12).",
    ),
)
"""Whether the site is broken, `--max-stale-age`, and what is to be seen."""

_HELP = "See fresh, stale and failed answers on one screen, with a small site on loopback and a temporary archive."


class _Site(ThreadingHTTPServer):
    """Serves one page until it is broken."""

    broken = False


class _Handler(BaseHTTPRequestHandler):
    server: _Site
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_GET(self) -> None:
        """The page, or 503."""
        body = _BROKEN if self.server.broken else _PAGE
        self.send_response(503 if self.server.broken else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.server.broken:
            self.send_header("Retry-After", "120")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the screen belongs to the demo."""


@click.command(
    "demo", help=_HELP, short_help="See fresh, stale and failed answers on a small site of our own."
)
def command() -> None:
    """Three captures, each explained in a line."""
    home = Path(tempfile.mkdtemp(prefix="pravda-demo-"))
    with told(), _site() as site:
        url = f"http://127.0.0.1:{site.server_port}/"
        for broken, stale, lesson in _STEPS:
            site.broken = broken
            option = f" --max-stale-age {stale}" if stale else ""
            click.secho(lesson, bold=True)
            click.echo(f"$ pravda capture {url}{option}")
            for text in answer_lines(asyncio.run(_capture(url, stale, home)), now(), home, brief=True):
                click.echo(text)
            click.echo()
    click.echo(f"Everything is kept in {home}. To look around:")
    click.echo(f"  export PRAVDA_HOME={home}")
    click.echo(f"  {program()} history --all       then `show ID` and `cat ID` in place of `history --all`")


async def _capture(url: str, stale: str, home: Path) -> Answer:
    async with open_pravda(typed_host="127.0.0.1", home=home) as pravda:
        return await pravda.capture(
            url, max_stale_age=stale or None, expect={"selector": "table#list"}, on_failure="return"
        )


@contextmanager
def _site() -> Iterator[_Site]:
    with _Site(("127.0.0.1", 0), _Handler) as site:
        Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield site
        finally:
            site.shutdown()
