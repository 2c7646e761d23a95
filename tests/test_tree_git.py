"""Committing and pushing a tree with real git: a bare repository, and clones that push in between."""

import shutil
from pathlib import Path

import pytest

from pravda.tree.git import Git, GitTrouble
from pravda.tree.layout import VERBATIM
from pravda.tree.repository import MOST_REBASES, Repository
from tests.repositories import ALONE, clone, commit, forge, git, shown, status, touched, write

PAGE, META = "snapshots/a.html", "snapshots/a.meta.json"
OLD, NEW = b"<p>old</p>\r\n", b"<p>new</p>\r\n\n"
FILES = {
    PAGE: OLD,
    META: b"{}\n",
    "snapshots/b.html": OLD,
    "notes.txt": b"one\n",
    "other.txt": b"one\n",
    ".gitattributes": "".join(f"{line}\n" for line in VERBATIM).encode(),
}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def bare(tmp_path):
    """A forge with a tree in its branch main."""
    return forge(tmp_path, FILES)


def repository(folder: Path) -> Repository:
    """The repository around a tree, with nobody's settings."""
    return Repository(folder, ALONE)


def refreshed(folder: Path, *names: str, data: bytes = NEW, message: str = "Refresh a\n") -> str | None:
    """Write files as a refresh does, and commit them."""
    write(folder, dict.fromkeys(names, data))
    return repository(folder).commit(names, message)


def pushed(folder: Path, branch: str | None = None) -> str:
    """Push, and the warning that came."""
    own = repository(folder)
    return own.push(own.target(branch)).warning


def head(folder: Path, ref: str = "HEAD") -> str:
    """The commit of a branch."""
    return git(folder, "rev-parse", ref)


# committing


def test_a_commit_holds_the_named_files_and_nothing_else(bare):
    """What else is staged, changed or new stays exactly so."""
    tree = clone(bare, "tree")
    write(tree, {"notes.txt": b"two\n", "other.txt": b"two\n", "new.txt": b"x\n", "snapshots/b.html": NEW})
    git(tree, "add", "notes.txt")
    assert refreshed(tree, PAGE, "snapshots/c.html") == head(tree)
    assert touched(tree) == {PAGE, "snapshots/c.html"}
    assert status(tree) == {"M  notes.txt", " M other.txt", "?? new.txt", " M snapshots/b.html"}
    assert git(tree, "log", "-1", "--format=%s") == "Refresh a"


def test_nothing_is_committed_where_nothing_differs(bare):
    """Files that are as they were make no commit."""
    tree = clone(bare, "tree")
    before = head(tree)
    assert refreshed(tree, PAGE, data=OLD) is None
    assert head(tree) == before


def test_the_first_commit_of_a_repository(tmp_path):
    """A repository without any commit takes one."""
    git(tmp_path, "init", "-q")
    assert refreshed(tmp_path, PAGE) == head(tmp_path)
    assert touched(tmp_path) == {PAGE}


def test_a_tree_in_a_folder_of_a_repository(bare):
    """A tree need not be at the top, and its folder may have any name."""
    tree = clone(bare, "tree") / "-däta" / "events"
    tree.mkdir(parents=True)
    refreshed(tree, PAGE)
    assert (
        git(tree, "-c", "core.quotePath=false", "show", "--format=", "--name-only") == f"-däta/events/{PAGE}"
    )
    assert status(tree) == set()


def test_hooks_have_no_part_in_a_commit(bare):
    """A hook that refuses or rewrites commits is not run."""
    tree = clone(bare, "tree")
    for name in ("pre-commit", "commit-msg", "reference-transaction"):
        hook = tree / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    assert refreshed(tree, PAGE)


def test_who_commits(bare):
    """The person that git knows commits; where it knows none, the tool does."""
    tree = clone(bare, "tree")
    refreshed(tree, PAGE)
    assert git(tree, "log", "-1", "--format=%an <%ae> %cn") == "Pravda <pravda@localhost> Pravda"
    git(tree, "config", "user.name", "Bea")
    git(tree, "config", "user.email", "bea@example.org")
    refreshed(tree, PAGE, data=OLD)
    assert git(tree, "log", "-1", "--format=%an <%ae> %cn") == "Bea <bea@example.org> Bea"


def test_variables_that_point_git_elsewhere_are_left_out(bare, tmp_path):
    """A refresh that a hook starts commits to its own repository."""
    tree = clone(bare, "tree")
    write(tree, {PAGE: NEW})
    elsewhere = {"GIT_DIR": str(tmp_path / "nowhere"), "GIT_INDEX_FILE": str(tmp_path / "index")}
    assert Repository(tree, ALONE | elsewhere).commit([PAGE], "x") == head(tree)


