"""The table of commands, and the screen that shows it."""

ABOUT = "Keep durable evidence of web pages; get back the newest that is good enough."

COMMANDS = {
    "capture": "Capture a page now and answer with the best evidence allowed.",
    "history": "List what is kept of a page, newest first.",
    "show": "Show everything that is known of one snapshot.",
    "cat": "Write one artifact of a snapshot, byte for byte.",
    "diff": "Show what changed between two snapshots.",
    "verify": "Check that everything kept is still there and unchanged.",
    "du": "Show what the archive takes of the disk, and for which hosts.",
    "serve": "Serve the archive over HTTP.",
    "keys": "Make, list and revoke API keys of the service.",
    "init": "Begin a snapshot tree, or take over one that is there.",
    "refresh": "Ask for the pages of a snapshot tree that are due.",
    "status": "Show how the pages of a snapshot tree stand.",
    "forget": "Remove the files of a page that a tree no longer names.",
    "parse": "Run a source's parser over a stored page; never a request.",
    "build": "Parse every source into one document; never a request.",
    "fixture": "Pin pages for ever, and hold parsers to them.",
    "new-parser": "Write a parser to begin with.",
    "demo": "See fresh, stale and failed answers on a small site of our own.",
}
"""Name of a command, which is its module's too, dashes made underscores → its line in `pravda --help`."""


def overview() -> str:
    """What `pravda --help` shows, as click would write it."""
    width = max(map(len, COMMANDS))
    lines = (f"  {name:{width}}  {line}\n" for name, line in COMMANDS.items())
    return (
        f"Usage: pravda [OPTIONS] COMMAND [ARGS]...\n\n  {ABOUT}\n\n"
        "Options:\n  --version   Show the version and exit.\n  -h, --help  Show this message and exit.\n\n"
        f"Commands:\n{''.join(lines)}"
    )
