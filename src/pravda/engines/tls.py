"""Facts of secure connections, as libcurl tells them once at each handshake."""

import re
from collections import OrderedDict
from dataclasses import dataclass

import pycurl

_HANDSHAKE = re.compile(rb"SSL connection using ([^ ]+) / ([^ ]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """What a handshake agreed on."""

    version: str
    """As OpenSSL names it, "TLSv1.3"."""
    cipher: str
    certificates: bytes
    """The server's chain, PEM."""


def handshake(text: bytes) -> tuple[str, str] | None:
    """Version and cipher in a line of libcurl's own report; None: it is about something else."""
    found = _HANDSHAKE.match(text)
    return (found[1].decode("ascii", "replace"), found[2].decode("ascii", "replace")) if found else None


def asks_for_certificate(text: bytes) -> bool:
    """Whether a line of libcurl's own report tells of a server that wants a client certificate."""
    return b"(IN), TLS handshake, Request CERT" in text


def secured(handle: pycurl.Curl, agreed: tuple[str, str]) -> Secured:
    """What the handle knows of the connection on which it has just agreed."""
    chain = handle.getinfo(pycurl.INFO_CERTINFO) or ()
    certificates = [value.strip() for facts in chain for name, value in facts if name == "Cert"]
    return Secured(
        version=agreed[0],
        cipher=agreed[1],
        certificates="\n".join(certificates).encode("ascii", "replace"),
    )


class Handshakes:
    """Remembers the facts of open connections, for the exchanges that reuse them."""

    def __init__(self, most: int) -> None:
        """`most` is how many connections are remembered."""
        self._most = most
        self._known: OrderedDict[int, Secured] = OrderedDict()

    def remember(self, connection: int, facts: Secured) -> None:
        """Keep a connection's facts under libcurl's number for it."""
        self._known[connection] = facts
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def of(self, connection: int) -> Secured | None:
        """The facts of a connection; None: it is not secure, or not remembered."""
        if connection in self._known:
            self._known.move_to_end(connection)
        return self._known.get(connection)
