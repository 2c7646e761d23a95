"""What a refresh tells people and workflows; nothing in it can be forged."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.evidence import Note
from pravda.core.states import State
from pravda.testing import page
from pravda.tree.pending import Pending
from pravda.tree.report import (
    LONGEST_SUMMARY,
    MOST_ANNOTATIONS,
    Annotation,
    Level,
    annotations,
    commit_message,
    escaped,
    harmless,
    markdown,
    outputs,
    summary_line,
)
from pravda.tree.results import Outcome, RunResult, SourceResult
from pravda.tree.state import SourceState
from pravda.tree.workflow import Workflow, add, read_workflow
from tests.trees import ONE, World, two

EVIL = "a%0Ab\r\n::error::x|y\u202e\x1b[31m\x00\u2028##[add-path]z"
TEXT = st.text(st.characters(exclude_categories=[]), max_size=80) | st.sampled_from(
    [EVIL, "::", "##[", "\\|"]
)


def source(source_id: str = "a", outcome: Outcome = Outcome.UNCHANGED, **facts: Any) -> SourceResult:
    """What became of one source."""
    streaks = {name: facts.pop(name, 0) for name in ("failures", "refusals")}
    return SourceResult(
        source_id=source_id, outcome=outcome, record=SourceState(source_id=source_id, **streaks), **facts
    )


def run(*results: SourceResult, warnings: tuple[Note, ...] = ()) -> RunResult:
    """A whole run."""
    return RunResult(results=results, warnings=warnings)


def changed(*ids: str, **facts: Any) -> list[SourceResult]:
    """Sources with new content."""
    return [
        source(name, Outcome.FETCHED, written=(f"{name}.html", f"{name}.meta.json"), **facts) for name in ids
    ]


# escaping


@given(TEXT)
def test_data_of_a_command_is_one_line(text):
    """Whatever a page says, an annotation is one line without controls, and its `%` are escaped."""
    line = Annotation(level=Level.ERROR, title=text, text=text).command()
    assert line.isprintable()
    assert re.fullmatch(r"::error title=[^:,]*::(?:(?!::).)*", line)
    assert re.sub("%(25|0D|0A|3A|2C)", "", line).count("%") == 0


def test_data_and_properties_are_escaped():
    """Data escape `%`; properties also `:` and `,`."""
    line = Annotation(level=Level.WARNING, title="a:b,c%", text="50%: x, y").command()
    assert line == "::warning title=a%3Ab%2Cc%25::50%25: x, y"
    assert escaped("a%0Ab\r\n::error::x|y") == "a%250Ab ::error::x|y"


@given(TEXT)
def test_a_line_of_a_log_is_no_command(text):
    """No line of the table begins like a command, or holds the older form of one."""
    line = harmless(" ".join(text.split()))
    assert "##[" not in line
    assert not line.lstrip().startswith("::")


@given(TEXT, TEXT)
def test_a_row_has_its_cells_and_no_markup(note, detail):
    """A page's words stay one cell of text: no line break, no raw pipe, no tag, no link."""
    text = markdown(run(source(note=note), warnings=(Note(code="x", detail=detail),)), [note])
    (row,) = [line for line in text.splitlines() if line.startswith("| a ")]
    assert row.count("|") == 7
    assert len([line for line in text.split("\n") if line.startswith("|")]) == 3
    cell = row.split("|")[6].strip()
    assert not re.search(r"[\\`*_\[\]<>@!$~{}]|://", cell)
    assert html.unescape(cell).replace("\u00a0", " ").isprintable()


def test_words_of_a_page_are_still_to_be_read():
    """What was escaped shows as what it was."""
    text = markdown(run(source(note="503; Server: *nginx* | [x](http://y)")))
    assert "503; Server: *nginx* | [x](http://y)" in html.unescape(text)


def test_a_parser_and_a_server_forge_nothing(tmp_path):
    """R-F9: a Server header and a parser's error come through a whole run as one harmless line each."""
    server = page(status=503, headers={"Server": "a%0Ab"})
    world = World(tmp_path, server, text=f'{ONE}parser = "any.module:name"\n')
    refused = world.run()
    world.clock.advance(days=1)
    rejected = world.run(page(b"<title>boom</title><li>boom boom boom"))
    for result, words in ((refused, "a%250Ab"), (rejected, "boom")):
        lines = [annotation.command() for annotation in annotations(result)]
        assert any(words in line for line in lines)
        assert all(
            line.isprintable() and line.startswith(("::error title=", "::warning title=")) for line in lines
        )


