"""Which pages a tree holds and how they are refreshed."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pravda.core.mistake import BadRequest
from pravda.core.request import Request
from pravda.tree.layout import DEFAULT_EXTENSION
from pravda.tree.meta import Confirmations

DEFAULT_INTERVAL: Final = 6 * 3600.0
DEFAULT_WARN_DROP: Final = 0.5


class RobotsMode(StrEnum):
    """Whether robots.txt is asked before a page is."""

    OBEY = "obey"
    IGNORE = "ignore"


class OnChallenge(StrEnum):
    """What a challenge in place of robots.txt means."""

    REFUSE = "refuse"
    ASSUME_ALLOWED = "assume-allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One page that is refreshed."""

    id: str
    url: str = field(repr=False)
    """As written in the file."""
    request: Request
    """What is asked; conditional, with the rules of `expect`."""
    interval: float = DEFAULT_INTERVAL
    """Seconds between attempts; 0: every run asks."""
    parser: str | None = None
    """`package.module:function` or `cmd: program args`; None: the rules alone judge."""
    min_items: int = 1
    """Fewer items from the parser reject the page."""
    warn_drop: float = DEFAULT_WARN_DROP
    """Share, 0-1, of the items whose loss is told."""
    extension: str = DEFAULT_EXTENSION
    robots: RobotsMode = RobotsMode.OBEY
    fixtures: str | None = None
    """Pattern of an older layout's fixtures; None: `fixtures/<id>/`."""
    schema: str | None = None
    """`module:Model` or a JSON Schema file that items must fit; None: any will do."""
    sanitize: bool = True
    """Whether the texts of items are cleaned and their URLs checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What is particular about one host."""

    name: str
    gap: float | None = None
    """Seconds between requests; None: that of the tree."""
    assume_allowed: bool = False
    """Whether a challenge in place of robots.txt counts as leave, since somebody has read the rules."""
    note: str | None = None
    """Who read the rules and when; always there when leave is assumed."""
    proxy: str | None = field(default=None, repr=False)
    """URL of the proxy for this host; None: the machine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """A whole sources file."""

    sources: tuple[Source, ...]
    """In the order of the file."""
    hosts: tuple[Host, ...] = ()
    contact: str | None = None
    """Address for the User-Agent, at which a site reaches whoever runs this."""
    user_agent: str | None = None
    """Whole User-Agent; None: the tool's name with the contact."""
    host_gap: float | None = None
    """Seconds between requests to one host; None: the engine's default."""
    confirmations: Confirmations = Confirmations.ALWAYS
    build_out: str | None = None
    """Where the built document goes, from the tree's root; None: nothing is built."""

    def host(self, name: str) -> Host | None:
        """What is said of a host; None: nothing."""
        return next((host for host in self.hosts if host.name == name), None)

    def agent(self, tool: str) -> str:
        """The User-Agent of all requests, given the tool's own name."""
        return self.user_agent or (f"{tool} (+{self.contact})" if self.contact else tool)

    def chosen(self, only: tuple[str, ...] = ()) -> tuple[Source, ...]:
        """The named sources, all where none is named; raises BadRequest for an unknown id."""
        known = {source.id for source in self.sources}
        for wanted in only:
            if wanted not in known:
                raise BadRequest("only", f"{wanted!r:.120} is no source of this tree")
        return tuple(source for source in self.sources if not only or source.id in only)
