"""The way in: the first screen without click, which takes longer to import than all else, the rest through it."""

import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from pravda.cli.table import overview


def main() -> NoReturn:
    """The entry point."""
    if sys.argv[1:] in (["-h"], ["--help"]):
        with suppress(AttributeError, OSError):  # stdout is closed or full, of which the rest tells
            sys.stdout.write(overview())
            sys.stdout.flush()
            sys.exit(0)
    sys.exit(import_module("pravda.cli.main").run())
