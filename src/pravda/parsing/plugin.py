"""The pytest plugin `pravda`: one test per fixture of every tree that pytest walks through.

It is loaded by each run of pytest in an environment that holds Pravda, so it costs nothing until a tree is met.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pravda.parsing.bench import Bench, Recipe
    from pravda.parsing.fixtures import Checked, Fixture

_SOURCES = "sources.toml"


class NotAsExpected(Exception):
    """A parser gives something else than its fixture expects."""

    def __init__(self, checked: "Checked") -> None:
        super().__init__(checked.problem)
        self.checked = checked


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--pravda-update`."""
    group = parser.getgroup("pravda", "fixtures of parsers")
    group.addoption(
        "--pravda-update",
        action="store_true",
        help="Write what the parsers give now as what their fixtures expect.",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "TreeFile | None":
    """A tree is a `sources.toml` with a folder of snapshots or fixtures beside it."""
    if file_path.name != _SOURCES:
        return None
    beside = file_path.parent
    if not (beside / "fixtures").is_dir() and not (beside / "snapshots").is_dir():
        return None
    return TreeFile.from_parent(parent, path=file_path)


class TreeFile(pytest.File):
    """A tree, whose tests are its fixtures."""

    _bench: "Bench | None" = None

    def collect(self) -> Iterator["FixtureTest"]:
        """Every fixture of every source."""
        fixtures = import_module("pravda.parsing.fixtures")
        # read here and by name: the plugin is a rim of its own, as the command line is
        bench: Bench = import_module("pravda.assemble").open_bench(self.path.parent)
        self._bench = bench
        for recipe in bench.recipes:
            if recipe.parser is None:
                continue
            for fixture in fixtures.find(bench, recipe):
                name = f"{recipe.source_id}/{fixture.name}"
                yield FixtureTest.from_parent(self, name=name, recipe=recipe, fixture=fixture)

    def check(self, recipe: "Recipe", fixture: "Fixture") -> "Checked":
        """Hold the parser to the fixture."""
        assert self._bench is not None  # there are no tests before they are collected
        update = self.config.getoption("--pravda-update")
        checked: Checked = import_module("pravda.parsing.fixtures").check(
            self._bench, recipe, fixture, update=update
        )
        return checked

    def teardown(self) -> None:
        """End the process of the parsers."""
        if self._bench:
            self._bench.runner.close()


class FixtureTest(pytest.Item):
    """One fixture."""

    def __init__(self, *, recipe: "Recipe", fixture: "Fixture", **given: Any) -> None:
        super().__init__(**given)
        self._recipe, self._fixture = recipe, fixture

    def runtest(self) -> None:
        """Fail where the items differ."""
        tree = self.parent
        assert isinstance(tree, TreeFile)
        checked = tree.check(self._recipe, self._fixture)
        if checked.problem:
            raise NotAsExpected(checked)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The difference, and the parser's own traceback; nothing of ours."""
        if not isinstance(excinfo.value, NotAsExpected):
            return super().repr_failure(excinfo, style)
        checked = excinfo.value.checked
        parsing = checked.parsing
        trace = parsing.problem.traceback.splitlines() if parsing and parsing.problem else []
        said = parsing.said.splitlines() if parsing else []
        lines = [
            str(checked.problem),
            *checked.diff,
            *trace,
            *(f"printed: {line}" for line in said),
            "If this is as it should be: pytest --pravda-update, or pravda fixture check --update",
        ]
        return "\n".join(_printable(line) for line in lines)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the test stands."""
        return self._fixture.body, None, f"{self._recipe.source_id} {self._fixture.name}"


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
