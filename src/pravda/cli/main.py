"""The commands behind one name, each imported only when it is asked for."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

import click

from pravda.cli.table import ABOUT, COMMANDS

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


@click.group(
    cls=Commands,
    help=ABOUT,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="pravda-evidence", message="pravda %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
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
