"""What `pravda init` writes, and that it works: parser, fixture, and the workflow's steps run for real."""

import json
import os
import re
import shutil
import sys
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from pravda.core.mistake import BadRequest
from pravda.settings import VERSION
from pravda.tree.adopt import adopt
from pravda.tree.files import Tree
from pravda.tree.layout import IGNORED, VERBATIM
from pravda.tree.scaffold import create, repository_of, scaffold
from pravda.tree.sources_file import load_sources, parse_sources
from tests.commands import pravda
from tests.conformance import SUITES
from tests.origin import HT, Origin, R
from tests.repositories import ALONE, clone, forge, git, shown, status, touched
from tests.workflows import Step, run, steps, top_env

PAGES = SUITES.parent / "cases" / "pages"
WORKFLOW = Path(".github/workflows/refresh.yml")
PAGE = b"<!doctype html><title>t</title><h1>A heading</h1><p>Some words of a page.</p>"
HASH = "0" * 64
META = {"url": "https://example.org/a", "contentHash": HASH, "contentChangedAt": "2026-01-01T00:00:00.000Z"}


def begun(root: Path, repository: str | None = None) -> dict[str, bool]:
    """A new tree; which of its files were written."""
    return {file.name: file.written for file in scaffold(root, version=VERSION, repository=repository)}


def workflow(tmp_path: Path, repository: str | None = None) -> str:
    """The text of the workflow that a new tree has."""
    begun(tmp_path, repository)
    return (tmp_path / WORKFLOW).read_text("utf-8")


# the files


def test_a_new_tree_has_what_it_needs(tmp_path):
    """Sources, lists for git, a parser with its fixture, and a workflow per forge; all are written once."""
    made = begun(tmp_path / "new" / "tree")
    assert list(made) == [
        "sources.toml",
        ".gitignore",
        ".gitattributes",
        "parsers/__init__.py",
        "parsers/example.py",
        "fixtures/example/2026-01-01.html",
        "fixtures/example/2026-01-01.meta.json",
        "fixtures/example/2026-01-01.expected.json",
        ".github/workflows/refresh.yml",
        ".gitea/workflows/refresh.yml",
    ]
    assert all(made.values())
    (source,) = load_sources(tmp_path / "new/tree/sources.toml").sources
    assert (source.id, source.parser) == ("example", "parsers.example:parse")


def test_nothing_that_is_there_is_touched(tmp_path):
    """A second time nothing is written, and lists that lack a line are named with it."""
    (tmp_path / ".gitignore").write_text("mine\n")
    (tmp_path / ".gitattributes").mkdir()
    (tmp_path / "sources.toml").symlink_to("elsewhere.toml")
    made = {file.name: file for file in scaffold(tmp_path, version=VERSION)}
    assert not made[".gitignore"].written
    assert made[".gitignore"].lacks == (*IGNORED, "__pycache__/")
    assert made[".gitattributes"].lacks == VERBATIM
    assert not made["sources.toml"].written
    assert not (tmp_path / "elsewhere.toml").exists()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert not any(begun(tmp_path).values())
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_a_folder_that_cannot_be_is_refused(tmp_path):
    """A file where a folder should be, and a name that no file can have, are named."""
    (tmp_path / "parsers").write_text("")
    with pytest.raises(BadRequest, match="parsers"):
        begun(tmp_path)
    with pytest.raises(BadRequest, match="cannot be written"):
        create(tmp_path / ("x" * 300), b"")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_sees_what_it_should(tmp_path):
    """R-E7: state, lock and leftovers are ignored, and bytes are kept from conversion."""
    git(tmp_path, "init", "-q")
    begun(tmp_path)
    (tmp_path / "snapshots").mkdir()
    for name in (
        "a.html",
        "a.meta.json",
        "a.state.json",
        "_hosts.state.json",
        "_refresh.lock",
        "a.html.tmp-1-ab",
    ):
        (tmp_path / "snapshots" / name).write_bytes(b"x")
    listed = {line[3:] for line in status(tmp_path) if "snapshots" in line}
    assert listed == {"snapshots/a.html", "snapshots/a.meta.json"}
    assert "text: unset" in git(tmp_path, "check-attr", "text", "--", "snapshots/a.html")
    assert "text: unset" in git(tmp_path, "check-attr", "text", "--", "fixtures/example/2026-01-01.html")


