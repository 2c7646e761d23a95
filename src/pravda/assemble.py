"""The one place that picks the concrete parts."""

import asyncio
import ssl
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import certifi
import uuid_utils

from pravda.archive.local import LocalArchive
from pravda.archive.quota import Limits
from pravda.blocking import BlockingPravda
from pravda.capture import Pravda
from pravda.core.addresses import AddressPolicy
from pravda.core.hosts import MemoryBook
from pravda.core.mistake import BadRequest
from pravda.engines.http import HttpEngine, HttpOptions
from pravda.engines.polite import PoliteEngine, PoliteOptions
from pravda.settings import Settings, load

_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        """Wall time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


def new_id() -> str:
    """A UUIDv7 (RFC 9562 §5.7): ids made later in one process sort later."""
    return str(uuid_utils.uuid7())


def open(settings: Settings | None = None, *, typed_host: str | None = None, **overrides: object) -> Pravda:
    """Open the archive and the engine; settings come from the environment unless given.

    `typed_host` is a host that a person typed on a command line and that may therefore be private.
    Raises BadRequest for a bad setting and ArchiveUnavailable when the archive cannot be opened.
    """
    chosen = settings or load(**overrides)
    policy = AddressPolicy.parse(chosen.allow_addresses)
    if typed_host:
        policy = policy.with_host(typed_host)
    proxy, bundle = _proxy(chosen), _ca_bundle(chosen.ca_bundle)
    archive = LocalArchive.open(chosen.home, Limits(most=chosen.max_bytes, spare=chosen.min_free_bytes))
    clock = SystemClock()
    options = HttpOptions(
        user_agent=chosen.user_agent,
        policy=policy,
        proxy=proxy,
        ca_file=bundle,
        spool_folder=chosen.home / "tmp",
        spool_memory=chosen.spool_memory,
        connections=chosen.connections,
    )
    engine = HttpEngine(options, clock)
    return Pravda(
        engine=engine,
        polite=PoliteEngine(
            engine, MemoryBook(), clock, asyncio.sleep, PoliteOptions(user_agent=chosen.user_agent)
        ),
        archive=archive,
        clock=clock,
        new_id=new_id,
        read_limit=chosen.read_limit,
        timeouts=chosen.timeouts,
        max_bytes=chosen.max_body_bytes,
    )


def open_blocking(
    settings: Settings | None = None, *, typed_host: str | None = None, **overrides: object
) -> BlockingPravda:
    """As `open`, for code that does not await."""
    return BlockingPravda(lambda: open(settings, typed_host=typed_host, **overrides))


def _proxy(settings: Settings) -> str | None:
    if settings.proxy is None:
        return None
    text = settings.proxy.get_secret_value()
    try:
        parts = urlsplit(text)
        valid = parts.scheme in _PROXY_SCHEMES and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise BadRequest("PRAVDA_PROXY", f"must be a URL with one of the schemes {', '.join(_PROXY_SCHEMES)}")
    return text


def _ca_bundle(given: Path | None) -> Path:
    if given is None:
        system = ssl.get_default_verify_paths().cafile  # honours SSL_CERT_FILE
        return Path(system or certifi.where())
    try:
        ssl.create_default_context(cafile=given)
    except (OSError, ssl.SSLError) as problem:
        raise BadRequest(
            "PRAVDA_CA_BUNDLE", f"{given} cannot be read as PEM certificates: {problem}"
        ) from None
    return given
