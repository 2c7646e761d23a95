"""The documents say what the code does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pravda.core.request import Timeouts
from pravda.core.states import FACTS, Reason
from pravda.settings import Settings

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def page(name: str) -> str:
    """A page's text."""
    return (ROOT / "docs" / name).read_text("utf-8")


def test_generated_parts_are_up_to_date():
    """What `make docs` writes is what stands there: reasons, statuses, exit codes, commands, settings, budgets."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "docs.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_reason_is_documented():
    """Each reason stands in the table with its cause, its state and its sentence."""
    text = page("outcomes.md").partition("## Reasons")[2]
    for reason in Reason:
        facts = FACTS[reason]
        (row,) = re.findall(rf"^\| `{reason}` \| .*$", text, re.MULTILINE)
        assert f"| `{facts.cause}` | {facts.state}" in row
        assert facts.sentence in row


def test_every_setting_and_budget_is_documented():
    """Each setting stands in the table by its variable, each budget with its default."""
    text = page("settings.md")
    for name in Settings.model_fields:
        assert f"| `PRAVDA_{name.upper()}` | `{name}` |" in text
    assert f"| `connect` | {Timeouts().connect:g} s |" in text


def test_every_dependency_has_its_reason():
    """Each library that is installed with Pravda is explained."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (listed,) = re.findall(r"^dependencies = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    text = page("why.md").lower()
    for name in re.findall(r'"([a-z0-9-]+)', listed):
        assert name in text or name.replace("-", ".", 1) in text, name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    """Every relative link of a page leads to a file that is there."""
    for target in re.findall(r"\]\(([^)#]+)", path.read_text("utf-8")):
        assert "//" in target or (path.parent / target).exists(), target
