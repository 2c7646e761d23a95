"""The project's set-up."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pravda.settings import VERSION

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCKS = sorted(ROOT.glob("requirements/*.txt"))


def locked(name: str) -> dict[str, str]:
    """Name → version of what a lock holds."""
    text = (ROOT / "requirements" / name).read_text("utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def names(requirements: list[str]) -> set[str]:
    """The names in a list of requirements."""
    return {re.split(r"[^A-Za-z0-9-]", text)[0].lower() for text in requirements}


def test_the_version_is_one():
    """The version of the distribution is the one that the user agent says."""
    assert PROJECT["project"]["version"] == VERSION


def test_locks_hold_what_the_project_names():
    """Every dependency is locked, in one version for all Pythons, and the locks agree."""
    groups = PROJECT["dependency-groups"]
    dev = names([item for item in groups["dev"] if isinstance(item, str)])
    run = names(PROJECT["project"]["dependencies"])
    serve = run | names(PROJECT["project"]["optional-dependencies"]["server"])
    assert run <= locked("run.txt").keys()
    assert serve <= locked("serve.txt").keys()
    assert serve | dev | names(groups["build"]) <= locked("dev.txt").keys()
    assert names(groups["build"]) <= locked("build.txt").keys()
    for name in ("run.txt", "serve.txt", "build.txt"):
        assert locked(name).items() <= locked("dev.txt").items()


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_locks_have_hashes_and_no_addresses(path):
    """A lock names each thing once, with hashes, and no place to get it from."""
    text = path.read_text("utf-8")
    pinned = re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)
    assert len(pinned) == len(set(pinned))
    assert len(re.findall(r"==[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", text)) == len(pinned)
    assert not re.findall(r"://|--index|--find-links|--trusted|^-", text, re.MULTILINE)


def make(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Make with an environment that is ready, whose `pravda` tells what it was given."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / "pravda").write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    (programs / "pravda").chmod(0o755)
    for stamp in (".ready-run", ".ready-serve", ".ready-dev"):
        (tmp_path / "venv" / stamp).touch()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments, f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/",
        "https://example.org/?a=1&b=2;c#d",
        "https://example.org/it's",
        'https://example.org/"$HOME"',
        "https://example.org/$(touch /nowhere)?`id`",
        "https://example.org/a b\\c%20%",
        "-x",
    ],
)
def test_make_run_passes_the_url_as_it_is(tmp_path, url):
    """Whatever a URL holds, the command gets it as one argument, unchanged."""
    assert make(tmp_path, "run", f"URL={url}").stdout == f"<capture><--><{url}>"


def test_make_run_without_a_url_is_the_demo(tmp_path):
    """Without URL, the demo runs."""
    assert make(tmp_path, "run").stdout == "<demo>"


def test_make_serve_serves(tmp_path):
    """`make serve` starts the service."""
    assert make(tmp_path, "serve").stdout == "<serve>"


def test_make_alone_tells_what_there_is(tmp_path):
    """`make` lists what it can do."""
    assert "make run URL=" in make(tmp_path).stdout


def setup(folder: Path, python: str, path: Path) -> subprocess.CompletedProcess[str]:
    """The set-up script with one name of Python to try, in a search path of our own."""
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "setup"), str(folder), "run"],
        cwd=ROOT,
        env={"PATH": f"{path}:/usr/bin:/bin", "PYTHON": python},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_setup_without_a_python_says_what_to_do(tmp_path):
    """Where no Python is new enough or runs, set-up says so and leaves nothing behind."""
    shim = tmp_path / "python-shim"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    for name in ("python-shim", "no-such-python"):
        done = setup(tmp_path / "venv", name, tmp_path)
        assert done.returncode == 1
        assert f"no Python 3.11 or newer was found under the name {name}" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_setup_without_ensurepip_names_the_package(tmp_path):
    """On Debian without the package for environments, a user who is not root is told the one command that helps."""
    for name, lines in {
        "python-debian": f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"',
        "apt-get": "exit 0",
        "id": "echo 1000",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    done = setup(tmp_path / "venv", "python-debian", tmp_path)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert done.returncode == 1
    assert f"sudo apt-get install -y python{version}-venv" in done.stderr


def test_scripts_are_well_formed():
    """The shell scripts parse, and what is called by name may be executed."""
    for name, shell in (("scripts/setup", "sh"), ("scripts/lock", "sh"), (".ci/run", "bash")):
        assert subprocess.run([shell, "-n", name], cwd=ROOT, check=False).returncode == 0
        assert os.access(ROOT / name, os.X_OK)
