"""`pravda keys`: who may use the service."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import click

from pravda.cli import options
from pravda.cli.trouble import told
from pravda.cli.words import now, safe
from pravda.core import durations
from pravda.core.digest import Json
from pravda.core.wire import time_text
from pravda.server.keys import Key, Keys, Scope
from pravda.server.ledger import Ledger
from pravda.settings import load

_HELP = """Make, list and revoke the API keys of `pravda serve`.

As soon as there is one, every caller needs one: Authorization: Bearer KEY. Only hashes of them are kept, so a key is
told once. What is made or revoked here holds at once, also for a service that runs."""


@click.group("keys", help=_HELP, short_help="Make, list and revoke API keys of the service.")
def command() -> None:
    """Nothing by itself."""


@command.command("add", help="Make a key called NAME and print it, this once.")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    default=("read", "capture"),
    show_default=True,
    help="What it allows; repeatable. admin: everything, other keys' captures and /metrics among it.",
)
@click.option("--expires", metavar="DURATION", help="When it ends, as 90d from now. Default: never.")
@click.option(
    "--per-minute", type=click.IntRange(1, 1_000_000), help="Requests a minute. Default: as the service says."
)
@options.as_json
@options.home
def add(
    name: str,
    *,
    scopes: tuple[str, ...],
    expires: str | None,
    per_minute: int | None,
    as_json: bool,
    home: Path | None,
) -> None:
    """Make and print."""
    with told(), _keys(home) as ring:
        moment = now()
        ends = moment + timedelta(seconds=durations.seconds("expires", expires)) if expires else None
        allowed = frozenset(Scope(scope) for scope in scopes)
        key, token = ring.add(name, allowed, moment, expires_at=ends, per_minute=per_minute)
    click.echo(json.dumps({**_told(key), "token": token}) if as_json else token)
    if not as_json:
        click.echo(f"pravda: key {key.id} is made; it is not shown again", err=True)


@command.command("list", help="List every key there ever was, without what opens anything.")
@options.as_json
@options.home
def list_(*, as_json: bool, home: Path | None) -> None:
    """Print one line a key."""
    with told(), _keys(home) as ring:
        found = ring.all()
    if as_json:
        click.echo(json.dumps({"items": [_told(key) for key in found]}))
        return
    for key in found:
        click.echo(
            "  ".join((key.id, f"{_standing(key):<9}", f"{_scopes(key):<20}", _until(key), safe(key.name)))
        )


@command.command("revoke", help="Close the key ID for ever.")
@click.argument("key_id", metavar="ID")
@options.home
def revoke(key_id: str, *, home: Path | None) -> None:
    """Close it."""
    with told(), _keys(home) as ring:
        key = ring.revoke(key_id, now())
    click.echo(f"key {key.id} opens nothing any more")


@contextmanager
def _keys(home: Path | None) -> Iterator[Keys]:
    ledger = Ledger(load(home=home).home)
    try:
        yield Keys(ledger)
    finally:
        ledger.close()


def _standing(key: Key) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "valid" if key.is_valid(now()) else "expired"


def _scopes(key: Key) -> str:
    return ",".join(sorted(key.scopes))


def _until(key: Key) -> str:
    return f"until {time_text(key.expires_at)}" if key.expires_at else "no end"


def _told(key: Key) -> dict[str, Json]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": [*sorted(key.scopes)],
        "created_at": time_text(key.created_at),
        "expires_at": time_text(key.expires_at) if key.expires_at else None,
        "revoked_at": time_text(key.revoked_at) if key.revoked_at else None,
        "per_minute": key.per_minute,
        "standing": _standing(key),
    }
