"""Commands on a tree, run in this process or in one of their own, outside of any workflow."""

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from pravda.cli.main import cli
from tests.repositories import ALONE

OUTSIDE = {
    name: None for name in os.environ if name.startswith(("CI", "GITHUB_", "GITEA_", "GIT_", "PRAVDA_"))
}
"""Takes the variables of a workflow, and of whoever runs the tests, out of the environment."""
LOOPBACK = {"PRAVDA_ALLOW_ADDRESSES": "127.0.0.0/8"}


def pravda(*arguments: object, **variables: str) -> Result:
    """One command in this process."""
    environment = (
        OUTSIDE | LOOPBACK | {name: ALONE[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")}
    )
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], env=environment | variables)


def started(*arguments: object, cwd: Path | None = None, **variables: str) -> "subprocess.Popen[str]":
    """One command in a process of its own, still running."""
    kept = {name: value for name, value in ALONE.items() if name not in OUTSIDE}
    return subprocess.Popen(
        [sys.executable, "-m", "pravda", *map(str, arguments)],
        cwd=cwd,
        env=kept | LOOPBACK | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
