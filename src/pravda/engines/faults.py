"""What libcurl's and the system's error numbers say, in the words of the law."""

import errno
import re
import socket
from dataclasses import dataclass

import pycurl

from pravda.core.evidence import Phase, Trouble
from pravda.core.states import FACTS, Reason

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_UNREACHABLE = frozenset(
    {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.ENETDOWN, errno.EHOSTDOWN}
)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})

_CUT = frozenset({pycurl.E_SSL_CONNECT_ERROR, pycurl.E_SEND_ERROR, pycurl.E_RECV_ERROR, pycurl.E_GOT_NOTHING})
# OpenSSL's X509_V_ERR_* numbers; 0: libcurl's own look at the host name
_EXPIRED, _REVOKED, _HOST = frozenset({9, 10}), frozenset({23}), frozenset({0, 62, 64})

CODES: dict[int, tuple[Reason, Phase]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: (Reason.MALFORMED_RESPONSE, Phase.RESPONSE),
    pycurl.E_FAILED_INIT: (Reason.RESOURCE_EXHAUSTED, Phase.CONNECT),
    pycurl.E_URL_MALFORMAT: (Reason.DNS_NOT_FOUND, Phase.RESOLVE),
    pycurl.E_COULDNT_RESOLVE_PROXY: (Reason.LOCAL_PROXY, Phase.CONNECT),
    pycurl.E_COULDNT_RESOLVE_HOST: (Reason.DNS_SERVER_FAILURE, Phase.RESOLVE),
    pycurl.E_COULDNT_CONNECT: (Reason.ADDRESS_UNREACHABLE, Phase.CONNECT),
    pycurl.E_FTP_WEIRD_SERVER_REPLY: (Reason.MALFORMED_RESPONSE, Phase.RESPONSE),
    pycurl.E_HTTP2: (Reason.MALFORMED_RESPONSE, Phase.RESPONSE),
    pycurl.E_PARTIAL_FILE: (Reason.EMPTY_RESPONSE, Phase.BODY),
    pycurl.E_WRITE_ERROR: (
        Reason.RESOURCE_EXHAUSTED,
        Phase.BODY,
    ),  # a callback of ours failed, not on purpose
    pycurl.E_OUT_OF_MEMORY: (Reason.RESOURCE_EXHAUSTED, Phase.CONNECT),
    pycurl.E_OPERATION_TIMEDOUT: (Reason.CONNECT_TIMEOUT, Phase.CONNECT),
    pycurl.E_SSL_CONNECT_ERROR: (Reason.TLS_ERROR, Phase.TLS),
    pycurl.E_ABORTED_BY_CALLBACK: (Reason.RESOURCE_EXHAUSTED, Phase.CONNECT),
    pycurl.E_GOT_NOTHING: (Reason.EMPTY_RESPONSE, Phase.RESPONSE),
    pycurl.E_SEND_ERROR: (Reason.CONNECTION_RESET, Phase.RESPONSE),
    pycurl.E_RECV_ERROR: (Reason.CONNECTION_RESET, Phase.RESPONSE),
    pycurl.E_SSL_CERTPROBLEM: (Reason.TLS_ERROR, Phase.TLS),
    pycurl.E_SSL_CIPHER: (Reason.TLS_ERROR, Phase.TLS),
    pycurl.E_PEER_FAILED_VERIFICATION: (Reason.TLS_CERTIFICATE_UNTRUSTED, Phase.TLS),
    pycurl.E_BAD_CONTENT_ENCODING: (Reason.MALFORMED_RESPONSE, Phase.BODY),
    pycurl.E_SEND_FAIL_REWIND: (Reason.CONNECTION_RESET, Phase.RESPONSE),
    pycurl.E_SSL_CACERT_BADFILE: (
        Reason.RESOURCE_EXHAUSTED,
        Phase.TLS,
    ),  # our own bundle is gone: never the source's
    pycurl.E_SSL_ISSUER_ERROR: (Reason.TLS_CERTIFICATE_UNTRUSTED, Phase.TLS),
    pycurl.E_SSL_INVALIDCERTSTATUS: (Reason.TLS_CERTIFICATE_REVOKED, Phase.TLS),
    92: (Reason.MALFORMED_RESPONSE, Phase.RESPONSE),  # CURLE_HTTP2_STREAM
    95: (Reason.MALFORMED_RESPONSE, Phase.RESPONSE),  # CURLE_HTTP3
    96: (Reason.CONNECTION_RESET, Phase.CONNECT),  # CURLE_QUIC_CONNECT_ERROR
    97: (Reason.LOCAL_PROXY, Phase.CONNECT),  # CURLE_PROXY
    98: (Reason.CLIENT_CERTIFICATE_REQUIRED, Phase.TLS),  # CURLE_SSL_CLIENTCERT
    99: (Reason.RESOURCE_EXHAUSTED, Phase.CONNECT),  # CURLE_UNRECOVERABLE_POLL
    100: (Reason.HEADERS_TOO_LARGE, Phase.RESPONSE),  # CURLE_TOO_LARGE
}
"""CURLcode → the reason before complete headers, and the phase it belongs to."""

