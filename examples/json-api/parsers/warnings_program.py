"""Reads weather warnings: a program that knows nothing of Pravda. The page on stdin, a JSON list on stdout."""

import json
import os
import sys

answer = json.loads(sys.stdin.buffer.read().decode(os.environ["PRAVDA_CHARSET"]))
if "warnings" not in answer:
    sys.exit("this is not the list of warnings")  # an exit code other than 0 rejects the page
json.dump(
    [
        {"area": warning["area"], "level": warning["level"], "until": warning["until"]}
        for warning in answer["warnings"]
        if warning["until"] >= os.environ["PRAVDA_NOW"]
    ],
    sys.stdout,
)