def test_the_example_keeps_its_fixture(tmp_path):
    """The parser makes of the fixture what is expected of it, and the tree builds without a request."""
    begun(tmp_path)
    done = pravda("fixture", "check", "--tree", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "ok       example 2026-01-01\n")
    built = json.loads(pravda("build", "--tree", str(tmp_path)).stdout)
    assert [item["title"] for item in built["sources"]["example"]["items"]] == ["A page made for a test"]


def test_the_documented_sources_can_be_read():
    """The sources file that the documentation shows is one."""
    text = (Path(__file__).parent.parent / "docs/tree.md").read_text("utf-8")
    shown = parse_sources(text.partition("```toml\n")[2].partition("```")[0].encode())
    assert [source.id for source in shown.sources] == ["events"]
    assert shown.hosts[0].assume_allowed


def test_the_owner_and_name_of_a_repository():
    """They are read from the addresses that forges give, and from nothing else."""
    for address in (
        "git@github.com:ann/tree.git",
        "https://github.com/ann/tree.git",
        "https://token@git.example/ann/tree/",
        "ssh://git@git.example:22/ann/tree",
    ):
        assert repository_of(address) == "ann/tree"
    for address in (
        "/srv/git/ann/tree.git",
        "file:///ann/tree.git",
        "git@x:tree",
        "https://x/a/b c",
        "https://x/'/''",
    ):
        assert repository_of(address) is None


# the workflow