# the whole run


def test_a_run_in_one_line():
    """The counts of what happened, those that did not happen left out."""
    results = [*changed("a", "b"), source("c"), source("d", Outcome.FAILED)]
    assert summary_line(run(*results)) == "4 sources: 2 changed, 1 unchanged, 1 failed"
    assert summary_line(run()) == "0 sources: nothing to do"


def test_outputs():
    """One line each; ids of broken and refused sources are listed."""
    results = run(*changed("a", asked=True), source("b", Outcome.FAILED, failures=3), source("c", refusals=1))
    assert outputs(results, "abc").splitlines() == [
        "changed=1",
        "attempted=1",
        "confirmed=1",
        "broken=b",
        "refused=c",
        "dirty=true",
        "committed=true",
    ]
    assert "changed=0\n" in outputs(run())
    assert "broken=\n" in outputs(run())
    assert "committed=false\n" in outputs(run())


def test_annotations_put_the_worst_first():
    """Trouble and broken sources are errors, other failures and warnings are warnings."""
    results = run(
        source("a", Outcome.FAILED, failures=1, note="503"),
        source("b", Outcome.SKIPPED_INTERVAL, failures=4, note="due later"),
        source("c", warnings=(Note(code="drop", detail="1 items, 9 before."),)),
        warnings=(Note(code="hosts", detail="h"),),
    )
    told = [(note.level, note.title, note.text) for note in annotations(results, ["no push"])]
    assert told == [
        (Level.ERROR, "Refresh", "no push"),
        (Level.ERROR, "b is broken", "4 failures in a row: due later"),
        (Level.WARNING, "a: failed", "503"),
        (Level.WARNING, "hosts", "h"),
        (Level.WARNING, "c: drop", "1 items, 9 before."),
    ]


def test_a_run_in_which_nothing_came_through_is_an_error():
    """When every source failed that is told, too."""
    titles = [note.title for note in annotations(run(source("a", Outcome.REJECTED, note="x")))]
    assert titles == ["Nothing came through", "a: rejected"]


def test_annotations_are_bounded():
    """Of many only so many are told, and how many more there are."""
    many = run(*(source(f"s{number}", Outcome.FAILED) for number in range(200)), source("ok"))
    told = annotations(many)
    assert len(told) == MOST_ANNOTATIONS + 1
    assert told[-1].text == "150 more are in the summary"


def test_a_summary():
    """Counts, lists by name, warnings and a table, failures on top."""
    results = run(
        source("skipped", Outcome.SKIPPED_INTERVAL),
        *changed("new", items=3, status=200, state=State.LIVE, note="40 bytes"),
        source("bad", Outcome.FAILED, failures=3, refusals=1, forced=True, assumed_robots=True, proxied=True),
        warnings=(Note(code="x", detail="careful"),),
    )
    text = markdown(results, ["no push"])
    assert text.startswith("### 3 sources: 1 changed, 1 failed, 1 not due\n\n**Error:** no push\n")
    for line in (
        "**Broken:** bad",
        "**Refused by robots.txt:** bad",
        "**Asked although not due:** bad",
        "**Robots rules assumed to allow:** bad",
        "**Asked through a proxy of their host:** bad",
        "* run: careful",
        "| new | fetched | live | 200 | 3 | 40 bytes |",
    ):
        assert f"\n{line}\n" in text
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert rows == ["source", "---", "bad", "new", "skipped"]


def test_a_summary_is_bounded():
    """What a forge would not take is left out, and said to be; failures go in first."""
    many = [source(f"s{number}", note="x" * 500) for number in range(3000)]
    text = markdown(run(*many, source("bad", Outcome.FAILED)))
    assert len(text.encode()) < LONGEST_SUMMARY + 200
    assert "| bad |" in text
    assert re.search(r"\n\d+ more are left out\.\n$", text)


