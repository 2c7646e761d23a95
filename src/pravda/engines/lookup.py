"""Asking the resolver and the routing table why a host could not be reached."""

import asyncio
import os
import socket
import threading
from contextlib import suppress

from pravda.core.evidence import Phase, Trouble
from pravda.core.states import Reason
from pravda.engines.faults import resolver_trouble

_FOR_A_LOOKUP = 4  # descriptors that asking takes: lists of hosts and servers, sockets


async def ask_resolver(host: str, patience: float) -> Trouble:
    """Why a name has no address; libcurl has one number for every trouble of a resolver."""
    if shortage := _shortage():  # a resolver without descriptors says that there is no such name
        return resolver_trouble(host, shortage, routed=True)
    try:
        async with asyncio.timeout(patience):
            problem = await _look_up(host)
    except TimeoutError:
        return resolver_silence(host)
    return resolver_trouble(host, problem, routed=problem is None or has_default_route())


def resolver_silence(host: str) -> Trouble:
    """The trouble of name servers that do not answer."""
    reason = Reason.DNS_SERVER_FAILURE if has_default_route() else Reason.LOCAL_NETWORK
    return Trouble(
        reason=reason, phase=Phase.RESOLVE, detail=f"{host}: the name servers did not answer in time."
    )


async def _look_up(host: str) -> OSError | None:
    """The resolver's error; None: this time it found an address."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[OSError | None] = loop.create_future()

    def settle(problem: OSError | None) -> None:
        if not future.done():
            future.set_result(problem)

    def ask() -> None:
        problem: OSError | None = None
        try:
            # bytes: text would go through the idna codec, which raises UnicodeError for names such as "a..b"
            socket.getaddrinfo(host.encode("ascii", "replace"), None, type=socket.SOCK_STREAM)
        except OSError as caught:
            problem = caught
        with suppress(RuntimeError):  # the loop was closed while name servers were silent
            loop.call_soon_threadsafe(settle, problem)

    # a thread of its own: the loop's executor would be waited for at the end, however silent the name servers
    threading.Thread(target=ask, name="pravda-lookup", daemon=True).start()
    return await future


def _shortage() -> OSError | None:
    """What the system says when it has no descriptors left for a look-up; None: it has."""
    taken: list[int] = []
    try:
        while len(taken) < _FOR_A_LOOKUP:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as problem:
        return problem
    finally:
        for descriptor in taken:
            os.close(descriptor)
    return None


def has_default_route() -> bool:
    """Whether this machine has a way to anywhere; asks the kernel for a route, sends nothing."""
    for family, address in ((socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((address, 9))
                return True
        except OSError:
            continue
    return False
