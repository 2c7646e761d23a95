"""`pravda verify`: whether everything that was kept is still there and unchanged."""

import json
from collections.abc import Iterable
from pathlib import Path

import click

from pravda.archive.findings import Finding
from pravda.archive.verify import Counts, verify
from pravda.cli import options
from pravda.cli.progress import Bar, bar
from pravda.cli.trouble import told
from pravda.cli.words import safe, size
from pravda.core.digest import Json
from pravda.core.states import Exit
from pravda.settings import load

_HELP = """Look at every row and every blob of the archive, and name what is missing, unreadable or changed.

Files that no row names are told too; they are no damage. Captures may run meanwhile.

--repair moves changed blobs and such files to the folder `quarantine` in the archive; nothing is deleted and no row
is touched. What cannot be read stays where it is: mend its rights or the disk.

Exit codes: 0 nothing is damaged; 5 damage was found, repaired or not; 4 there is no archive; 20 its catalog cannot be
read."""


@click.command("verify", help=_HELP, short_help="Check that everything kept is still there and unchanged.")
@click.option("--repair", is_flag=True, help="Move changed and unneeded files into quarantine.")
@options.as_json
@options.home
def command(*, repair: bool, as_json: bool, home: Path | None) -> None:
    """Look, print as it is found, and exit 5 where there is damage."""
    counts = Counts()
    with told(), bar("Verifying") as shown:

        def tick() -> None:
            whole = counts.all_rows + counts.all_blobs
            shown.show(counts.rows + counts.blobs, whole, f"({counts.damaged} damaged)")

        findings = verify(load(home=home).home, repair=repair, counts=counts, tick=tick)
        if as_json:
            _print_json(findings, counts, shown)
        else:
            _print(findings, counts, shown)
    click.get_current_context().exit(Exit.DAMAGED if counts.damaged else Exit.OK)


def _print(findings: Iterable[Finding], counts: Counts, shown: Bar) -> None:
    for finding in findings:
        word = click.style(str(finding.harm or finding.what), fg="red" if finding.is_damage else "yellow")
        moved = f" Moved to {finding.moved_to}." if finding.moved_to else ""
        shown.say(f"{word} {finding.what} {safe(finding.name)}: {safe(finding.detail)}{safe(moved)}")
    if counts.damaged:
        shown.say(f"{counts.damaged} damaged: these bytes and rows are not handed out as evidence.")
    if counts.orphans:
        hint = "" if counts.moved else "; `pravda verify --repair` moves them into quarantine"
        shown.say(f"{counts.orphans} files of {size(counts.orphan_bytes)} that nothing needs{hint}.")
    shown.say(
        f"{'No damage in' if not counts.damaged else 'Looked at'} {counts.rows} snapshots and {counts.blobs} blobs "
        f"with {size(counts.bytes)} of content."
    )


def _print_json(findings: Iterable[Finding], counts: Counts, shown: Bar) -> None:
    """One object, written as it is found, so that memory stays flat however much is damaged."""
    begin = mark = '{"findings":['  # not written before it is known that there is an archive
    for finding in findings:
        shown.say(f"{mark}{json.dumps(_wire(finding))}")
        mark = ","
    totals = {
        "damaged": counts.damaged,
        "orphans": counts.orphans,
        "orphan_bytes": counts.orphan_bytes,
        "moved": counts.moved,
        "snapshots": counts.rows,
        "blobs": counts.blobs,
        "content_bytes": counts.bytes,
    }
    shown.say(f"{begin if mark == begin else ''}],{json.dumps(totals)[1:]}")


def _wire(finding: Finding) -> dict[str, Json]:
    return {
        "what": finding.what.value,
        "harm": finding.harm.value if finding.harm else None,
        "name": finding.name,
        "snapshot": finding.snapshot,
        "detail": finding.detail,
        "moved_to": str(finding.moved_to) if finding.moved_to else None,
    }