def test_the_json_report_has_the_keys_of_the_specification(tmp_path):
    """`--json` is one object with these keys, and can be written as JSON."""
    result = World(tmp_path, page(), text=two()).run()
    told = json.loads(json.dumps(result.to_json()))
    assert list(told) == [
        "results",
        "changed",
        "attempted",
        "confirmed",
        "dirty",
        "broken",
        "refused",
        "forced",
        "assumedRobots",
        "warnings",
        "hardFailure",
    ]
    assert list(told["results"][0]) == [
        "sourceId",
        "result",
        "state",
        "cause",
        "reason",
        "status",
        "items",
        "note",
    ]


# the commit's message


def pending(source_id: str, *, page: bool = False, confirms: bool = False) -> Pending:
    """What of a source is to be committed."""
    return Pending(
        source_id=source_id,
        blobs=((f"snapshots/{source_id}.meta.json", "0" * 40),),
        changed=page,
        confirms=confirms,
    )


def test_a_message_names_the_sources():
    """The first line names what changed, the rest what else is in the commit."""
    pages = [pending("a", page=True), pending("b", page=True), pending("c", confirms=True)]
    assert commit_message(pages, "public/items.json") == (
        "Refresh 2 sources: a, b\n\nChanged: a, b\nAlso written: c\nBuilt: public/items.json\n"
    )


def test_a_confirm_only_message_says_so():
    """A commit that moves nothing but the time of confirmation says that no content changed."""
    message = commit_message([pending("a", confirms=True)])
    assert message == "Confirm 1 source, no content changed: a\n\nAlso written: a\n"


def test_a_message_about_metadata_says_so():
    """A rotated validator is neither new content nor a mere confirmation."""
    message = commit_message([pending("a"), pending("b", confirms=True)])
    assert message.startswith("Update metadata of 2 sources, no content changed: a, b\n")


def test_a_message_about_the_document_alone_names_it():
    """Where no source is in the commit the document is."""
    assert commit_message([], "items.json") == "Build items.json\n\nBuilt: items.json\n"


def test_a_long_message_is_cut_in_its_first_line_only():
    """The first line stays short, the rest names every source."""
    ids = [f"source-number-{number}" for number in range(30)]
    subject, _, *body = commit_message([pending(name, page=True) for name in ids]).splitlines()
    assert subject == "Refresh 30 sources: source-number-0, source-number-1 and 28 more"
    assert body == [f"Changed: {', '.join(ids)}"]
    longest = "x" * 100
    assert commit_message([pending(longest, page=True)]).splitlines()[0].endswith(longest)


# the workflow


@pytest.mark.parametrize("forge", ["GITHUB_ACTIONS", "GITEA_ACTIONS"])
def test_a_workflow_that_a_schedule_started(forge):
    """Nobody asked, and there are places for summary and outputs."""
    found = read_workflow(
        {
            forge: "true",
            "GITHUB_EVENT_NAME": "schedule",
            "GITHUB_STEP_SUMMARY": "/s",
            "GITHUB_OUTPUT": "/o",
            "GITHUB_REF": "refs/heads/a/b",
        }
    )
    assert found == Workflow(
        automatic=True, actions=True, summary=Path("/s"), outputs=Path("/o"), branch="a/b"
    )


def test_who_asked():
    """A person is who started a workflow by hand, or sits at a terminal."""
    assert not read_workflow({}).automatic
    assert not read_workflow({"CI": "false"}).automatic
    assert read_workflow({"CI": "1"}).automatic
    assert not read_workflow({"CI": "1", "CI_PIPELINE_SOURCE": "web"}).automatic
    by_hand = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "workflow_dispatch"}
    assert not read_workflow(by_hand).automatic
    assert read_workflow(by_hand | {"GITHUB_EVENT_NAME": "push", "CI_PIPELINE_SOURCE": "web"}).automatic
    assert read_workflow(by_hand | {"GITHUB_REF": "refs/pull/1/merge"}).branch is None


def test_reports_are_added_and_trouble_is_told(tmp_path):
    """A report goes behind what is there; one that cannot be written is a sentence."""
    path = tmp_path / "summary"
    path.write_text("before\n")
    assert add(path, "é\ud800\n") == ""
    assert path.read_text("utf-8") == "before\né?\n"
    assert add(None, "x") == ""
    assert "cannot be written: Is a directory" in add(tmp_path, "x")
    assert "cannot be written: embedded null" in add(Path("a\0b"), "x")
