"""A snapshot tree in a folder, with scripted evidence and still time."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pravda.core.ports import Engine
from pravda.testing import FrozenClock, Scene, ScriptedEngine
from pravda.tree.attempt import Parsed
from pravda.tree.files import Tree
from pravda.tree.refresh import refresh
from pravda.tree.results import RunResult, SourceResult
from pravda.tree.run import ParserInput, Run
from pravda.tree.sources import Source, Sources
from pravda.tree.sources_file import parse_sources

URL = "https://example.org/a"
ONE = f'[[source]]\nid = "a"\nurl = "{URL}"\n'


def sources(text: str = ONE) -> Sources:
    """The sources in a TOML text."""
    return parse_sources(text.encode())


class World:
    """A tree whose engine and clock a test can reach."""

    def __init__(self, root: Path, *scenes: Scene, text: str = ONE) -> None:
        self.clock = FrozenClock()
        self.engine = ScriptedEngine(*scenes, clock=self.clock)
        self.tree = Tree(root)
        self.sources = sources(text)
        self.parsed: list[ParserInput] = []

    def run(self, *scenes: Scene, engine: Engine | None = None, **options: Any) -> RunResult:
        """One refresh; the scenes replace what the engine plays."""
        if scenes:
            self.engine.then(*scenes)
        return asyncio.run(self.refreshed(engine=engine, **options))

    async def refreshed(self, *, engine: Engine | None = None, **options: Any) -> RunResult:
        """One refresh, for those who are in a loop already."""
        chosen = engine or self.engine
        run = Run(
            **{
                "tree": self.tree,
                "sources": self.sources,
                "clock": self.clock,
                "engine_for": lambda _: chosen,
                "parser": self.parse,
                **options,
            }
        )
        return await refresh(run)

    def one(self, *scenes: Scene, **options: Any) -> SourceResult:
        """One refresh of a tree with one source, six hours after the last."""
        self.clock.advance(hours=6)
        (result,) = self.run(*scenes, **options).results
        return result

    async def parse(self, page: ParserInput) -> Parsed:
        """Counts the `<li>`; a page that says "boom" breaks the parser."""
        self.parsed.append(page)
        if b"boom" in page.body:
            raise RuntimeError("boom\r\n::error::forged")
        return Parsed(items=page.body.count(b"<li>"))

    def path(self, name: str) -> Path:
        """A file of the snapshots folder."""
        return self.tree.folder / name

    def body(self, source_id: str = "a") -> bytes:
        """The stored bytes."""
        return self.path(f"{source_id}.html").read_bytes()

    def meta(self, source_id: str = "a") -> dict[str, Any]:
        """The stored metadata."""
        return dict(json.loads(self.path(f"{source_id}.meta.json").read_bytes()))

    def state(self, source_id: str = "a") -> dict[str, Any]:
        """The recorded attempt."""
        return dict(json.loads(self.path(f"{source_id}.state.json").read_bytes()))

    def tracked(self) -> dict[str, bytes]:
        """What git would see, byte for byte."""
        names = (
            path for path in self.tree.folder.iterdir() if not path.name.endswith((".state.json", ".lock"))
        )
        return {path.name: path.read_bytes() for path in names}

    def sent(self) -> dict[str, str | None] | None:
        """The validators of the last order; None: it was unconditional."""
        held = self.engine.orders[-1].held
        return {"etag": held.validators.etag, "modified": held.validators.last_modified} if held else None


def two(first: str = "one.example", second: str = "two.example") -> str:
    """Sources a and b on two hosts."""
    return "".join(
        f'[[source]]\nid = "{name}"\nurl = "https://{host}/{name}"\n'
        for name, host in (("a", first), ("b", second))
    )


def by_host(scenes: Mapping[str, Scene]) -> Scene:
    """A scene that depends on the host that is asked."""
    return lambda order, now: scenes[order.request.url.host](order, now)


def source(text: str = ONE) -> Source:
    """The first source of a TOML text."""
    return sources(text).sources[0]
