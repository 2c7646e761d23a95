"""The one place that picks the concrete parts."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
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
from pravda.core.ports import Engine
from pravda.engines.http import HttpEngine, HttpOptions
from pravda.engines.polite import HostOptions, OnChallenge, PoliteEngine, PoliteOptions
from pravda.engines.routes import Routes, WithoutRobots
from pravda.parsing.bench import Bench, Held, Recipe, Stored
from pravda.parsing.runner import Runner
from pravda.parsing.values import Job
from pravda.parsing.values import Limits as ParserLimits
from pravda.settings import Settings, load
from pravda.tree.attempt import Parsed
from pravda.tree.book import TreeBook
from pravda.tree.files import StoredPage, Tree
from pravda.tree.keeper import Keeper, KeptEngine
from pravda.tree.layout import SOURCES
from pravda.tree.run import DEFAULT_MAX_BYTES, ParserInput, ParserRunner, Run
from pravda.tree.sources import RobotsMode, Source, Sources
from pravda.tree.sources_file import load_sources

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
    options = _http_options(chosen, policy)
    archive = _archive(chosen)
    clock = SystemClock()
    engine = HttpEngine(replace(options, spool_folder=chosen.home / "tmp"), clock)
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


@asynccontextmanager
async def open_tree(
    root: Path,
    *,
    user_agent: str | None = None,
    archive: bool = False,
    settings: Settings | None = None,
    **overrides: object,
) -> AsyncIterator[Run]:
    """What a refresh of the tree in a folder needs; `user_agent` stands for what the tree and the settings say.

    With `archive` every attempt is kept there too. Raises BadRequest for sources, parsers and settings that cannot be
    used, and ArchiveUnavailable, all before anything is asked.
    """
    chosen = settings or load(user_agent=user_agent, **overrides)
    async with AsyncExitStack() as opened:
        runner = opened.enter_context(Runner(root))
        sources = load_sources(root / SOURCES, _parser_problem(runner))
        agent = user_agent or sources.agent(chosen.user_agent)
        tree, clock = Tree(root), SystemClock()
        book = TreeBook(tree, clock)
        polite = _polite(sources, replace(_http_options(chosen), user_agent=agent), book, clock)
        opened.push_async_callback(polite.close)
        keeper = None
        if archive:
            kept = _archive(chosen)
            opened.push_async_callback(kept.close)
            keeper = Keeper(kept, new_id)
        yield Run(
            tree=tree,
            sources=sources,
            clock=clock,
            engine_for=_engines(polite, keeper),
            parser=_parsers(runner, clock),
            book=book,
            keeper=keeper,
            timeouts=chosen.timeouts,
            max_bytes=min(chosen.max_body_bytes, DEFAULT_MAX_BYTES),
        )


def open_bench(root: Path, limits: ParserLimits | None = None) -> Bench:
    """The tree in a folder, laid out for parsing: nothing in it could make a request. Raises BadRequest."""
    sources, tree = load_sources(root / SOURCES), Tree(root)
    return Bench(
        root=root,
        recipes=tuple(_recipe(source) for source in sources.sources),
        held=lambda recipe: _held(tree.page(recipe.source_id, recipe.extension)),
        runner=Runner(root, limits),
        build_out=root / sources.build_out if sources.build_out else None,
    )


def _recipe(source: Source) -> Recipe:
    return Recipe(
        source_id=source.id,
        url=source.request.url.page,
        parser=source.parser,
        schema=source.schema,
        sanitize=source.sanitize,
        min_items=source.min_items,
        warn_drop=source.warn_drop,
        extension=source.extension,
        fixtures=source.fixtures,
    )


def _held(stored: StoredPage) -> Held:
    meta, body = stored.meta, stored.body
    if meta is None or body is None or not stored.intact:
        return Held(page=None, damage=stored.damage)
    page = Stored(
        body=body,
        charset=meta.charset,
        url=meta.came_from,
        captured_at=meta.content_changed_at,
        confirmed_at=meta.last_confirmed_at,
        item_count=meta.item_count,
    )
    return Held(page=page, damage=stored.damage)


def _polite(sources: Sources, options: HttpOptions, book: TreeBook, clock: SystemClock) -> PoliteEngine:
    """One engine for all hosts of a tree, so that each is asked by one request at a time."""
    of_hosts = {
        host.name: HttpEngine(replace(options, proxy=host.proxy), clock)
        for host in sources.hosts
        if host.proxy
    }
    usual = PoliteOptions(user_agent=options.user_agent)
    hosts = {
        host.name: HostOptions(
            gap=host.gap,
            robots_on_challenge=OnChallenge.ASSUME_ALLOWED if host.assume_allowed else OnChallenge.REFUSE,
            note=host.note or "",
        )
        for host in sources.hosts
    }
    gap = usual.gap if sources.host_gap is None else sources.host_gap
    routes = Routes(HttpEngine(options, clock), of_hosts)
    return PoliteEngine(routes, book, clock, asyncio.sleep, replace(usual, gap=gap, hosts=hosts))


def _engines(polite: PoliteEngine, keeper: Keeper | None) -> Callable[[Source], Engine]:
    engines: dict[RobotsMode, Engine] = {
        RobotsMode.OBEY: polite,
        RobotsMode.IGNORE: WithoutRobots(polite),
    }
    if keeper:
        engines = {mode: KeptEngine(engine, keeper) for mode, engine in engines.items()}
    return lambda source: engines[source.robots]


def _parsers(runner: Runner, clock: SystemClock) -> ParserRunner:
    async def parse(page: ParserInput) -> Parsed:
        assert page.source.parser is not None  # else it is not asked
        job = Job(
            source_id=page.source.id,
            parser=page.source.parser,
            body=page.body,
            url=page.final_url,
            charset=page.charset,
            captured_at=page.captured_at,
            now=clock.now(),
            schema=page.source.schema,
            sanitize=page.source.sanitize,
        )
        parsing = await asyncio.to_thread(runner.run, job)
        return Parsed(
            items=None if parsing.items is None else len(parsing.items),
            problem=parsing.problem.detail if parsing.problem else None,
        )

    return parse


def _parser_problem(runner: Runner) -> Callable[[str], str | None]:
    def problem(name: str) -> str | None:
        nothing = datetime.fromtimestamp(0, UTC)
        job = Job(
            source_id="", parser=name, body=b"", url="", charset="utf-8", captured_at=nothing, now=nothing
        )
        return runner.problem_of(job)

    return problem


def _archive(settings: Settings) -> LocalArchive:
    return LocalArchive.open(settings.home, Limits(most=settings.max_bytes, spare=settings.min_free_bytes))


def _http_options(settings: Settings, policy: AddressPolicy | None = None) -> HttpOptions:
    return HttpOptions(
        user_agent=settings.user_agent,
        policy=policy or AddressPolicy.parse(settings.allow_addresses),
        proxy=_proxy(settings),
        ca_file=_ca_bundle(settings.ca_bundle),
        spool_memory=settings.spool_memory,
        connections=settings.connections,
    )


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
