"""`pravda serve`: the service over HTTP."""

import asyncio
import importlib.util
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from pravda import assemble
from pravda.archive.probe import Probe
from pravda.archive.quota import Limits
from pravda.cli import options
from pravda.cli.trouble import Stop, told
from pravda.cli.words import now
from pravda.core import durations
from pravda.core.mistake import BadRequest
from pravda.core.states import Exit
from pravda.server.keys import Keys
from pravda.server.ledger import Ledger
from pravda.server.options import Options
from pravda.server.ports import Health
from pravda.settings import VERSION, Settings, load

_MISSING = [
    name
    for name in ("fastapi", "uvicorn", "prometheus_client", "structlog")
    if not importlib.util.find_spec(name)
]
if not _MISSING:
    from pravda.server.logs import configure
    from pravda.server.run import Server, listen, make_server, refuse_open_door
    from pravda.server.service import Parts

_INSTALL = "pip install 'pravda-evidence[server]'"
_DEFAULT = Options()

_HELP = """Serve the archive over HTTP until interrupted.

On a loopback address no API key is needed, as long as none was ever made; any other address refuses to start without
one (`pravda keys add`). Each option may be given as PRAVDA_SERVE_NAME too. When it is stopped, running captures get
--grace to end; those that do not are kept as cancelled."""


@click.command(
    "serve",
    help=_HELP,
    short_help="Serve the archive over HTTP.",
    context_settings={"auto_envvar_prefix": "PRAVDA_SERVE"},
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address or name to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any that is free."
)
@click.option(
    "--running",
    type=click.IntRange(1, 10_000),
    default=_DEFAULT.most_running,
    show_default=True,
    help="Captures at one time.",
)
@click.option(
    "--waiting",
    type=click.IntRange(0, 100_000),
    default=_DEFAULT.most_waiting,
    show_default=True,
    help="Captures that may wait for their turn; one more is answered 429.",
)
@click.option(
    "--per-minute",
    type=click.IntRange(0, 1_000_000),
    default=_DEFAULT.per_minute,
    show_default=True,
    help="Requests a minute of one key, or of all together without keys; 0: any number.",
)
@click.option(
    "--longest",
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="The largest timeouts.total a caller may ask for.",
)
@click.option(
    "--grace",
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="How long running captures may go on when the service is stopped.",
)
@options.home
def command(
    *,
    host: str,
    port: int,
    running: int,
    waiting: int,
    per_minute: int,
    longest: str,
    grace: str,
    home: Path | None,
) -> None:
    """Check, listen, serve."""
    if _MISSING:
        raise Stop(f"the service needs more libraries; install them with: {_INSTALL}", Exit.USAGE)
    with told():
        chosen = Options(
            most_running=running,
            most_waiting=waiting,
            per_minute=per_minute,
            longest_capture=durations.seconds("longest", longest),
            grace=durations.seconds("grace", grace),
        )
        asyncio.run(_serve(load(home=home), chosen, host, port))


async def _serve(settings: Settings, chosen: Options, host: str, port: int) -> None:
    bounded = replace(chosen, most_page_bytes=settings.max_body_bytes)
    ledger = Ledger(settings.home)
    with closing(ledger):
        if not ledger.hold():
            raise BadRequest("home", f"another `pravda serve` has {settings.home} open already")
        pravda = assemble.open(settings)
        probe = Probe(settings.home, Limits(most=settings.max_bytes, spare=settings.min_free_bytes))
        async with pravda:
            with closing(probe):
                parts = Parts(
                    evidence=pravda,
                    ledger=ledger,
                    probe=lambda: _health(probe),
                    now=now,
                    new_id=assemble.new_id,
                    options=bounded,
                    host=host,
                )
                refuse_open_door(host, Keys(ledger), parts)
                await _run(make_server(parts, VERSION), host, port)


async def _run(server: "Server", host: str, port: int) -> None:
    listening = listen(host, port)
    configure()
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"pravda: listening on http://{shown}:{listening.getsockname()[1]}", err=True)
    await server.serve([listening])


def _health(probe: Probe) -> Health:
    return Health(
        database=None if probe.database() else "rows cannot be read",
        blobs=None if probe.blobs() else "the folder may not be written",
        disk=None if probe.has_room() else "too little space is left",
        free_bytes=probe.free_bytes(),
        blob_bytes=probe.blob_bytes(),
    )
