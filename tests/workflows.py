"""Just enough of a workflow's YAML to look at it and to run its steps; the files hold no other forms."""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

_STEP = re.compile(r"(?m)^ {6}- ")
_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a job."""

    name: str
    """What it is called, else the action that it uses."""
    uses: str = ""
    condition: str = ""
    script: str = ""
    env: dict[str, str] = field(default_factory=dict)
    """As written, expressions and all."""
    inputs: dict[str, str] = field(default_factory=dict)


def steps(text: str) -> list[Step]:
    """The steps of a workflow with one job."""
    return [_step("        " + part) for part in _STEP.split(text.partition("    steps:\n")[2])[1:]]


def top_env(text: str) -> dict[str, str]:
    """The variables that hold for all steps."""
    return _mapping(text, "")


def run(
    step: Step, folder: Path, values: dict[str, str], env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a step's script as a runner does; `values` says what its expressions come to."""
    own = {name: _EXPRESSION.sub(lambda found: values[found[1]], text) for name, text in step.env.items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.script],
        cwd=folder,
        env=env | own,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _step(text: str) -> Step:
    facts: dict[str, str] = dict(re.findall(r"(?m)^ {8}([a-z]+): (?!\|)(.+?)(?: #.*)?$", text))
    script = re.search(r"(?m)^ {8}run: \|\n((?: {10}.*\n|\n)+)", text)
    return Step(
        name=facts.get("name") or facts.get("uses") or "",
        uses=facts.get("uses", ""),
        condition=facts.get("if", ""),
        script=re.sub(r"(?m)^ {10}", "", script[1]) if script else facts.get("run", ""),
        env=_mapping(text, " " * 8),
        inputs=_mapping(text, " " * 8, "with"),
    )


def _mapping(text: str, indent: str, name: str = "env") -> dict[str, str]:
    block = re.search(rf"(?m)^{indent}{name}:\n((?:{indent}  .*\n)+)", text)
    found = re.findall(rf"(?m)^{indent}  ([A-Za-z_-]+): (.+?)(?: # .*)?$", block[1]) if block else []
    return {key: value.strip('"') for key, value in found}
