"""What is remembered of hosts between two runs over one tree."""

from pravda.core.evidence import Note
from pravda.core.hosts import HostFacts, from_json, to_json
from pravda.core.ports import Clock
from pravda.tree.files import Tree

SAVE_EVERY = 30.0
"""Seconds; a killed run forgets no more than that."""


class TreeBook:
    """A book of hosts in a tree's own file; loaded and saved under the tree's lock."""

    def __init__(self, tree: Tree, clock: Clock) -> None:
        self._tree, self._clock = tree, clock
        self._hosts: dict[str, HostFacts] = {}
        self._changed, self._saved_at = False, 0.0

    def get(self, host: str) -> HostFacts | None:
        """What is known; None: nothing."""
        return self._hosts.get(host)

    def put(self, host: str, facts: HostFacts) -> None:
        """Remember instead of what was known."""
        self._hosts[host] = facts
        self._changed = True

    def load(self) -> tuple[Note, ...]:
        """Read the file; what cannot be read is left out and told."""
        data = self._tree.hosts()
        self._saved_at = self._clock.monotonic()
        if data is None:
            return ()
        loaded = from_json(data, self._clock.now())
        self._hosts = dict(loaded.hosts)
        return loaded.warnings

    def due(self) -> bool:
        """Whether it is time to write down what has changed."""
        return self._changed and self._clock.monotonic() - self._saved_at >= SAVE_EVERY

    def save(self) -> None:
        """Write the file if anything has changed; raises OSError."""
        if not self._changed:
            return
        self._changed, self._saved_at = False, self._clock.monotonic()
        self._tree.put_hosts(to_json(self._hosts, self._clock.now()))
