"""The demo that `make run` shows."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from pravda import Query, State, open_blocking


def test_the_demo_shows_fresh_stale_and_failed_on_one_screen(tmp_path):
    """Three answers, each explained in a line, within 40 lines, exit code 0; the archive is kept and named."""
    done = subprocess.run(
        [sys.executable, "-m", "pravda", "demo"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    badges = [line for line in lines if line.startswith("[")]
    assert [re.split("[:,]", line)[0] for line in badges] == [
        "[LIVE] fresh",
        "[LIVE] stale",
        "[DOWN] the attempt that failed",
        "[DOWN] failed",
    ]
    (home,) = re.findall(r"PRAVDA_HOME=(\S+)", done.stdout)
    with open_blocking(home=Path(home)) as archive:
        kept = archive.history(Query())
    assert [snapshot.state for snapshot in kept] == [State.DOWN, State.DOWN, State.LIVE]
    assert all(snapshot.id in done.stdout for snapshot in kept)
    shutil.rmtree(home)
