"""Disks that misbehave, for tests that need the real thing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int = 2) -> Iterator[Path]:
    """A file system of a few megabytes mounted on a new folder; skips where none can be mounted."""
    disk = folder / "small-disk"
    disk.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(disk))
    try:
        yield disk
    finally:
        _run("umount", "--lazy", str(disk))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that takes no writes: for root by a mount, since root passes over rights, else by its rights."""
    if os.geteuid() == 0:
        _mount("--bind", str(folder), str(folder))
        try:
            _mount("-o", "remount,bind,ro", str(folder))
            yield
        finally:
            _run("umount", "--lazy", str(folder))
        return
    paths = [folder, *folder.rglob("*")]
    rights = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(rights[path] & ~0o222)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(rights[path])


def fill(disk: Path, spare: int = 0) -> Path:
    """Fill a disk but for `spare` bytes; deleting the file frees it again."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
        file.truncate(max(0, file.tell() - spare))
    return ballast


def _mount(*arguments: str) -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux can mount a file system")
    problem = _run("mount", *arguments)
    if problem:
        pytest.skip(f"no file system can be mounted here: {problem}")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or "refused"
