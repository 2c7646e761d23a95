"""A sources file for a tree that is there already, from the metadata in it."""

import json
import os
from dataclasses import dataclass

from pravda.core.mistake import BadRequest
from pravda.tree.files import Tree
from pravda.tree.layout import DEFAULT_EXTENSION, is_body_of
from pravda.tree.sources_file import parse_sources

_HEAD = """\
# The pages of this tree, taken over from their metadata.

[defaults]
# Where a site finds out who asks and why; it goes into the User-Agent. Please set it.
# contact = "https://example.org/about-our-crawler"
interval = "6h"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What could be taken over."""

    text: str
    """The sources file."""
    ids: tuple[str, ...]
    passed_over: tuple[tuple[str, str], ...]
    """Ids that could not be taken over, and why."""


def adopt(tree: Tree) -> Adopted:
    """The sources of a tree by its metadata; nothing is written."""
    blocks, ids, passed_over = [_HEAD], [], []
    extensions = _extensions(tree)
    for source_id in tree.ids():
        found = extensions.get(source_id, [])
        extension = found[0] if len(found) == 1 else DEFAULT_EXTENSION
        page = tree.page(source_id, extension)
        block = _block(source_id, page.meta.url, extension) if page.meta else ""
        problem = _problem(block) if page.meta else (page.damage or ("it has no metadata",))[0]
        if problem:
            passed_over.append((source_id, problem))
        else:
            blocks.append(block)
            ids.append(source_id)
    return Adopted(text="\n".join(blocks), ids=tuple(ids), passed_over=tuple(passed_over))


def _extensions(tree: Tree) -> dict[str, list[str]]:
    """The extensions under which pages are stored, by source."""
    found: dict[str, list[str]] = {}
    for name in sorted(os.listdir(tree.folder)) if tree.folder.is_dir() else ():
        source_id, _, extension = name.rpartition(".")
        if is_body_of(source_id, name):
            found.setdefault(source_id, []).append(extension)
    return found


def _block(source_id: str, url: str, extension: str) -> str:
    lines = ["[[source]]", f"id = {_quoted(source_id)}", f"url = {_quoted(url)}"]
    if extension != DEFAULT_EXTENSION:
        lines.append(f"extension = {_quoted(extension)}")
    return "\n".join(lines) + "\n"


def _problem(block: str) -> str | None:
    """Why a source cannot stand in a sources file; None: it can."""
    try:
        parse_sources(block.encode("utf-8", "surrogatepass"))
    except BadRequest as problem:
        return problem.problem
    return None


def _quoted(text: str) -> str:
    # TOML 1.0, "String": the escapes of JSON hold, and DEL is to be escaped as well
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
