"""What the service writes: lines for people on a terminal, JSON elsewhere; never a secret."""

import logging
import re
import sys
from collections.abc import Mapping
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from pravda.core.redact import REDACTED, is_secret_header
from pravda.server.keys import PREFIX

_TOKEN = re.compile(rf"{PREFIX}_[0-9a-f]{{1,32}}_[\w-]+", re.ASCII)
_MARKS = (f"{PREFIX}_", "@", "earer ")
_BEARER = re.compile(r"(?<=[Bb]earer )[^\s\"',]+")
_USERINFO = re.compile(r"(?<=://)[^\s/?#\"'<>@]*@")


def scrub(value: object) -> object:
    """A value without secrets, however deep they are."""
    match value:
        case str():
            if not any(mark in value for mark in _MARKS):  # nearly always; lines are many
                return value
            return _USERINFO.sub(f"{REDACTED}@", _BEARER.sub(REDACTED, _TOKEN.sub(REDACTED, value)))
        case Mapping():
            return {
                name: REDACTED if isinstance(name, str) and is_secret_header(name) else scrub(inner)
                for name, inner in value.items()
            }
        case list() | tuple():
            return [scrub(inner) for inner in value]
        case _:
            return value


def without_secrets(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """As a step of structlog, the last before a line is made of it."""
    return {name: scrub(value) for name, value in event.items() if name != "color_message"}


def configure(stream: TextIO = sys.stderr) -> None:
    """Send everything that is logged in this process through one formatter."""
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # plain text before secrets are taken out: the handsome tracebacks of a terminal would show local variables
    show: Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if stream.isatty()
        else structlog.processors.JSONRenderer()
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=before,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            without_secrets,
            show,
        ],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    access = logging.getLogger("uvicorn.access")
    access.handlers.clear()
    access.propagate = False  # its lines would show queries
