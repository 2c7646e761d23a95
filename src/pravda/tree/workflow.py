"""The workflow that a refresh runs in, if it does: GitHub or Gitea Actions, or another."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_NO = frozenset({"", "0", "false", "no"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """What its environment says."""

    automatic: bool = False
    """Whether it runs without a person having asked."""
    actions: bool = False
    """Whether annotations are understood."""
    summary: Path | None = None
    """Where the step's summary is added; None: nowhere."""
    outputs: Path | None = None
    """Where the step's outputs are added; None: nowhere."""
    branch: str | None = None
    """The branch it runs for; None: none, as for a tag."""


def read_workflow(environment: Mapping[str, str]) -> Workflow:
    """What the environment says."""
    actions = _says(environment, "GITHUB_ACTIONS") or _says(environment, "GITEA_ACTIONS")
    if not actions and not _says(environment, "CI"):
        return Workflow()
    # GitLab's word for a person who pressed the button
    asked = environment.get("GITHUB_EVENT_NAME") == "workflow_dispatch" or (
        not actions and environment.get("CI_PIPELINE_SOURCE") == "web"
    )
    ref = environment.get("GITHUB_REF", "") if actions else ""
    return Workflow(
        automatic=not asked,
        actions=actions,
        summary=_path(environment, "GITHUB_STEP_SUMMARY"),
        outputs=_path(environment, "GITHUB_OUTPUT"),
        branch=ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else None,
    )


def add(path: Path | None, text: str) -> str:
    """Add a text to a file of the workflow; why that failed, "" where it did not."""
    if path is None:
        return ""
    try:
        with path.open("a", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        return f"{path.name[:100]!r} of the workflow cannot be written: {reason}"
    return ""


def _says(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() not in _NO


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    return Path(value) if (value := environment.get(name)) else None
