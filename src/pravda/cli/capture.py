"""`pravda capture`: one page, one answer, one exit code."""

import asyncio
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click

from pravda.assemble import open as open_pravda
from pravda.cli import interrupts, options
from pravda.cli.batch import Plan, capture_list
from pravda.cli.bytes import copy
from pravda.cli.output import writing
from pravda.cli.report import answer_lines
from pravda.cli.trouble import told
from pravda.cli.waiting import waiting
from pravda.cli.words import now, program, safe, span, typed_url
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Answer, Result
from pravda.core.ports import Query
from pravda.core.request import Request
from pravda.core.states import Exit, Reason
from pravda.core.urls import URL
from pravda.core.wire import answer_to_json

_HELP = """Capture URL now, keep the attempt, and answer with the best evidence allowed.

When the page is not usable and --max-stale-age is given, the newest usable snapshot that young stands in.

Exit codes: 0 fresh, reused or stale; 2 bad request; 3 stale with --fail-on-stale; 10 blocked; 11 gone;
12 down; 13 partial; 14 our own fault; 20 the archive cannot keep the attempt; 74 the output cannot
be written; 130, 143, 129 ended by SIGINT, SIGTERM, SIGHUP, what was seen being kept.

With --from, a list is captured: one URL a line, blank lines and lines that begin with # are passed over. Each page
gives a line on stdout as soon as it is done, bad lines are named on stderr, and the exit code is the highest of all (2
for a bad line). Hosts of a list may not be private ones, and a Retry-After holds for all lines of its host.

Durations are seconds, or as "90s", "36h", "7d", "P7D"."""


@click.command(
    "capture", help=_HELP, short_help="Capture a page now and answer with the best evidence allowed."
)
@click.argument("url", required=False)
@click.option("--from", "list_file", metavar="FILE|-", help="Capture every URL of a list, one a line.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="How many pages of a list are captured at once.",
)
@click.option(
    "--per-host",
    type=click.IntRange(1, 1000),
    default=2,
    show_default=True,
    help="How many of them from one host.",
)
@click.option(
    "--from-line", type=click.IntRange(1), default=1, metavar="LINE", help="Go on with this line of the list."
)
@click.option("--method", help="GET (default; POST with --data), POST, PUT, PATCH, DELETE, OPTIONS, QUERY.")
@click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="A header to send; repeatable."
)
@click.option(
    "--cookie", "cookies", multiple=True, metavar="NAME=VALUE", help="A cookie to send; repeatable."
)
@click.option("--data", metavar="TEXT|@FILE|@-", help="The request's body: text, a file, or stdin.")
@click.option("--engine", help="What looks at the page: http (default).")
@click.option(
    "--expect",
    multiple=True,
    metavar="RULE=VALUE",
    help="What a usable page must fulfil, as selector='table#list' or min_matches=10; repeatable.",
)
@click.option("--expect-file", metavar="FILE", help="A JSON object of such rules; - reads stdin.")
@click.option(
    "--max-age", metavar="DURATION", help="A usable snapshot that young is the answer; nothing is fetched."
)
@click.option(
    "--max-stale-age", metavar="DURATION", help="How old a snapshot may be that stands in for a failure."
)
@click.option(
    "--stale-if", metavar="STATES", help="Which failures allow that: blocked,gone,down,partial (default all)."
)
@click.option("--key", help="An identity of your own in place of URL and body.")
@click.option("--conditional/--no-conditional", default=None, help="Ask only for what changed (default: no).")
@click.option("--artifact", "artifacts", multiple=True, metavar="NAME", help="What must be kept; repeatable.")
@click.option(
    "--timeout",
    "timeouts",
    multiple=True,
    metavar="NAME=DURATION",
    help="A budget: connect, first_byte, idle, body or total; repeatable.",
)
@click.option(
    "--max-bytes",
    callback=options.byte_size,
    metavar="BYTES",
    help="The most bytes of a page that are kept, as 1MB.",
)
@click.option(
    "--tls", help="verify (default), or insecure: take any certificate, and say so in the snapshot."
)
@click.option(
    "--robots",
    help="ignore (default: a person asks for this page) or obey: ask robots.txt first, and keep pauses.",
)
@click.option("--allow-failure", is_flag=True, help="Exit 0 with the failed answer.")
@click.option("--fail-on-stale", is_flag=True, help="Exit 3 when an earlier snapshot stands in.")
@click.option(
    "-o", "--output", metavar="FILE|-", help="Write the page itself there; with - the report goes to stderr."
)
@click.option("-q", "--quiet", is_flag=True, help="No report, warnings or progress line.")
@options.as_json
@options.home
def command(
    url: str | None,
    *,
    list_file: str | None,
    concurrency: int,
    per_host: int,
    from_line: int,
    home: Path | None,
    as_json: bool,
    quiet: bool,
    output: str | None,
    allow_failure: bool,
    fail_on_stale: bool,
    **given: object,
) -> None:
    """Read the request, run it, print the answer, exit with its code."""
    with told():
        if list_file is not None:
            plan = Plan(
                concurrency=concurrency,
                per_host=per_host,
                first_line=from_line,
                as_json=as_json,
                quiet=quiet,
                exit_code=partial(_exit_code, allow_failure=allow_failure, fail_on_stale=fail_on_stale),
            )
            _check_list(url, list_file, output, given)
            fields = _fields(**given)  # type: ignore[arg-type]  # click's values, by the options above
            Request.parse("https://example.org/", **fields)  # a mistake in them would be one in every line
            code = interrupts.run(capture_list(list_file, fields, plan, home))
            click.get_current_context().exit(code)
        if url is None:
            raise BadRequest("url", "is missing; name a page, or a list of them with --from")
        _check_output(output, as_json=as_json)
        typed, fields = typed_url(url), _fields(**given)  # type: ignore[arg-type]  # click's values, by the options above
        Request.parse(url, **fields)  # before a folder is made for the archive
        answer = interrupts.run(_capture(typed, url, fields, home, quiet=quiet))
        with writing(_kept(answer)):
            _print(answer, home, as_json=as_json, quiet=quiet, to_stderr=output == "-")
            if output and answer.snapshot:
                asyncio.run(copy(home, answer.snapshot.id, "body", output))
    click.get_current_context().exit(
        _exit_code(answer, allow_failure=allow_failure, fail_on_stale=fail_on_stale)
    )


