"""The repository a tree lives in: its own files are committed, and pushed behind whatever others have pushed."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pravda.tree.committed import Committed
from pravda.tree.git import REMOTE_PATIENCE, Git, GitTrouble, words_of

MOST_REBASES: Final = 3
"""How often a rejected push is tried again behind what others have pushed."""

_FILE: Final = "100644"
_MOST_NAMED: Final = 5
_NOBODY: Final = {"NAME": "Pravda", "EMAIL": "pravda@localhost"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a tree of git has under a path."""

    mode: str
    """Octal; "000000" where there is nothing."""
    blob: str


@dataclass(frozen=True, slots=True)
class _Change:
    """What a commit did to one path."""

    path: str
    before: _Entry
    after: _Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to push."""

    remote: str
    ref: str
    """The whole name, as refs/heads/main."""
    tracking: str
    """What was last seen of it, as refs/remotes/origin/main; may not be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What a push came to."""

    commit: str
    """Hash of what the remote branch holds now."""
    warning: str = ""
    """Why the local branch is not there yet; "": it is."""


class Repository:
    """The git repository around a tree's root; everything else in it stays as it is."""

    def __init__(self, root: Path, environment: Mapping[str, str] | None = None) -> None:
        """Raises GitTrouble where there is none."""
        self._git = Git(root, environment)
        found = self._git.run("rev-parse", "--show-prefix")
        if found.returncode != 0:
            raise GitTrouble(f"{root} is in no working copy of git: {words_of(found)}")
        self._prefix = os.fsdecode(found.stdout).removesuffix("\n")
        self._people = self._identity()

    # committing

    def commit(self, names: Sequence[str], message: str, seen: Mapping[str, str] | None = None) -> str | None:
        """Commit these files of the tree as they are on disk; the commit's hash, None: nothing differs.

        What else is staged or changed stays so. Bytes are stored verbatim, whatever the attributes say. `seen` has
        git's hashes of files that must still be what was looked at. Raises GitTrouble.
        """
        head = self._head()
        entries = self._stored(names)
        now = {name: entry.blob for name, (_path, entry) in zip(names, entries, strict=True)}
        if moved := [name for name, blob in (seen or {}).items() if now.get(name) != blob]:
            raise GitTrouble(f"{moved[0]} was changed by another meanwhile, so nothing is committed")
        with self._index(head) as index:
            self._put(entries, index)
            tree = self._git.text("write-tree", variables=index)
        if head and tree == self._git.text("rev-parse", f"{head}^{{tree}}"):
            return None
        new = self._committed(tree, head, message.encode(), self._people)
        # the index first: were it to fail behind the branch, the next commit of a person would undo this one
        self._put(entries)
        self._git.text("update-ref", "-m", "pravda refresh", "HEAD", new, head or "")
        return new

    def committed(self) -> Committed:
        """The tree's files as the last commit has them."""
        head = self._head()
        entries = self._entries(head) if head else {}
        return Committed(
            self._git,
            {
                path.removeprefix(self._prefix): entry.blob
                for path, entry in entries.items()
                if path.startswith(self._prefix)
            },
        )

    def is_ignored(self, name: str) -> bool:
        """Whether git is told to leave a file of the tree out, and has not taken it in before."""
        return self._git.run("check-ignore", "--quiet", "--", name).returncode == 0

    def converted(self, names: Sequence[str]) -> tuple[str, ...]:
        """The files whose bytes git may change on a clone, since no attribute forbids it."""
        asked = "".join(f"{name}\0" for name in names).encode()
        fields = os.fsdecode(self._git.data("check-attr", "-z", "--stdin", "text", stdin=asked)).split("\0")
        return tuple(name for name, value in zip(fields[::3], fields[2::3], strict=False) if value != "unset")

    def _head(self) -> str | None:
        """The last commit; None: there is none yet."""
        return self._git.text_or_none("rev-parse", "--verify", "--quiet", "HEAD^{commit}")

    def _stored(self, names: Sequence[str]) -> list[tuple[str, _Entry]]:
        """The files as objects of the repository, by path from its top."""
        # whole paths, since git reads others from the top of the repository, not from where it was started
        paths = [os.fsencode(self._git.folder.absolute() / name) for name in names]
        if any(b"\n" in path for path in paths):
            raise GitTrouble("a file whose path holds a line break cannot be committed")
        lines = b"".join(path + b"\n" for path in paths)
        blobs = self._git.text("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=lines).split()
        return [(self._prefix + name, _Entry(_FILE, blob)) for name, blob in zip(names, blobs, strict=True)]

    def _committed(self, tree: str, parent: str | None, message: bytes, people: Mapping[str, str]) -> str:
        sign = ("-S",) if self._git.text_or_none("config", "--bool", "commit.gpgsign") == "true" else ()
        parents = ("-p", parent) if parent else ()
        return self._git.text(
            "commit-tree", *sign, *parents, "-F", "-", tree, stdin=message, variables=people
        )

    def _identity(self) -> dict[str, str]:
        """Who commits where nobody has told git; otherwise git's own settings hold."""
        return {
            f"GIT_{role}_{part}": value
            for part, value in _NOBODY.items()
            for role in ("AUTHOR", "COMMITTER")
            if not self._git.says(f"GIT_{role}_{part}")
            and not self._git.text_or_none("config", f"user.{part.lower()}")
            and not self._git.text_or_none("config", f"{role.lower()}.{part.lower()}")
        }

    @contextmanager
    def _index(self, commit: str | None) -> Iterator[Mapping[str, str]]:
        """A second index that holds a commit's tree, so that what is staged in the first plays no part."""
        with tempfile.TemporaryDirectory(prefix="pravda-") as folder:
            index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
            self._git.text("read-tree", commit or "--empty", variables=index)
            yield index

    def _put(self, entries: Sequence[tuple[str, _Entry]], index: Mapping[str, str] | None = None) -> None:
        lines = b"".join(
            f"{entry.mode} {entry.blob}\t".encode() + os.fsencode(path) + b"\0" for path, entry in entries
        )
        self._git.text("update-index", "-z", "--index-info", stdin=lines, variables=index)

    # pushing

    def target(self, branch: str | None = None) -> Target:
        """Where the branch is pushed to; `branch` names it where none is checked out. Raises GitTrouble."""
        local = self._git.text_or_none("symbolic-ref", "--quiet", "--short", "HEAD")
        name = local or branch
        if not name or self._git.text_or_none("check-ref-format", f"refs/heads/{name}") is None:
            raise GitTrouble("no branch is checked out, so there is nowhere to push to")
        remotes = self._git.text("remote").splitlines()
        remote = self._git.text_or_none("config", f"branch.{name}.remote") or "origin"
        if remote not in remotes:
            if len(remotes) != 1:
                raise GitTrouble(f"the branch {name} has no remote to push to")
            remote = remotes[0]
        ref = self._git.text_or_none("config", f"branch.{name}.merge") or f"refs/heads/{name}"
        if not ref.startswith("refs/heads/"):
            raise GitTrouble(f"the branch {name} follows {ref:.200}, which is no branch")
        tracking = f"refs/remotes/{remote}/{ref.removeprefix('refs/heads/')}"
        return Target(remote=remote, ref=ref, tracking=tracking)

    def push(self, target: Target) -> Pushed:
        """Push what is committed, never by force; where others were first, as copies behind theirs.

        Raises GitTrouble with the local branch as it was. A copy takes each changed file as a whole: merging the
        lines of two captures would make a page that no server ever sent.
        """
        head = tip = self._git.text("rev-parse", "--verify", "HEAD^{commit}")
        seen = self._git.text_or_none("rev-parse", "--verify", "--quiet", f"{target.tracking}^{{commit}}")
        refusal = self._refusal(target, tip)
        for _ in range(MOST_REBASES):
            if refusal is None:
                break
            onto = self._fetched(target, refusal)
            tip = self._copied(head, seen, onto)
            refusal = None if tip == onto else self._refusal(target, tip)
        if refusal is not None:
            raise GitTrouble(f"{target.remote} did not take the commit, which stays here: {refusal}")
        return Pushed(commit=tip, warning="" if tip == head else self._follow(head, tip))

    def is_ahead(self, target: Target) -> bool:
        """Whether there are commits that the remote branch, as it was last seen, does not have."""
        count = self._git.text_or_none("rev-list", "--count", f"{target.tracking}..HEAD", "--")
        return count not in (None, "0")

    def _refusal(self, target: Target, commit: str) -> str | None:
        """Why the remote does not take a commit; None: it has it. Raises GitTrouble where it was not reached."""
        done = self._git.run(
            "push",
            "--porcelain",
            "--no-follow-tags",
            "--recurse-submodules=no",
            "--",
            target.remote,
            f"{commit}:{target.ref}",  # without a plus: never by force
            hooks=True,  # the one hook it has is a person's own wish, and Git LFS needs it
            patience=REMOTE_PATIENCE,
        )
        if done.returncode == 0:
            return None
        # git-push(1), "Output": a line that begins with ! is a ref that was rejected
        told = [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith("!")]
        if not told:
            raise GitTrouble(f"the commit stays here, since the push failed: {words_of(done)}")
        return told[0].rpartition("\t")[2][:200]

    def _fetched(self, target: Target, refusal: str) -> str:
        """What the remote branch holds now."""
        done = self._git.run(
            "fetch",
            "--quiet",
            "--no-tags",
            "--recurse-submodules=no",
            "--",
            target.remote,
            target.ref,
            patience=REMOTE_PATIENCE,
        )
        if done.returncode != 0:
            raise GitTrouble(
                f"the commit stays here: the push was refused ({refusal}), then the fetch: {words_of(done)}"
            )
        return self._git.text("rev-parse", "--verify", "FETCH_HEAD^{commit}")

    def _copied(self, head: str, seen: str | None, onto: str) -> str:
        """The commits that only this clone has, each made anew behind another; the last one's hash."""
        # what was seen of the remote before is not ours to push again, should it have been taken back there
        known = [f"^{onto}", *([f"^{seen}"] if seen else [])]
        listed = self._git.text("rev-list", "--reverse", "--topo-order", "--parents", head, *known, "--")
        tip = onto
        for line in listed.splitlines():
            commit, *parents = line.split()
            if len(parents) != 1:
                raise GitTrouble(
                    f"{commit[:10]} cannot be put behind what others pushed: it has {len(parents)} parents"
                )
            tip = self._copy(commit, tip)
        return tip

    def _copy(self, commit: str, onto: str) -> str:
        changes, there = self._changes(commit), self._entries(onto)
        nothing = {change.path: _Entry("000000", "0" * len(commit)) for change in changes}
        now = nothing | there
        clash = [change.path for change in changes if now[change.path] not in (change.before, change.after)]
        if clash:
            named = ", ".join(clash[:_MOST_NAMED]) + (" and more" if len(clash) > _MOST_NAMED else "")
            raise GitTrouble(
                f"others have pushed other changes to {named}; the commit stays here, nothing was pushed"
            )
        with self._index(onto) as index:
            self._put([(change.path, change.after) for change in changes], index)
            tree = self._git.text("write-tree", variables=index)
        if tree == self._git.text("rev-parse", f"{onto}^{{tree}}"):
            return onto
        message, people = self._said(commit)
        return self._committed(tree, onto, message, self._people | people)

    def _changes(self, commit: str) -> list[_Change]:
        """What a commit did, file by file."""
        raw = self._git.data("diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", commit, "--")
        fields = os.fsdecode(raw).split("\0")
        # git-diff-tree(1), "Raw output format": `:mode mode blob blob status`, NUL, path, NUL
        changes = []
        for facts, path in zip(fields[0::2], fields[1::2], strict=False):
            old_mode, mode, old_blob, blob, _status = facts.removeprefix(":").split(" ")
            changes.append(_Change(path, _Entry(old_mode, old_blob), _Entry(mode, blob)))
        return changes

    def _entries(self, commit: str) -> dict[str, _Entry]:
        """All files of a commit."""
        entries = {}
        for line in os.fsdecode(self._git.data("ls-tree", "-r", "-z", "--full-tree", commit)).split("\0"):
            facts, found, path = line.partition("\t")
            if found:
                mode, _kind, blob = facts.split(" ")
                entries[path] = _Entry(mode, blob)
        return entries

    def _said(self, commit: str) -> tuple[bytes, dict[str, str]]:
        """A commit's message and author."""
        shown = self._git.data(
            "show",
            "-s",
            "--no-show-signature",
            "--date=raw",
            "--format=%an%x00%ae%x00%ad%x00%B",
            commit,
            "--",
        )
        name, address, date, message = shown.split(b"\0", 3)
        author = {"NAME": os.fsdecode(name), "EMAIL": os.fsdecode(address), "DATE": f"@{os.fsdecode(date)}"}
        return message.rstrip(b"\n") + b"\n", {f"GIT_AUTHOR_{part}": text for part, text in author.items()}

    def _follow(self, head: str, tip: str) -> str:
        """Bring branch, index and files to what was pushed; why that is not possible, "": it was."""
        self._git.run("update-index", "-q", "--refresh")
        # as changing branches does: a file with changes of its own is in the way only where others changed it too
        moved = self._git.run("read-tree", "-m", "-u", head, tip)
        if moved.returncode != 0:
            return f"pushed as {tip[:10]}, but the local branch stays where it was: {words_of(moved)}"
        self._git.text("update-ref", "-m", "pravda refresh: behind what others pushed", "HEAD", tip, head)
        return ""