# libcurl has one number for each of these pairs; only its words tell them apart (fixtures in tests/test_faults.py)
_WORDS: tuple[tuple[re.Pattern[str], Reason, Phase], ...] = (
    (re.compile(r"alert certificate required|certificate required", re.I), Reason.CLIENT_CERTIFICATE_REQUIRED, Phase.TLS),
    (re.compile(r"certificate subject name"), Reason.TLS_CERTIFICATE_HOSTNAME_MISMATCH, Phase.TLS),
    (re.compile(r"CONNECT tunnel failed, response 407", re.I), Reason.LOCAL_PROXY_AUTH, Phase.CONNECT),
    (re.compile(r"CONNECT tunnel failed|proxy CONNECT aborted", re.I), Reason.LOCAL_PROXY, Phase.CONNECT),
    (re.compile(r"too large response headers|response headers too large", re.I), Reason.HEADERS_TOO_LARGE, Phase.RESPONSE),
    (re.compile(r"HTTP/0\.9|Weird server reply|Unsupported HTTP|Invalid status|chunk|Header without colon|nul byte in header", re.I),
     Reason.MALFORMED_RESPONSE, Phase.RESPONSE),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """What libcurl left behind when a transfer failed."""

    code: int
    message: str
    os_errno: int
    verify_result: int
    through_proxy: bool
    connected: bool
    """Whether a connection (with TLS, where asked) stood before it broke."""
    certificate_asked: bool = False
    """Whether the server asked for a client certificate and has answered nothing since."""


def trouble_of(broken: Broken) -> Trouble:
    """The trouble of a failed transfer, before anybody asked the resolver again."""
    reason, phase = _reason(broken)
    number = broken.os_errno or None
    name = f" ({errno.errorcode[number]})" if number and number in errno.errorcode else ""
    detail = (broken.message.strip() or FACTS[reason].sentence)[:500]
    return Trouble(
        reason=reason,
        phase=phase,
        detail=f"{detail}{name}",
        raw=f"curl {broken.code}: {broken.message}"[:2000],
        errno=number,
    )


def _reason(broken: Broken) -> tuple[Reason, Phase]:
    number = broken.os_errno
    if number in _EXHAUSTED:  # errno before everything: out of descriptors surfaces as a DNS error
        return Reason.RESOURCE_EXHAUSTED, Phase.CONNECT
    for words, reason, phase in _WORDS:
        if words.search(broken.message):
            return reason, phase
    if broken.certificate_asked and broken.code in _CUT:
        # TLS 1.2 has no alert of its own for this; that of TLS 1.3 is lost when the server resets at once
        return Reason.CLIENT_CERTIFICATE_REQUIRED, Phase.TLS
    if broken.code == pycurl.E_PEER_FAILED_VERIFICATION:
        return _certificate(broken.verify_result), Phase.TLS
    reason, phase = CODES.get(broken.code, (Reason.MALFORMED_RESPONSE, Phase.RESPONSE))
    if broken.through_proxy and not broken.connected and broken.code == pycurl.E_COULDNT_CONNECT:
        return Reason.LOCAL_PROXY, Phase.CONNECT
    if broken.code in (
        pycurl.E_COULDNT_CONNECT,
        pycurl.E_RECV_ERROR,
        pycurl.E_SEND_ERROR,
        pycurl.E_SSL_CONNECT_ERROR,
    ):
        return _of_errno(number, reason), phase
    return reason, phase


def _of_errno(number: int, otherwise: Reason) -> Reason:
    if number == errno.ECONNREFUSED:
        return Reason.CONNECTION_REFUSED
    if number in (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED):
        return Reason.CONNECTION_RESET
    if number == errno.ETIMEDOUT:
        return Reason.CONNECT_TIMEOUT
    return Reason.ADDRESS_UNREACHABLE if number in _UNREACHABLE else otherwise


def _certificate(result: int) -> Reason:
    if result in _EXPIRED:
        return Reason.TLS_CERTIFICATE_EXPIRED
    if result in _REVOKED:
        return Reason.TLS_CERTIFICATE_REVOKED
    return Reason.TLS_CERTIFICATE_HOSTNAME_MISMATCH if result in _HOST else Reason.TLS_CERTIFICATE_UNTRUSTED


def storage_trouble(problem: OSError) -> Trouble:
    """The trouble of bytes that could not be written aside on this machine."""
    number = problem.errno
    if number in _EXHAUSTED:
        reason = Reason.RESOURCE_EXHAUSTED
    elif number in _FULL:
        reason = Reason.DISK_FULL
    else:
        reason = Reason.STORAGE_DENIED if number in _DENIED else Reason.STORAGE_UNAVAILABLE
    return Trouble(
        reason=reason,
        phase=Phase.STORE,
        detail=f"The body could not be written aside: {problem.strerror or problem}.",
        raw=repr(problem)[:500],
        errno=number,
    )


def resolver_trouble(host: str, error: OSError | None, *, routed: bool) -> Trouble:
    """Why a name has no address: from the resolver's own error, or None when a second look found one."""
    number = error.errno if error else None
    if number in _EXHAUSTED:
        reason = Reason.RESOURCE_EXHAUSTED
    elif host.rsplit(".", 1)[-1].lower() in ("invalid", "onion"):
        reason = Reason.DNS_NOT_FOUND  # RFC 6761 §6.4, RFC 7686 §2: these names never exist in the DNS
    elif error is None or not isinstance(error, socket.gaierror):
        reason = Reason.DNS_SERVER_FAILURE
    elif number == socket.EAI_NONAME:
        reason = Reason.DNS_NOT_FOUND
    elif number in (getattr(socket, "EAI_NODATA", None), getattr(socket, "EAI_ADDRFAMILY", None)):
        reason = Reason.DNS_NO_ADDRESS
    elif number == socket.EAI_AGAIN and not routed:
        reason = Reason.LOCAL_NETWORK
    else:
        reason = Reason.DNS_SERVER_FAILURE
    words = (error.strerror or str(error)) if error else "failed once, then found an address"
    return Trouble(
        reason=reason,
        phase=Phase.RESOLVE,
        detail=f"{host}: {words}.",
        raw=repr(error)[:500] if error else "",
        errno=None,
    )