def test_the_workflow_keeps_its_promises(tmp_path):
    """One run at a time and none cancelled, least rights, pinned actions, no expression in a script."""
    text = workflow(tmp_path)
    assert "concurrency:\n  group: pravda-refresh\n  cancel-in-progress: false\n" in text
    assert "\npermissions: {}\n" in text
    assert re.findall(r"(?m)^      (\w+): (\w+)(?: #.*)$", text) == [
        ("contents", "write"),
        ("actions", "write"),
    ]
    assert "\t" not in text
    found = steps(text)
    assert len(found) == text.count("\n      - ") == 8
    for step in found:
        assert "${{" not in step.script
        assert not step.uses or re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", step.uses)
    assert text.count("uses:") == len(re.findall(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+\n", text))
    assert f"'pravda-evidence=={VERSION}'" in text
    assert (tmp_path / ".gitea/workflows/refresh.yml").read_text("utf-8") == text


def test_the_state_is_kept_whatever_happens(tmp_path):
    """The state goes to the cache under a key of each attempt's own, also when the run failed."""
    restore, save = [step for step in steps(workflow(tmp_path)) if "/cache/" in step.uses]
    assert (
        restore.inputs["key"]
        == save.inputs["key"]
        == "pravda-state-${{ github.run_id }}-${{ github.run_attempt }}"
    )
    assert restore.inputs["restore-keys"] == "pravda-state-"
    assert save.inputs["key"].startswith(restore.inputs["restore-keys"])
    assert restore.inputs["path"] == save.inputs["path"] == "snapshots/*.state.json"
    assert (restore.condition, save.condition) == ("", "always()")


def test_a_fork_does_not_run_on_a_schedule(tmp_path):
    """Only the repository that the tree was begun in runs by itself; where its name is not known, no fork does."""
    known, unknown = workflow(tmp_path / "a", "ann/tree"), workflow(tmp_path / "b")
    assert "\n    if: github.event_name != 'schedule' || github.repository == 'ann/tree'\n" in known
    assert "\n    if: github.event_name != 'schedule' || !github.event.repository.fork\n" in unknown


def test_the_red_step_is_the_last(tmp_path):
    """A broken source turns the run red behind the commit; a refused one only where that is wished."""
    text = workflow(tmp_path)
    last = steps(text)[-1]
    assert last.condition == "always()"
    env = top_env(text) | {"PATH": os.environ["PATH"]}

    def code(broken: str, refused: str, **more: str) -> int:
        values = {"steps.refresh.outputs.broken": broken, "steps.refresh.outputs.refused": refused}
        return run(last, tmp_path, values, env | more).returncode

    assert code("", "") == 0
    assert code("a,b", "") == 1
    assert code("", "a") == 0
    assert code("", "a", RED_WHEN_REFUSED="true") == 1


def test_the_downstream_build_is_started(tmp_path):
    """Where a commit was made and a workflow is named it is started by name, with the token out of sight."""
    text = workflow(tmp_path)
    (step,) = [step for step in steps(text) if "dispatches" in step.script]
    assert step.condition == "env.DOWNSTREAM != '' && steps.refresh.outputs.committed == 'true'"
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    with _Forge() as address:
        env = {
            "PATH": os.environ["PATH"],
            "DOWNSTREAM": "build.yml",
            "GITHUB_API_URL": address,
            "GITHUB_REPOSITORY": "ann/tree",
            "GITHUB_REF": "refs/heads/main",
        }
        done = run(step, tmp_path, {"github.token": "s3cret"}, env)
    assert done.returncode == 0, done.stderr
    assert _Forge.asked == [
        (
            "/repos/ann/tree/actions/workflows/build.yml/dispatches",
            "Bearer s3cret",
            {"ref": "refs/heads/main"},
        )
    ]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        _Forge.asked.append((self.path, self.headers["Authorization"], json.loads(body)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class _Forge:
    """The one call of a forge's API that the workflow makes."""

    asked: list[tuple[str, str, object]]

    def __enter__(self) -> str:
        _Forge.asked = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_workflow_refreshes_commits_and_pushes(tmp_path):
    """The step that refreshes, run in a shallow clone while another clone pushes: everything arrives, then it is red or not."""
    begun(tmp_path / "new")
    with Origin() as site:
        site.routes["/page"] = [R(b"200 OK", PAGE, HT, b'ETag: "v1"')]
        sources = (tmp_path / "new/sources.toml").read_text("utf-8")
        sources = sources.replace("https://example.com/", site.url("/page")).replace(
            '# host_gap = "2s"', 'host_gap = "0s"'
        )
        (tmp_path / "new/sources.toml").write_text(sources, "utf-8")
        bare = forge(
            tmp_path,
            {
                path.relative_to(tmp_path / "new").as_posix(): path.read_bytes()
                for path in _all(tmp_path / "new")
            },
        )
        tree, other = clone(bare, "tree", "--depth=1"), clone(bare, "other")
        (other / "readme.txt").write_text("theirs")
        git(other, "add", "readme.txt")
        git(other, "commit", "-q", "-m", "theirs")
        git(other, "push", "-q")
        done = run(_refresh(tree), tree, _inputs(), _runner(tmp_path))
        assert done.returncode == 0, done.stdout + done.stderr
        assert shown(bare, "snapshots/example.html") == PAGE
        assert touched(bare, "main") == {"snapshots/example.html", "snapshots/example.meta.json"}
        assert git(bare, "log", "-1", "--format=%s", "main") == "Refresh 1 source: example"
        told = dict(line.split("=") for line in (tmp_path / "outputs").read_text().splitlines())
        assert (told["changed"], told["broken"], told["committed"]) == ("1", "", "true")
        assert "| example | fetched | live | 200 | 1 |" in (tmp_path / "summary").read_text()

        not_due = run(_refresh(tree), tree, _inputs(), _runner(tmp_path))
        assert (not_due.returncode, "not due" in not_due.stdout) == (0, True)
        evil = _inputs(only="example; touch evil * $(touch evil)")
        assert run(_refresh(tree), tree, evil, _runner(tmp_path)).returncode == 2
        assert not (tree / "evil").exists()
        forced = run(
            _refresh(tree), tree, _inputs(only="example", force="true"), _runner(tmp_path, "schedule")
        )
        assert (forced.returncode, "nobody started" in forced.stderr) == (2, True)
        by_hand = run(
            _refresh(tree),
            tree,
            _inputs(only="example", force="true"),
            _runner(tmp_path, "workflow_dispatch"),
        )
        assert by_hand.returncode == 0, by_hand.stderr
        assert len([target for target in site.targets() if target == "/page"]) == 2


def _all(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


def _refresh(tree: Path) -> Step:
    (step,) = [
        step for step in steps((tree / WORKFLOW).read_text("utf-8")) if "pravda refresh" in step.script
    ]
    return step


def _inputs(only: str = "", force: str = "") -> dict[str, str]:
    return {"github.event.inputs.only": only, "github.event.inputs.force": force}


def _runner(tmp_path: Path, event: str = "schedule") -> dict[str, str]:
    """The environment of a runner whose search path has this project's command."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    command = folder / "pravda"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pravda "$@"\n')
    command.chmod(0o755)
    return ALONE | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PRAVDA_ALLOW_ADDRESSES": "127.0.0.0/8",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }


# adopting


def stored(root: Path, source_id: str, *, extension: str = "html", **facts: object) -> None:
    """A page with its metadata as some other tool left it."""
    folder = root / "snapshots"
    folder.mkdir(exist_ok=True)
    (folder / f"{source_id}.{extension}").write_bytes(b"x")
    (folder / f"{source_id}.meta.json").write_text(json.dumps({"sourceId": source_id, **META, **facts}))


def test_a_tree_is_taken_over(tmp_path):
    """Each metadata file becomes a source with its id, its URL and its extension."""
    stored(tmp_path, "a", url='https://example.org/?q="x\\"&\x7f=%22é')
    stored(tmp_path, "b", extension="json")
    found = adopt(Tree(tmp_path))
    assert (found.ids, found.passed_over) == (("a", "b"), ())
    first, second = parse_sources(found.text.encode()).sources
    assert first.url == 'https://example.org/?q="x\\"&\x7f=%22é'
    assert (first.extension, second.extension) == ("html", "json")
    assert tomllib.loads(found.text)["defaults"] == {"interval": "6h"}


def test_what_cannot_be_taken_over_is_named(tmp_path):
    """Damaged metadata and URLs that nothing can ask for cost only themselves."""
    stored(tmp_path, "good")
    stored(tmp_path, "ftp", url="ftp://example.org/")
    stored(tmp_path, "half", url="https://example.org/\ud800")
    stored(tmp_path, "none", url="")
    (tmp_path / "snapshots/README").write_text("x")
    (tmp_path / "snapshots/bad.meta.json").write_text("{")
    (tmp_path / "snapshots/only.state.json").write_text("{}")
    found = adopt(Tree(tmp_path))
    assert found.ids == ("good",)
    assert [source_id for source_id, _ in found.passed_over] == ["bad", "ftp", "half", "none", "only"]
    assert all(problem for _, problem in found.passed_over)
    assert len(parse_sources(found.text.encode()).sources) == 1
    assert adopt(Tree(tmp_path / "nowhere")).ids == ()


def test_the_real_tree_is_taken_over(tmp_path):
    """The pages of the tracker that the format comes from make a sources file, and nothing else changes."""
    if not PAGES.is_dir():
        pytest.skip("the cases are not beside the project")
    shutil.copytree(PAGES, tmp_path / "snapshots")
    before = {path.name: path.read_bytes() for path in (tmp_path / "snapshots").iterdir()}
    done = pravda("init", str(tmp_path), "--adopt")
    assert done.exit_code == 0, done.stderr
    sources = load_sources(tmp_path / "sources.toml").sources
    metas = [json.loads(path.read_text()) for path in sorted((tmp_path / "snapshots").glob("*.meta.json"))]
    assert [(source.id, source.url) for source in sources] == [
        (meta["sourceId"], meta["url"]) for meta in metas
    ]
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "snapshots").iterdir()}
    assert {path.name for path in tmp_path.iterdir()} == {"snapshots", "sources.toml"}
    planned = pravda("refresh", "--tree", str(tmp_path), "--dry-run")
    assert planned.stdout.count("with If-Modified-Since: ") == 2