@pytest.mark.parametrize("setting", ["true", "input"])
def test_line_ends_are_kept(bare, setting):
    """Bytes survive commit and clone, also where git is set to change line ends."""
    tree = clone(bare, "tree", "-c", f"core.autocrlf={setting}")
    mixed = b"a\r\nb\nc\rd\x00\xff"
    refreshed(tree, PAGE, "snapshots/c.html", data=mixed)
    assert status(tree) == set()
    pushed(tree)
    other = clone(bare, "other", "-c", "core.autocrlf=true")
    assert (other / PAGE).read_bytes() == (other / "snapshots/c.html").read_bytes() == mixed


def test_files_that_git_may_convert_are_known(bare):
    """Without the attribute a clone may change bytes, which can be told."""
    tree = clone(bare, "tree")
    assert repository(tree).converted([PAGE, "notes.txt"]) == ("notes.txt",)


def test_attributes_that_convert_do_not_reach_the_commit(bare):
    """Bytes are stored verbatim even where an attribute says text."""
    tree = clone(bare, "tree")
    (tree / ".gitattributes").write_text("* text=auto\n")
    refreshed(tree, PAGE)
    assert shown(tree, PAGE, "HEAD") == NEW


def test_ignored_files_are_known(bare):
    """A file that git is told to ignore is known as such, unless it is tracked."""
    tree = clone(bare, "tree")
    (tree / ".gitignore").write_text("/public/\nnotes.txt\n")
    own = repository(tree)
    assert own.is_ignored("public/events.json")
    assert not own.is_ignored("notes.txt")
    assert not own.is_ignored("other.json")


def test_what_changed_since_it_was_looked_at_is_not_committed(bare):
    """A page that another process replaces in between could be committed without its metadata."""
    tree = clone(bare, "tree")
    write(tree, {PAGE: NEW})
    own, before = repository(tree), head(tree)
    seen = {PAGE: own.committed().blob_of(OLD)}
    with pytest.raises(GitTrouble, match=rf"{PAGE} was changed by another"):
        own.commit([PAGE], "x", seen)
    assert head(tree) == before
    assert own.commit([PAGE], "x", {PAGE: own.committed().blob_of(NEW)})


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_what_the_last_commit_holds(tmp_path, algorithm):
    """Bytes are compared by git's own hash, under names from the tree's root; without a commit there are none."""
    git(tmp_path, "init", "-q", f"--object-format={algorithm}")
    tree = tmp_path / "tree"
    write(tree, {PAGE: OLD, "-x": OLD})
    assert repository(tree).committed().blobs == {}
    commit(tmp_path, {f"tree/{PAGE}": OLD, "other.txt": b"x\n"})
    held = repository(tree).committed()
    assert dict(held.blobs) == {PAGE: held.blob_of(OLD)}
    assert (held.read(PAGE), held.read("no")) == (OLD, None)
    assert [held.differs(name) for name in (PAGE, "-x", "no", "snapshots")] == [False, True, False, False]


def test_a_clone_knows_whether_it_is_ahead(bare):
    """A commit that was not pushed counts; where nothing was seen of the remote branch nothing does."""
    tree = clone(bare, "tree")
    own = repository(tree)
    target = own.target()
    assert not own.is_ahead(target)
    refreshed(tree, PAGE)
    assert own.is_ahead(target)
    own.push(target)
    assert not own.is_ahead(target)
    git(tree, "checkout", "-q", "-b", "topic")
    assert not own.is_ahead(own.target())


def test_a_lock_left_by_another_git_is_told(bare):
    """Where git's index is locked the commit fails in git's words, and the branch stays."""
    tree = clone(bare, "tree")
    (tree / ".git" / "index.lock").touch()
    before = head(tree)
    with pytest.raises(GitTrouble, match=r"index\.lock"):
        refreshed(tree, PAGE)
    assert head(tree) == before


