"""What becomes of a refresh's result: the document is built, and both are committed and pushed."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from pravda.cli.rebuild import inside, rebuild
from pravda.core.evidence import Note
from pravda.errors import PravdaError
from pravda.tree import report
from pravda.tree.pending import Unsaved, unsaved
from pravda.tree.repository import Repository, Target
from pravda.tree.results import RunResult
from pravda.tree.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the result goes."""

    repository: Repository | None
    """None: nothing is committed."""
    target: Target | None
    """None: nothing is pushed."""


@dataclass(slots=True, kw_only=True)
class Ending:
    """What became of a run's result."""

    result: RunResult
    committed: str | None = None
    """Hash of what was committed, or of what the remote holds since; None: nothing was."""
    said: list[str] = field(default_factory=list)
    """What went well, a line each."""
    troubles: list[str] = field(default_factory=list)
    """What did not, a sentence each; any makes the command fail."""

    def warn(self, code: str, detail: str) -> None:
        """Add a warning to those of the run."""
        note = Note(code=code, detail=detail)
        self.result = replace(self.result, warnings=(*self.result.warnings, note))


def deliver(root: Path, place: Place, run: Run, ending: Ending, *, build: bool) -> None:
    """Build, then commit, then push; the first that fails is the last."""
    out = root / run.sources.build_out if build and run.sources.build_out else None
    try:
        if place.repository is None:
            if out and ending.result.dirty and (problem := _build(root, out, run, ending)):
                ending.troubles.append(f"the build failed: {problem}")
        elif _commit(root, out, place.repository, run, ending) and place.target:
            _push(place.repository, place.target, ending)
    except PravdaError as problem:
        ending.troubles.append(str(problem))


def _build(root: Path, out: Path, run: Run, ending: Ending) -> str | None:
    """Build the document; why that failed, None: it did not."""
    built = rebuild(root, out, run.clock.now())
    if built.problem is None:
        ending.said.append(f"built {out}")
    if built.missing:
        words = "without items in the document, having neither snapshot nor fixture"
        ending.warn("build", f"{words}: {', '.join(built.missing)}")
    return built.problem


def _commit(root: Path, out: Path | None, repository: Repository, run: Run, ending: Ending) -> bool:
    """Commit what of the tree the last commit does not hold, whichever run left it; False: the build failed."""
    committed = repository.committed()
    found = unsaved(run.tree, run.sources.chosen(run.only), committed)
    if found.left_out:
        words = "left out of the commit, since page and metadata do not belong together (see `pravda status`)"
        ending.warn("left_out", f"{words}: {', '.join(found.left_out)}")
    document = inside(root, out) if out else None
    if document and repository.is_ignored(document):
        document = None
    stale = ending.result.dirty or found.pages or (document and committed.differs(document))
    if out and stale and (problem := _build(root, out, run, ending)):
        ending.troubles.append(f"the build failed, so nothing is committed: {problem}")
        return False
    if document and not committed.differs(document):
        document = None
    _record(repository, found, document, ending)
    return True


def _record(repository: Repository, found: Unsaved, document: str | None, ending: Ending) -> None:
    """Make the commit, where there is anything to commit."""
    seen = {name: blob for page in found.pages for name, blob in page.blobs}
    names = [*seen, *([document] if document else [])]
    if not names:
        return
    if loose := repository.converted(list(seen)):
        words = f"git may change line ends of {len(loose)} files on a clone: .gitattributes needs `snapshots/** -text`"
        ending.warn("attributes", words)
    message = report.commit_message(found.pages, document)
    ending.committed = repository.commit(names, message, seen)
    if ending.committed:
        ending.said.append(f"committed {ending.committed[:10]}: {message.splitlines()[0]}")


def _push(repository: Repository, target: Target, ending: Ending) -> None:
    """Push the commit, and those of earlier runs whose push failed."""
    if not ending.committed and not repository.is_ahead(target):
        return
    pushed = repository.push(target)
    ending.committed = pushed.commit
    ending.said.append(f"pushed {pushed.commit[:10]} to {target.remote}")
    if pushed.warning:
        ending.warn("pushed", pushed.warning)
