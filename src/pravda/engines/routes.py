"""Engines around engines that differ by where, or how politely, a request is made."""

from collections.abc import Mapping

from pravda.core.ports import Engine, Observed, Order
from pravda.engines.polite import PoliteEngine


class Routes:
    """Hands each order to the engine of its URL's host, redirects included."""

    name = "http"

    def __init__(self, usual: Engine, of_hosts: Mapping[str, Engine]) -> None:
        """`of_hosts` is by host name as it stands in URLs."""
        self._usual, self._of_hosts = usual, of_hosts

    async def observe(self, order: Order) -> Observed:
        """One attempt by the host's engine."""
        return await self._of_hosts.get(order.request.url.hostname, self._usual).observe(order)

    async def close(self) -> None:
        """Close all engines."""
        for engine in {id(engine): engine for engine in (self._usual, *self._of_hosts.values())}.values():
            await engine.close()


class WithoutRobots:
    """Keeps the pauses of a polite engine, and does not ask robots.txt."""

    def __init__(self, polite: PoliteEngine) -> None:
        self.name = polite.name
        self._polite = polite

    async def observe(self, order: Order) -> Observed:
        """One attempt."""
        return await self._polite.observe(order, robots=False)

    async def close(self) -> None:
        """Close the polite engine."""
        await self._polite.close()
