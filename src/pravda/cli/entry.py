"""The way in: the first screen without click, which takes longer to import than all else, the rest through it."""

import sys
from importlib import import_module
from typing import NoReturn

from pravda.cli.table import overview


def main() -> NoReturn:
    """The entry point."""
    if sys.argv[1:] in (["-h"], ["--help"]):
        sys.stdout.write(overview())
        sys.exit(0)
    sys.exit(import_module("pravda.cli.main").run())
