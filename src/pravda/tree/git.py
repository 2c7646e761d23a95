"""Git, run so that it never asks, never runs a hook by surprise, and never takes a name for an option."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pravda.errors import PravdaError

LOCAL_PATIENCE: Final = 120.0
"""Seconds for what git does on this machine."""
REMOTE_PATIENCE: Final = 600.0
"""Seconds for what git does over the network."""

_NO_HOOKS: Final = ("-c", f"core.hooksPath={os.devnull}")
_QUIET: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
}
# those that point git elsewhere than where it stands, as a hook that starts us would have them set
_ELSEWHERE: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
)
_LONGEST_WORDS: Final = 600  # characters


class GitTrouble(PravdaError):
    """Git could not do what a refresh needs; the message says what to do, or git's own words."""


class Git:
    """Runs git in one folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        """`environment` stands for the process's own."""
        self.folder = folder
        given = os.environ if environment is None else environment
        self._environment = {name: value for name, value in given.items() if name not in _ELSEWHERE} | _QUIET

    def says(self, name: str) -> bool:
        """Whether a variable of the environment says something."""
        return bool(self._environment.get(name))

    def text(self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None) -> str:
        """What a command prints, without the final newline; raises GitTrouble when it fails."""
        return os.fsdecode(self.data(*arguments, stdin=stdin, variables=variables)).removesuffix("\n")

    def text_or_none(self, *arguments: str) -> str | None:
        """What a command prints; None: it failed, as it does where the thing asked for is not there."""
        done = self.run(*arguments)
        return os.fsdecode(done.stdout).removesuffix("\n") if done.returncode == 0 else None

    def data(self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None) -> bytes:
        """The bytes that a command prints; raises GitTrouble when it fails."""
        done = self.run(*arguments, stdin=stdin, variables=variables)
        if done.returncode != 0:
            raise GitTrouble(f"git {arguments[0]} failed: {words_of(done)}")
        return done.stdout

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        hooks: bool = False,
        patience: float = LOCAL_PATIENCE,
    ) -> subprocess.CompletedProcess[bytes]:
        """One command, whatever it ends with; raises GitTrouble where git is not there or does not end."""
        options: Sequence[str] = () if hooks else _NO_HOOKS
        try:
            return subprocess.run(  # noqa: S603  # no shell; names and ids stand behind `--` or inside a full ref
                ["git", *options, *arguments],  # noqa: S607  # whichever git the search path has, as for a person
                cwd=self.folder,
                env=self._environment | dict(variables or {}),
                input=stdin,
                capture_output=True,
                timeout=patience,
                check=False,
                start_new_session=True,  # ssh would ask at the terminal otherwise
            )
        except FileNotFoundError as problem:
            raise GitTrouble("git is not installed, or the tree is gone") from problem
        except OSError as problem:
            raise GitTrouble(f"git cannot be run: {problem.strerror}") from problem
        except subprocess.TimeoutExpired as problem:
            raise GitTrouble(f"git {arguments[0]} did not end within {patience:.0f} seconds") from problem


def words_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git said of its failure, in one line."""
    said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())
    return said[:_LONGEST_WORDS] or f"exit code {done.returncode}"
