"""The commands behind one name, each imported only when it is asked for."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

import click

from pravda.cli.output import Unwritable, is_of_output, silence
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
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # for as long as the program runs
    if sys.stdout is None:
        return _fail(Unwritable("it is closed", "nothing was done"))
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
        wants_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
        if isinstance(problem, click.UsageError) and wants_json:
            field = problem.param.name if isinstance(problem, click.BadParameter) and problem.param else None
            import_module("pravda.cli.trouble").print_mistake(field, problem.format_message())
        return _fail(problem)
    except (KeyboardInterrupt, click.Abort):
        click.echo("pravda: interrupted", err=True)
        return _INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # click makes a SystemExit of a closed pipe wherever it meets one, and of nothing else here; the interpreter flushes once more at its end and would complain
        silence()
        return _BROKEN_PIPE
    except OSError as problem:
        if not is_of_output(problem):
            raise
        return _fail(Unwritable(problem.strerror or str(problem)))
    return code if isinstance(code, int) else 0


def _fail(problem: click.ClickException) -> int:
    click.echo(f"pravda: {problem.format_message()}", err=True)
    if isinstance(problem, Unwritable):
        silence()
    return problem.exit_code
