"""Small trees with parsers, written into a folder."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from textwrap import dedent

from pravda.assemble import open_bench
from pravda.parsing.bench import Bench
from pravda.parsing.values import Job, Limits

NOW = datetime(2026, 3, 5, 6, tzinfo=UTC)
URL = "https://example.org/list?page=1"
LIST = b"<!doctype html><meta charset=utf-8><ul><li>one</li><li>two</li></ul>"

ITEMS = """
    def can_parse(page):
        return page.document.find(".//ul") is not None

    def parse(page):
        for item in page.document.iter("li"):
            yield {"title": item.text_content(), "now": page.now}
"""
"""A parser of lists, in a module of its own."""


def source(source_id: str = "a", *more: str, parser: str | None = "parsers.items:parse") -> str:
    """A source as the sources file holds it."""
    named = [f'parser = "{parser}"'] if parser else []
    url = f'url = "{URL}"' if source_id == "a" else f'url = "https://example.org/{source_id}"'
    return "\n".join(["[[source]]", f'id = "{source_id}"', url, *named, *more, ""])


def write(root: Path, name: str, text: str | bytes) -> Path:
    """A file below the root."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else dedent(text).lstrip("\n").encode())
    return path


def snapshot(root: Path, source_id: str, body: bytes, **told: object) -> None:
    """A stored page with its metadata."""
    write(root, f"snapshots/{source_id}.html", body)
    meta = {
        "sourceId": source_id,
        "url": URL,
        "contentHash": sha256(body).hexdigest(),
        "bytes": len(body),
        "charset": "utf-8",
        "contentChangedAt": "2026-03-02T06:00:00.000Z",
        "lastConfirmedAt": "2026-03-04T06:00:00.000Z",
        "itemCount": 2,
        **told,
    }
    write(root, f"snapshots/{source_id}.meta.json", json.dumps(meta))


def grove(
    root: Path,
    sources: str | None = None,
    pages: Mapping[str, bytes] | None = None,
    **parsers: str,
) -> Path:
    """A tree with parsers by module name, and pages by source."""
    write(root, "sources.toml", sources or source())
    for name, text in {"items": ITEMS, **parsers}.items():
        write(root, f"parsers/{name}.py", text)
    for source_id, body in ({"a": LIST} if pages is None else pages).items():
        snapshot(root, source_id, body)
    return root


def bench(root: Path, **limits: float) -> Bench:
    """The tree laid out."""
    return open_bench(root, Limits(**limits))  # type: ignore[arg-type]  # seconds may be broken ones, the rest whole


def job(parser: str = "parsers.items:parse", body: bytes = LIST, **fields: object) -> Job:
    """A page and a parser."""
    given: dict[str, object] = {
        "source_id": "a",
        "parser": parser,
        "body": body,
        "url": URL,
        "charset": "utf-8",
        "captured_at": NOW,
        "now": NOW,
        **fields,
    }
    return Job(**given)  # type: ignore[arg-type]  # a test's own values
