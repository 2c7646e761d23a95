"""What a build costs beyond its parsers: 1,000 snapshots of 100 KB, against the parsers alone in one loop.

Run: python benchmarks/build.py [SOURCES]
"""

import json
import resource
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


def spent() -> tuple[float, float]:
    """Wall time, and processor time of this process and those that have ended, in seconds."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return time.perf_counter(), own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def since(began: tuple[float, float]) -> tuple[float, float]:
    """What was spent since then."""
    wall, processor = spent()
    return wall - began[0], processor - began[1]


def alone(root: Path) -> tuple[float, float]:
    """What the parsers need for the same pages, nothing else being done."""
    names: dict[str, object] = {}
    exec(PARSER, names)  # noqa: S102  # the very parser of the tree, without the tree
    bodies = [path.read_bytes() for path in sorted((root / "snapshots").glob("*.html"))]
    began = spent()
    for body in bodies:
        given = Page(body, url="https://example.org/", charset="utf-8", captured_at=NOW, now=NOW)
        assert names["can_parse"](given)  # type: ignore[operator]  # what was executed
        found: Iterator[object] = names["parse"](given)  # type: ignore[operator]  # likewise
        assert len(list(found)) == ROWS
    return since(began)


def whole(root: Path) -> tuple[float, float]:
    """What a build takes from the sources file to the document's bytes."""
    began = spent()
    with open_bench(root) as bench:
        result = build(bench, clock=NOW)
        document = result.document()
    assert not result.failed
    assert len(document) > ROWS * len(result.sources)
    return since(began)


def main() -> None:
    """Both, five times, interleaved; the best of each counts, since others share the machine."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, count)
        pairs = [(alone(root), whole(root)) for _ in range(5)]
    print(f"{count} snapshots of {SIZE // 1000} KB, {ROWS} items each")
    ratios = []
    for place, what in enumerate(("wall", "processor")):
        parsers, built = (min(times[place] for times in column) for column in zip(*pairs, strict=True))
        ratios.append(built / parsers)
        print(f"{what:>9}: parsers {parsers:.2f} s, build {built:.2f} s, {ratios[-1]:.2f} times")
    sys.exit(min(ratios) > 2)


if __name__ == "__main__":
    main()
