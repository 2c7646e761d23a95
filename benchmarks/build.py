"""What a build costs beyond its parsers: 1,000 snapshots of 100 KB, against the parsers alone in one loop.

Run: python benchmarks/build.py [SOURCES]
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from pravda.assemble import open_bench
from pravda.parsing.build import build
from pravda.parsing.page import Page

NOW = datetime(2026, 3, 5, tzinfo=UTC)
ROWS, SIZE = 100, 100_000
PARSER = """
def can_parse(page):
    return page.document.find(".//table") is not None


def parse(page):
    for row in page.document.iterfind(".//tr"):
        name, start, end, link = row.iterfind("td")
        yield {
            "name": name.text_content(),
            "start": start.text,
            "end": end.text,
            "url": link.find("a").get("href"),
        }
"""


def page(number: int) -> bytes:
    """A page of 100 KB: a table of 100 rows among paragraphs."""
    rows = "".join(
        f"<tr><td>Event <b>{number}</b> &amp; {row}</td><td>2026-03-01</td><td>2026-03-02</td>"
        f"<td><a href='/e/{row}'>more</a></td></tr>"
        for row in range(ROWS)
    )
    text = "<p class='text'>Lorem ipsum <a href='/x'>dolor</a> sit amet, consetetur <i>sadipscing</i> elitr.</p>\n"
    begin = f"<!doctype html><meta charset=utf-8><title>{number}</title><table>{rows}</table>"
    return (begin + text * ((SIZE - len(begin)) // len(text))).encode()


def write(root: Path, count: int) -> None:
    """The tree."""
    (root / "snapshots").mkdir()
    (root / "parsers").mkdir()
    (root / "parsers" / "rows.py").write_text(PARSER)
    sources = []
    for number in range(count):
        name, body = f"s{number:04}", page(number)
        url = f"https://example.org/{name}"
        sources.append(f'[[source]]\nid = "{name}"\nurl = "{url}"\nparser = "parsers.rows:parse"\n')
        meta = {
            "sourceId": name,
            "url": url,
            "contentHash": sha256(body).hexdigest(),
            "bytes": len(body),
            "charset": "utf-8",
            "contentChangedAt": "2026-03-02T06:00:00.000Z",
        }
        (root / "snapshots" / f"{name}.html").write_bytes(body)
        (root / "snapshots" / f"{name}.meta.json").write_text(json.dumps(meta))
    (root / "sources.toml").write_text("\n".join(sources))


def alone(root: Path) -> float:
    """Seconds that the parsers need for the same pages, nothing else being done."""
    names: dict[str, object] = {}
    exec(PARSER, names)  # noqa: S102  # the very parser of the tree, without the tree
    bodies = [path.read_bytes() for path in sorted((root / "snapshots").glob("*.html"))]
    began = time.perf_counter()
    for body in bodies:
        given = Page(body, url="https://example.org/", charset="utf-8", captured_at=NOW, now=NOW)
        assert names["can_parse"](given)  # type: ignore[operator]  # what was executed
        found: Iterator[object] = names["parse"](given)  # type: ignore[operator]  # likewise
        assert len(list(found)) == ROWS
    return time.perf_counter() - began


def whole(root: Path) -> float:
    """Seconds of a build from the sources file to the document's bytes."""
    began = time.perf_counter()
    with open_bench(root) as bench:
        result = build(bench, clock=NOW)
        document = result.document()
    assert not result.failed
    assert len(document) > ROWS * len(result.sources)
    return time.perf_counter() - began


def main() -> None:
    """Both, three times, interleaved; the best of each counts."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, count)
        times = [(alone(root), whole(root)) for _ in range(3)]
    parsers, built = (min(column) for column in zip(*times, strict=True))
    print(
        f"{count} snapshots of {SIZE // 1000} KB: parsers {parsers:.2f} s, build {built:.2f} s, {built / parsers:.2f} times"
    )
    sys.exit(built > 2 * parsers)


if __name__ == "__main__":
    main()