def test_no_repository_is_told(tmp_path):
    """A folder outside any repository is refused, as are a file name with a line break and a missing git."""
    with pytest.raises(GitTrouble, match="in no working copy"):
        repository(tmp_path)
    git(tmp_path, "init", "-q")
    with pytest.raises(GitTrouble, match="line break"):
        repository(tmp_path).commit(["a\nb"], "x")
    with pytest.raises(GitTrouble, match="git is not installed"):
        Repository(tmp_path, {"PATH": str(tmp_path)})
    with pytest.raises(GitTrouble, match="cannot be run"):
        Git(tmp_path / ("x" * 300), ALONE).text("status")
    with pytest.raises(GitTrouble, match="did not end within 0 seconds"):
        Git(tmp_path, ALONE).run("cat-file", "--batch", patience=0.0)


# pushing


def test_a_push(bare):
    """A commit goes to the branch that is checked out."""
    tree = clone(bare, "tree")
    new = refreshed(tree, PAGE)
    assert pushed(tree) == ""
    assert head(bare, "main") == new
    assert shown(bare, PAGE) == NEW


def test_a_push_behind_another(bare):
    """Where another clone pushed in between, both changes stand, in one line, and nothing local is lost."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    theirs = commit(other, {"snapshots/b.html": NEW, "third.txt": b"x\n"})
    git(other, "push", "-q")
    write(tree, {"notes.txt": b"staged\n", "other.txt": b"changed\n"})
    git(tree, "add", "notes.txt")
    refreshed(tree, PAGE, META)
    assert pushed(tree) == ""
    assert head(tree) == head(bare, "main")
    assert head(tree, "HEAD^") == theirs
    assert touched(tree) == {PAGE, META}
    assert shown(bare, PAGE) == shown(bare, "snapshots/b.html") == NEW
    assert (tree / "snapshots/b.html").read_bytes() == NEW
    assert status(tree) == {"M  notes.txt", " M other.txt"}
    assert git(tree, "log", "-1", "--format=%an|%s") == "Pravda|Refresh a"


def test_other_commits_of_the_clone_keep_their_author(bare):
    """Commits of a person that were not pushed yet go along, as theirs."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    commit(other, {"third.txt": b"x\n"})
    git(other, "push", "-q")
    commit(tree, {"notes.txt": b"two\n"}, "Notes\n\nwith a body: ä")
    git(tree, "rm", "-q", "other.txt")
    git(tree, "commit", "-q", "-m", "Away")
    dates = git(tree, "log", "-2", "--format=%at|%an|%B")
    refreshed(tree, PAGE)
    assert pushed(tree) == ""
    assert git(bare, "log", "-2", "--skip=1", "--format=%at|%an|%B", "main") == dates
    assert "other.txt" not in git(bare, "ls-tree", "--name-only", "main")
    assert status(tree) == set()


def test_a_conflict_ends_clean(bare):
    """Where others changed the same page nothing is pushed, nothing merged, and the commit stays."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    theirs = commit(other, {PAGE: b"<p>theirs</p>\n"})
    git(other, "push", "-q")
    mine = refreshed(tree, PAGE)
    with pytest.raises(GitTrouble, match=rf"other changes to {PAGE}; the commit stays here"):
        pushed(tree)
    assert (head(tree), head(bare, "main")) == (mine, theirs)
    assert status(tree) == set()
    assert not list((tree / ".git").glob("rebase*"))


def test_many_conflicts_are_cut_short(bare):
    """A message names a few of the files in conflict."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    names = [f"snapshots/{number}.html" for number in range(9)]
    commit(other, dict.fromkeys(names, OLD))
    git(other, "push", "-q")
    refreshed(tree, *names)
    with pytest.raises(GitTrouble, match=r"0\.html, .*4\.html and more;"):
        pushed(tree)


def test_what_others_pushed_already_is_not_pushed_again(bare):
    """The same bytes pushed by another clone leave nothing to push, which is no trouble."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    theirs = commit(other, {PAGE: NEW})
    git(other, "push", "-q")
    refreshed(tree, PAGE)
    assert pushed(tree) == ""
    assert head(tree) == head(bare, "main") == theirs


def test_what_was_taken_back_is_not_pushed_again(bare):
    """A commit that somebody removed from the remote stays removed."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    commit(other, {"secret.txt": b"x\n"})
    git(other, "push", "-q")
    git(tree, "pull", "-q")
    git(other, "reset", "-q", "--hard", "HEAD^")
    commit(other, {"third.txt": b"x\n"})
    git(other, "push", "-q", "--force")
    refreshed(tree, PAGE)
    assert pushed(tree) == ""
    assert "secret.txt" not in git(bare, "ls-tree", "--name-only", "main")
    assert shown(bare, PAGE) == NEW


