"""The pytest plugin: one test per fixture, and no cost where there is no tree."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pravda.parsing.fixtures import add
from tests.groves import LIST, NOW, bench, grove, source, write

PLUGIN = "pravda.parsing.plugin"


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pytest over a folder, with no plugin but this one, since loading others takes most of the time."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", PLUGIN, *arguments]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=root, env=alone, capture_output=True, text=True, check=False)


def test_pytest_finds_it_by_itself():
    """The distribution names the plugin as an entry point."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"pravda": PLUGIN}


@pytest.fixture
def root(tmp_path):
    """A tree with two fixtures, and a source without a parser."""
    tree = grove(tmp_path, source() + source("b", parser=None))
    write(tree, "fixtures/b/2026-01-01.html", LIST)
    with bench(tree) as opened:
        add(opened, opened.recipes[0], NOW)
        write(tree, "fixtures/a/2026-01-01.html", LIST)
        write(tree, "fixtures/a/2026-01-01.expected.json", "[]")
    return tree


def test_one_test_per_fixture(root):
    """Each fixture is a test; one that differs shows how, and one line says what to do."""
    done = run(root, "-v", "--color=no")
    assert done.returncode == 1
    assert "a/2026-03-02 PASSED" in done.stdout
    assert "a/2026-01-01 FAILED" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert '+ item 1: {"now": "2026-01-01T00:00:00+00:00", "title": "two"}' in done.stdout
    assert "pytest --pravda-update" in done.stdout
    assert "plugin.py" not in done.stdout  # no traceback of ours


def test_update(root):
    """`--pravda-update` writes what the parsers give, and the next run passes."""
    assert run(root, "--pravda-update").returncode == 0
    assert run(root, "-k", "2026-01-01").returncode == 0


def test_a_parser_that_raises_shows_its_traceback(root):
    """A raising parser is shown with its own traceback and what it printed, without control characters."""
    write(
        root,
        "parsers/items.py",
        "def parse(page):\n    print('\\x1b[31mhere')\n    raise KeyError('table')\n",
    )
    done = run(root, "--color=no")
    assert "KeyError: 'table'" in done.stdout
    assert "parsers/items.py" in done.stdout
    assert "printed: \\x1b[31mhere" in done.stdout


def test_a_tree_that_cannot_be_read(root):
    """A mistake in the sources file is an error of collection that names the line."""
    write(root, "sources.toml", "nonsense = 1\n")
    done = run(root)
    assert done.returncode == 2
    assert "sources.toml:1" in done.stdout


def test_other_files_are_left_alone(tmp_path):
    """A `sources.toml` without a tree around it is nobody's business."""
    write(tmp_path, "sources.toml", "x = 1\n")
    assert run(tmp_path).returncode == 5


def test_it_is_light():
    """Loading the plugin imports nothing of ours but itself, and no library beyond pytest's own."""
    code = (
        "import pytest, sys; before = set(sys.modules); import pravda.parsing.plugin;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pravda", "pravda.parsing", "pravda.parsing.plugin"]
