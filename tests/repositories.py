"""Real git repositories: a bare one as a forge has it, and clones."""

import os
import subprocess
from pathlib import Path

ALONE = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("GIT_", "GITHUB_", "GITEA_", "XDG_"))
} | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
"""An environment in which no settings of this machine's git hold."""

_WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> str:
    """What a command of git prints in a folder, without the final newline."""
    done = subprocess.run(
        ["git", *_WHO, *arguments], cwd=folder, env=ALONE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout.removesuffix("\n")


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write files, with the folders they are in."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def commit(folder: Path, files: dict[str, bytes], message: str = "by hand") -> str:
    """Write files and commit them as a person would; the commit's hash."""
    write(folder, files)
    git(folder, "add", "--", *files)
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def forge(folder: Path, files: dict[str, bytes]) -> Path:
    """A bare repository whose branch main holds some files."""
    bare, first = folder / "forge.git", folder / "first"
    bare.mkdir()
    first.mkdir()
    git(bare, "init", "-q", "--bare")
    git(first, "init", "-q")
    commit(first, files, "begin")
    git(first, "push", "-q", str(bare), "HEAD:refs/heads/main")
    return bare


def clone(bare: Path, name: str, *options: str) -> Path:
    """A clone beside a bare repository, reached as a remote one is."""
    git(bare.parent, "clone", "-q", *options, bare.as_uri(), name)
    return bare.parent / name


def shown(bare: Path, path: str, ref: str = "main") -> bytes:
    """The bytes of a file in a branch."""
    done = subprocess.run(
        ["git", "cat-file", "blob", f"{ref}:{path}"], cwd=bare, env=ALONE, capture_output=True, check=True
    )
    return done.stdout


def touched(folder: Path, ref: str = "HEAD") -> set[str]:
    """The files that a commit changed."""
    return set(git(folder, "show", "--format=", "--name-only", ref).splitlines())


def status(folder: Path) -> set[str]:
    """What `git status` lists, as `XY path`."""
    return set(git(folder, "status", "--porcelain", "--untracked-files=all").splitlines())
