"""The command line: a table of commands, each of which is imported only when it is asked for."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import NoReturn

import click

COMMANDS = {
    "capture": "Capture a page now and answer with the best evidence allowed.",
    "history": "List what is kept of a page, newest first.",
    "show": "Show everything that is known of one snapshot.",
    "cat": "Write one artifact of a snapshot, byte for byte.",
    "diff": "Show what changed between two snapshots.",
    "verify": "Check that everything kept is still there and unchanged.",
    "du": "Show what the archive takes of the disk, and for which hosts.",
    "init": "Begin a snapshot tree, or take over one that is there.",
    "refresh": "Ask for the pages of a snapshot tree that are due.",
    "status": "Show how the pages of a snapshot tree stand.",
    "forget": "Remove the files of a page that a snapshot tree no longer names.",
    "parse": "Run a source's parser over a stored page; never a request.",
    "build": "Parse every source of a tree into one document; never a request.",
    "fixture": "Pin pages for ever, and hold parsers to them.",
    "new-parser": "Write a parser to begin with, from the page that is stored.",
    "demo": "See fresh, stale and failed answers on a small site of our own.",
}
"""Name of a command, which is its module's too, dashes made underscores → its line in `pravda --help`."""

_INTERRUPTED = 130  # states.Exit, which would cost the help screen an import of the law
_BROKEN_PIPE = 141  # 128 + SIGPIPE, as shells report it of other programs


class Commands(click.Group):
    """Commands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"pravda.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing what it names."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="pravda-evidence", message="pravda %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Keep durable evidence of web pages, and get back the newest that is good enough."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; foreseeable trouble is one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no page may break a terminal that is not UTF-8
    try:
        code = cli.main(arguments, prog_name="pravda", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as problem:
        problem.show()
        return problem.exit_code
    except click.ClickException as problem:
        click.echo(f"pravda: {problem.format_message()}", err=True)
        return problem.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("pravda: interrupted", err=True)
        return _INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # click makes a SystemExit of a closed pipe wherever it meets one, and of nothing else here; the interpreter flushes once more at its end and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return code if isinstance(code, int) else 0


def main() -> NoReturn:
    """The entry point."""
    sys.exit(run())
