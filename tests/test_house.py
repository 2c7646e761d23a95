"""The house: who may import whom, and what an import costs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import pravda

ROOT = Path(pravda.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

MAY_IMPORT = {
    "core": {"core"},
    "errors": {"core"},
    "engines": {"core", "errors", "engines"},
    "archive": {"core", "errors", "archive"},
    "tree": {"core", "errors", "tree"},
    "capture": {"core", "errors"},
    "blocking": {"core", "errors", "capture"},
    "testing": {"core", "errors"},
    "parsing": {"core", "errors", "parsing"},
    "settings": {"core"},
    "assemble": {
        "core",
        "errors",
        "settings",
        "capture",
        "blocking",
        "engines",
        "archive",
        "tree",
        "parsing",
    },
    "server": {"core", "errors", "server"},
    "cli": {
        "core",
        "errors",
        "settings",
        "assemble",
        "capture",
        "blocking",
        "archive",
        "tree",
        "parsing",
        "server",
        "cli",
    },
    "__main__": {"cli"},
}
"""Part of the house → the parts it may import; the face loads names by text and imports nothing."""

LATE = {("cli.waiting", "rich"), ("cli.progress", "rich")}
"""Heavy libraries that a file of the rim may import inside a function."""

FACE = [
    "Answer",
    "ArchiveUnavailable",
    "BadRequest",
    "BlockingPravda",
    "Damaged",
    "NoUsableSnapshot",
    "NotFound",
    "Pravda",
    "PravdaError",
    "Query",
    "Reason",
    "Request",
    "Snapshot",
    "State",
    "open",
    "open_blocking",
]


def name_of(path: Path) -> str:
    """A file's module name behind `pravda.`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Every import under a node, by the full name of the module it asks for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                path = ROOT.parent / inner.replace(".", "/")
                is_file = path.with_suffix(".py").exists() or path.is_dir()
                yield node, inner if is_file else str(node.module)


def ours(path: Path) -> list[str]:
    """The modules of ours that a file imports, behind `pravda.`; "" is the face."""
    tree = ast.parse(path.read_text("utf-8"))
    return [
        module.removeprefix("pravda").removeprefix(".")
        for _, module in imports(tree)
        if module.split(".")[0] == "pravda"
    ]


@pytest.mark.parametrize("path", [path for path in FILES if path != ROOT / "__init__.py"], ids=name_of)
def test_a_file_imports_only_what_its_part_may(path):
    """A file imports the law, the errors and its own folder, and what the house rule says beyond; never the face."""
    part = name_of(path).split(".")[0]
    assert {module.split(".")[0] for module in ours(path)} <= MAY_IMPORT[part]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_import_inside_a_function(path):
    """Nothing is imported inside a function, except heavy libraries at the rim."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    late = {
        (name_of(path), module.split(".")[0]) for function in functions for _, module in imports(function)
    }
    assert late <= LATE


def test_no_circle():
    """No file imports itself by way of others."""
    graph = {name_of(path): set(ours(path)) for path in FILES if path != ROOT / "__init__.py"}
    assert tuple(TopologicalSorter(graph).static_order())


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.split(".")[0] for name in done.stdout.split()}


HEAVY = {"playwright", "psycopg", "fastapi", "uvicorn", "structlog", "sqlite3", "pycurl", "obstore"}


def test_importing_the_face_is_light():
    """`import pravda` loads no library at all beyond the standard one."""
    loaded = loaded_by("import pravda")
    assert not loaded & HEAVY
    assert not loaded & {"lxml", "pydantic", "click", "rich", "re2", "asyncio"}


def test_importing_the_law_is_pure():
    """All of `pravda.core` loads no engine, database or web framework, nor any part of ours but itself."""
    names = [name_of(path) for path in FILES if name_of(path).startswith("core.")]
    code = "\n".join(f"import pravda.{name}" for name in names)
    parts = "print(*{m.split('.')[1] for m in sys.modules if m.startswith('pravda.')}, sep='\\n')"
    assert not loaded_by(code) & HEAVY
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\n{parts}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["core"]


def test_the_face():
    """The face is this list of names, each of which loads; others are refused."""
    assert pravda.__all__ == FACE
    for name in FACE:
        assert getattr(pravda, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(pravda, "nonsense")  # noqa: B009  # the type checker would refuse the plain form


def test_the_face_names_what_it_loads():
    """Each name of the face is the very object of the file that defines it."""
    assert pravda.Request is import_module("pravda.core.request").Request
    assert pravda.open is import_module("pravda.assemble").open
