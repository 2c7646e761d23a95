"""How a tree stands, read without asking anybody: freshness, streaks, damage, retired ids."""

from dataclasses import dataclass
from datetime import datetime

from pravda.tree.files import Tree
from pravda.tree.meta import Meta
from pravda.tree.sources import Sources
from pravda.tree.state import Due, SourceState, due


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one source stands."""

    source_id: str
    url: str
    """As the sources file names it."""
    record: SourceState
    turn: Due
    meta: Meta | None
    """None: nothing is stored, or its metadata is damaged."""
    intact: bool
    """Whether the stored bytes are those that the metadata speaks of; False where there are none."""
    damage: tuple[str, ...]
    """What is wrong with the files, a sentence each; a page that was never stored is no damage."""

    @property
    def fresh_at(self) -> datetime | None:
        """When the page was last known to be current; None: there is none that can be read."""
        return self.meta.fresh_at if self.meta and self.intact else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """How all sources stand."""

    sources: tuple[Standing, ...]
    """In the order of the sources file."""
    retired: tuple[str, ...]
    """Ids in the tree that no source names."""

    @property
    def damaged(self) -> tuple[str, ...]:
        """The ids whose files are not as they should be."""
        return tuple(standing.source_id for standing in self.sources if standing.damage)


def survey(tree: Tree, sources: Sources, now: datetime) -> Survey:
    """Look at every source's files."""
    standings: list[Standing] = []
    for source in sources.sources:
        record, damage = tree.state(source.id)
        page = tree.page(source.id, source.extension)
        standings.append(
            Standing(
                source_id=source.id,
                url=source.url,
                record=record,
                turn=due(record, source.interval, now),
                meta=page.meta,
                intact=page.intact,
                damage=damage + page.damage,
            )
        )
    return Survey(sources=tuple(standings), retired=tree.retired([source.id for source in sources.sources]))