def test_files_in_the_way_are_left_alone(bare):
    """Where a local change is in the way of what others pushed, the push stands and the change too."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    commit(other, {"notes.txt": b"theirs\n"})
    git(other, "push", "-q")
    write(tree, {"notes.txt": b"mine\n"})
    mine = refreshed(tree, PAGE)
    assert "the local branch stays where it was" in pushed(tree)
    assert shown(bare, PAGE) == NEW
    assert head(tree) == mine
    assert status(tree) == {" M notes.txt"}


def test_a_shallow_clone_pushes(bare):
    """A clone of one commit, as workflows make it, pushes behind others."""
    commit_count = 3
    other = clone(bare, "other")
    for number in range(commit_count):
        commit(other, {"third.txt": b"%d\n" % number})
    git(other, "push", "-q")
    tree = clone(bare, "tree", "--depth=1")
    commit(other, {"fourth.txt": b"x\n"})
    git(other, "push", "-q")
    refreshed(tree, PAGE)
    assert pushed(tree) == ""
    assert shown(bare, PAGE) == NEW
    assert git(bare, "rev-list", "--count", "main") == str(1 + commit_count + 2)


def test_a_detached_clone_needs_a_branch_to_be_named(bare):
    """Where no branch is checked out one must be named, in a form that git knows."""
    tree = clone(bare, "tree")
    git(tree, "checkout", "-q", "--detach")
    new = refreshed(tree, PAGE)
    for branch in (None, "a..b", "x y"):
        with pytest.raises(GitTrouble, match="no branch is checked out"):
            repository(tree).target(branch)
    assert pushed(tree, "main") == ""
    assert head(bare, "main") == new
    assert pushed(tree, "--force") == ""
    assert head(bare, "refs/heads/--force") == new


def test_the_remote_is_found(bare):
    """The branch's own remote counts, else origin, else the only one; none is told."""
    tree = clone(bare, "tree", "-o", "upstream")
    assert repository(tree).target().remote == "upstream"
    git(tree, "checkout", "-q", "-b", "topic")
    assert repository(tree).target().ref == "refs/heads/topic"
    assert repository(tree).target().remote == "upstream"
    git(tree, "remote", "add", "third", str(bare))
    with pytest.raises(GitTrouble, match="has no remote"):
        repository(tree).target()
    git(tree, "config", "branch.topic.remote", "third")
    git(tree, "config", "branch.topic.merge", "refs/heads/main")
    assert repository(tree).target().tracking == "refs/remotes/third/main"
    git(tree, "config", "branch.topic.merge", "refs/tags/v1")
    with pytest.raises(GitTrouble, match="no branch"):
        repository(tree).target()


def test_a_remote_that_refuses_is_asked_four_times(bare):
    """What a remote never takes is tried again three times at most, and never by force."""
    tree, told = clone(bare, "tree"), bare / "asked"
    hook = bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho asked >> '{told}'\nexit 1\n")
    hook.chmod(0o755)
    before, new = head(bare, "main"), refreshed(tree, PAGE)
    with pytest.raises(GitTrouble, match=r"origin did not take the commit, which stays here: .*declined"):
        pushed(tree)
    assert told.read_text().count("asked") == 1 + MOST_REBASES
    assert (head(tree), head(bare, "main")) == (new, before)


def test_a_remote_that_is_gone_is_told(bare):
    """Where nothing answers the commit stays, and git's words are passed on."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    refreshed(tree, PAGE)
    commit(other, {"third.txt": b"x\n"})
    git(other, "push", "-q")
    git(tree, "config", "remote.origin.pushurl", bare.as_uri())
    git(tree, "config", "remote.origin.url", (bare.parent / "nowhere").as_uri())
    with pytest.raises(GitTrouble, match=r"then the fetch: .*nowhere"):
        pushed(tree)
    git(tree, "config", "remote.origin.pushurl", (bare.parent / "nowhere").as_uri())
    with pytest.raises(GitTrouble, match=r"since the push failed: .*nowhere"):
        pushed(tree)


def test_a_merge_cannot_be_copied(bare):
    """A merge that was not pushed is left to the person who made it."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    git(tree, "checkout", "-q", "-b", "topic")
    commit(tree, {"third.txt": b"x\n"})
    git(tree, "checkout", "-q", "main")
    git(tree, "merge", "-q", "--no-ff", "-m", "merge", "topic")
    commit(other, {"fourth.txt": b"x\n"})
    git(other, "push", "-q")
    refreshed(tree, PAGE)
    with pytest.raises(GitTrouble, match="it has 2 parents"):
        pushed(tree)