def _check_list(url: str | None, list_file: str, output: str | None, given: Mapping[str, object]) -> None:
    if url is not None:
        raise BadRequest("from", "is a list of URLs; name none beside it")
    if output is not None:
        raise BadRequest("output", "takes one page; the pages of a list are in the archive, see `pravda cat`")
    if given["key"] is not None:
        raise BadRequest("key", "would make all pages of a list one")
    if list_file == "-" and "-" in (given["expect_file"], str(given["data"] or "").removeprefix("@")):
        raise BadRequest("from", "- would read stdin, which another option reads too")


def _check_output(output: str | None, *, as_json: bool) -> None:
    if output == "-" and as_json:
        raise BadRequest("output", "- and --json would both write to stdout; name a file")
    if output not in (None, "-") and (Path(output or "").is_dir() or not Path(output or "").parent.is_dir()):
        raise BadRequest("output", f"{output!r:.200} is not a file in an existing folder")


def _fields(
    *,
    headers: tuple[str, ...],
    cookies: tuple[str, ...],
    data: str | None,
    expect: tuple[str, ...],
    expect_file: str | None,
    artifacts: tuple[str, ...],
    timeouts: tuple[str, ...],
    method: str | None,
    **others: object,
) -> dict[str, object]:
    """The fields of a request; None and empty ones are as if not given."""
    body = options.body(data)
    return {
        **others,
        "method": method or ("POST" if body is not None else None),
        "headers": options.pairs("headers", headers, ":", "--header 'Name: value'"),
        "cookies": options.pairs("cookies", cookies, "=", "--cookie name=value"),
        "body": body,
        "expect": options.rules(expect_file, expect),
        "artifacts": artifacts,
        "timeouts": dict(options.pairs("timeouts", timeouts, "=", "--timeout total=60")) or None,
        "on_failure": "return",
    }


async def _capture(
    typed: URL, url: str, fields: dict[str, object], home: Path | None, *, quiet: bool
) -> Answer:
    async with open_pravda(typed_host=typed.hostname, home=home) as pravda:
        began = now()
        try:
            with waiting(f"Capturing {typed.page}", quiet=quiet):
                return await pravda.capture(url, **fields)
        except asyncio.CancelledError:
            newest = await pravda.history(Query(page=typed.page, since=began, limit=1))
            failure = newest[0].verdict.failure if newest else None
            if not newest:
                raise interrupts.Interrupted("no attempt is kept") from None
            state = " as cancelled" if failure and failure.reason is Reason.CANCELLED else ""
            raise interrupts.Interrupted(
                f"the attempt is kept{state}, see: {program()} show {newest[0].id}"
            ) from None


def _kept(answer: Answer) -> str:
    return f"the attempt is kept as {answer.attempt.id}" if answer.attempt else "nothing was fetched"


def _print(answer: Answer, home: Path | None, *, as_json: bool, quiet: bool, to_stderr: bool) -> None:
    if as_json:
        indent = 2 if sys.stdout.isatty() else None
        click.echo(json.dumps(answer_to_json(answer), indent=indent))
    elif not quiet:
        for text in answer_lines(answer, now(), home):
            click.echo(text, err=to_stderr)
    if not quiet:
        _warn(answer, also_failed=as_json)


def _warn(answer: Answer, *, also_failed: bool) -> None:
    failure = answer.attempt.verdict.failure if answer.attempt else None
    if answer.result is Result.STALE and answer.snapshot and answer.attempt and failure:
        text = (
            f"stale: the refresh failed ({answer.attempt.state}, {failure.reason}); "
            f"snapshot {answer.snapshot.id}, {span(answer.age_seconds or 0)} old, stands in"
        )
        click.echo(f"pravda: warning: {text}", err=True)
    elif answer.result is Result.FAILED and also_failed:
        click.echo(f"pravda: {safe(answer.problem)}", err=True)


def _exit_code(answer: Answer, *, allow_failure: bool, fail_on_stale: bool) -> Exit:
    if answer.result is Result.STALE and fail_on_stale:
        return Exit.STALE
    return Exit.OK if allow_failure else answer.exit_code
