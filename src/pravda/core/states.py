"""The closed words of a verdict, and the one table of facts per reason."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class State(StrEnum):
    """What a page was when it was captured."""

    LIVE = "live"
    BLOCKED = "blocked"
    GONE = "gone"
    DOWN = "down"
    PARTIAL = "partial"


class FaultSide(StrEnum):
    """Whose trouble it was: the source's, or ours (this machine, its network, its settings)."""

    SOURCE = "source"
    LOCAL = "local"


class Exit(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    DIFFERENT = 1
    USAGE = 2
    STALE = 3
    NOT_FOUND = 4
    DAMAGED = 5
    BLOCKED = 10
    GONE = 11
    DOWN = 12
    PARTIAL = 13
    LOCAL_FAULT = 14
    ARCHIVE = 20
    INTERRUPTED = 130


class Cause(StrEnum):
    """Coarse, machine-readable: what kind of trouble it was."""

    DNS_FAILURE = "dns_failure"
    CONNECTION_FAILURE = "connection_failure"
    TLS_FAILURE = "tls_failure"
    TIMEOUT = "timeout"
    PROTOCOL_ERROR = "protocol_error"
    REDIRECT_ERROR = "redirect_error"
    HTTP_ERROR = "http_error"
    CHALLENGE = "challenge"
    ROBOTS_DISALLOWED = "robots_disallowed"
    UNSAFE_ADDRESS = "unsafe_address"
    INCOMPLETE_CONTENT = "incomplete_content"
    INVALID_CONTENT = "invalid_content"
    BROWSER_ERROR = "browser_error"
    STORAGE_ERROR = "storage_error"
    LOCAL_ERROR = "local_error"


class Reason(StrEnum):
    """Fine, machine-readable: why a page is not live."""

    DNS_NOT_FOUND = "dns_not_found"
    DNS_NO_ADDRESS = "dns_no_address"
    DNS_SERVER_FAILURE = "dns_server_failure"
    CONNECTION_REFUSED = "connection_refused"
    CONNECTION_RESET = "connection_reset"
    ADDRESS_UNREACHABLE = "address_unreachable"
    EMPTY_RESPONSE = "empty_response"
    TLS_ERROR = "tls_error"
    TLS_CERTIFICATE_EXPIRED = "tls_certificate_expired"
    TLS_CERTIFICATE_HOSTNAME_MISMATCH = "tls_certificate_hostname_mismatch"
    TLS_CERTIFICATE_UNTRUSTED = "tls_certificate_untrusted"
    TLS_CERTIFICATE_REVOKED = "tls_certificate_revoked"
    CLIENT_CERTIFICATE_REQUIRED = "client_certificate_required"
    CONNECT_TIMEOUT = "connect_timeout"
    RESPONSE_TIMEOUT = "response_timeout"
    BODY_TIMEOUT = "body_timeout"
    LOAD_TIMEOUT = "load_timeout"
    MALFORMED_RESPONSE = "malformed_response"
    HEADERS_TOO_LARGE = "headers_too_large"
    UNEXPECTED_NOT_MODIFIED = "unexpected_not_modified"
    UNEXPECTED_STATUS = "unexpected_status"
    REDIRECT_LOOP = "redirect_loop"
    REDIRECT_INVALID = "redirect_invalid"
    REDIRECT_UNSUPPORTED_SCHEME = "redirect_unsupported_scheme"
    REDIRECT_UNRESOLVED = "redirect_unresolved"
    NOT_FOUND = "not_found"
    GONE = "gone"
    ACCESS_DENIED = "access_denied"
    AUTH_REQUIRED = "auth_required"
    PAYMENT_REQUIRED = "payment_required"
    RATE_LIMITED = "rate_limited"
    LEGAL_BLOCK = "legal_block"
    GEO_BLOCK = "geo_block"
    SERVER_ERROR = "server_error"
    BAD_GATEWAY = "bad_gateway"
    SERVICE_UNAVAILABLE = "service_unavailable"
    GATEWAY_TIMEOUT = "gateway_timeout"
    ORIGIN_DNS = "origin_dns"
    ORIGIN_REFUSED = "origin_refused"
    ORIGIN_TIMEOUT = "origin_timeout"
    ORIGIN_UNREACHABLE = "origin_unreachable"
    ORIGIN_TLS = "origin_tls"
    ORIGIN_PROTOCOL = "origin_protocol"
    CLIENT_ERROR = "client_error"
    BOT_CHALLENGE = "bot_challenge"
    LOGIN_WALL = "login_wall"
    CONSENT_WALL = "consent_wall"
    WAITING_ROOM = "waiting_room"
    ROBOTS_DISALLOWED = "robots_disallowed"
    ROBOTS_UNREADABLE = "robots_unreadable"
    UNSAFE_ADDRESS = "unsafe_address"
    UNSAFE_PORT = "unsafe_port"
    TRUNCATED_BODY = "truncated_body"
    TRUNCATED_ENCODING = "truncated_encoding"
    PARTIAL_CONTENT = "partial_content"
    EMPTY_CONTENT = "empty_content"
    BODY_TOO_LARGE = "body_too_large"
    UNDECODABLE = "undecodable"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    WRONG_MEDIA_TYPE = "wrong_media_type"
    WRONG_CHARSET = "wrong_charset"
    TOO_SMALL = "too_small"
    TOO_LARGE = "too_large"
    REDIRECT_UNEXPECTED = "redirect_unexpected"
    SELECTOR_MISSING = "selector_missing"
    JSON_PATH_MISSING = "json_path_missing"
    COUNT_TOO_LOW = "count_too_low"
    COUNT_TOO_HIGH = "count_too_high"
    TEXT_MISSING = "text_missing"
    TEXT_FORBIDDEN = "text_forbidden"
    SIZE_DROP = "size_drop"
    COUNT_DROP = "count_drop"
    PARSER_REJECTED = "parser_rejected"
    ARTIFACT_MISSING = "artifact_missing"
    SOFT_404 = "soft_404"
    JS_REQUIRED = "js_required"
    MAINTENANCE_PAGE = "maintenance_page"
    PARKED_DOMAIN = "parked_domain"
    HOSTING_SUSPENDED = "hosting_suspended"
    CLIENT_REDIRECT_LOOP = "client_redirect_loop"
    BROWSER_CRASHED = "browser_crashed"
    BROWSER_DISCONNECTED = "browser_disconnected"
    BROWSER_UNAVAILABLE = "browser_unavailable"
    STEP_FAILED = "step_failed"
    DISK_FULL = "disk_full"
    STORAGE_UNAVAILABLE = "storage_unavailable"
    STORAGE_DENIED = "storage_denied"
    LOCAL_NETWORK = "local_network"
    LOCAL_PROXY = "local_proxy"
    LOCAL_PROXY_AUTH = "local_proxy_auth"
    CAPTIVE_PORTAL = "captive_portal"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What follows from a reason, read by every surface."""

    cause: Cause
    state: State
    sentence: str
    """What happened and what it means, for people."""
    state_after_headers: State | None = None
    """The state once response headers were complete; None: the same one."""
    fault: FaultSide = FaultSide.SOURCE
    retry: bool = False
    """One more try on a fresh connection is worth it."""
    escalate: bool = False
    """A browser may see what the HTTP engine did not."""
    api_status: int = 502

    def state_when(self, *, headers: bool) -> State:
        """The state, given whether the response headers were complete; without them nothing is partial."""
        if headers:
            return self.state_after_headers or self.state
        return State.DOWN if self.state is State.PARTIAL else self.state

    @property
    def exit_code(self) -> Exit:
        """What `pravda capture` exits with."""
        return Exit.LOCAL_FAULT if self.fault is FaultSide.LOCAL else EXIT_OF_STATE[self.state]


EXIT_OF_STATE = {
    State.LIVE: Exit.OK,
    State.BLOCKED: Exit.BLOCKED,
    State.GONE: Exit.GONE,
    State.DOWN: Exit.DOWN,
    State.PARTIAL: Exit.PARTIAL,
}

_B, _G, _D, _P = State.BLOCKED, State.GONE, State.DOWN, State.PARTIAL
_LOCAL = FaultSide.LOCAL
_R, _C = Reason, Cause


def _row(
    cause: Cause,
    state: State,
    sentence: str,
    *,
    after: State | None = None,
    fault: FaultSide = FaultSide.SOURCE,
    retry: bool = False,
    escalate: bool = False,
    api_status: int = 502,
) -> Facts:
    return Facts(
        cause=cause,
        state=state,
        sentence=sentence,
        state_after_headers=after,
        fault=fault,
        retry=retry,
        escalate=escalate,
        api_status=api_status,
    )


FACTS: dict[Reason, Facts] = {
    _R.DNS_NOT_FOUND: _row(_C.DNS_FAILURE, _D, "The host name does not exist."),
    _R.DNS_NO_ADDRESS: _row(_C.DNS_FAILURE, _D, "The host name exists but has no address."),
    _R.DNS_SERVER_FAILURE: _row(_C.DNS_FAILURE, _D, "The name servers did not give a usable answer."),
    _R.CONNECTION_REFUSED: _row(_C.CONNECTION_FAILURE, _D, "The server refused the connection."),
    _R.CONNECTION_RESET: _row(
        _C.CONNECTION_FAILURE, _D, "The connection was cut before an answer came.", retry=True
    ),
    _R.ADDRESS_UNREACHABLE: _row(_C.CONNECTION_FAILURE, _D, "No route leads to the server's address."),
    _R.EMPTY_RESPONSE: _row(
        _C.CONNECTION_FAILURE, _D, "The server closed the connection without an answer.", retry=True
    ),
    _R.TLS_ERROR: _row(_C.TLS_FAILURE, _D, "A secure connection could not be agreed on."),
    _R.TLS_CERTIFICATE_EXPIRED: _row(
        _C.TLS_FAILURE, _D, "The server's certificate is not valid at this time."
    ),
    _R.TLS_CERTIFICATE_HOSTNAME_MISMATCH: _row(
        _C.TLS_FAILURE, _D, "The server's certificate is for another name."
    ),
    _R.TLS_CERTIFICATE_UNTRUSTED: _row(
        _C.TLS_FAILURE, _D, "The server's certificate comes from an issuer that is not trusted here."
    ),
    _R.TLS_CERTIFICATE_REVOKED: _row(_C.TLS_FAILURE, _D, "The server's certificate was revoked."),
    _R.CLIENT_CERTIFICATE_REQUIRED: _row(_C.TLS_FAILURE, _B, "The server asks for a client certificate."),
    _R.CONNECT_TIMEOUT: _row(_C.TIMEOUT, _D, "No connection could be made within the time allowed."),
    _R.RESPONSE_TIMEOUT: _row(
        _C.TIMEOUT,
        _D,
        "The server was reached, but sent no complete response headers within the time allowed.",
    ),
    _R.BODY_TIMEOUT: _row(
        _C.TIMEOUT, _P, "The page began to arrive, but was not complete within the time allowed."
    ),
    _R.LOAD_TIMEOUT: _row(_C.TIMEOUT, _P, "The page did not finish loading within the time allowed."),
    _R.MALFORMED_RESPONSE: _row(_C.PROTOCOL_ERROR, _D, "The server's answer is not valid HTTP."),
    _R.HEADERS_TOO_LARGE: _row(
        _C.PROTOCOL_ERROR, _D, "The response headers are larger than any browser accepts."
    ),
    _R.UNEXPECTED_NOT_MODIFIED: _row(
        _C.PROTOCOL_ERROR,
        _P,
        'The server answered "not modified", although it was asked for the page itself.',
    ),
    _R.UNEXPECTED_STATUS: _row(_C.PROTOCOL_ERROR, _P, "The status code is not one that HTTP defines."),
    _R.REDIRECT_LOOP: _row(_C.REDIRECT_ERROR, _D, "The redirects go round in a circle, or do not end."),
    _R.REDIRECT_INVALID: _row(_C.REDIRECT_ERROR, _D, "The server redirects to something that is not a URL."),
    _R.REDIRECT_UNSUPPORTED_SCHEME: _row(
        _C.REDIRECT_ERROR, _D, "The server redirects to something that is not http or https."
    ),
    _R.REDIRECT_UNRESOLVED: _row(_C.REDIRECT_ERROR, _P, "The server redirects without saying where to."),
    _R.NOT_FOUND: _row(_C.HTTP_ERROR, _G, "The server says there is no such page."),
    _R.GONE: _row(_C.HTTP_ERROR, _G, "The server says the page was removed for good."),
    _R.ACCESS_DENIED: _row(_C.HTTP_ERROR, _B, "The server refuses to show the page to us.", escalate=True),
    _R.AUTH_REQUIRED: _row(_C.HTTP_ERROR, _B, "The page asks for a login."),
    _R.PAYMENT_REQUIRED: _row(_C.HTTP_ERROR, _B, "The page asks for payment."),
    _R.RATE_LIMITED: _row(_C.HTTP_ERROR, _B, "The server says we ask too often."),
    _R.LEGAL_BLOCK: _row(_C.HTTP_ERROR, _B, "The page is withheld for legal reasons."),
    _R.GEO_BLOCK: _row(_C.HTTP_ERROR, _B, "The page is not shown in the country we ask from."),
    _R.SERVER_ERROR: _row(_C.HTTP_ERROR, _D, "The server reports an error of its own."),
    _R.BAD_GATEWAY: _row(_C.HTTP_ERROR, _D, "The server got no valid answer from the one behind it."),
    _R.SERVICE_UNAVAILABLE: _row(_C.HTTP_ERROR, _D, "The server is overloaded or under maintenance."),
    _R.GATEWAY_TIMEOUT: _row(_C.HTTP_ERROR, _D, "The server behind the gateway did not answer in time."),
    _R.ORIGIN_DNS: _row(_C.HTTP_ERROR, _D, "The site's proxy cannot resolve the origin server."),
    _R.ORIGIN_REFUSED: _row(_C.HTTP_ERROR, _D, "The origin server refused the site's proxy."),
    _R.ORIGIN_TIMEOUT: _row(_C.HTTP_ERROR, _D, "The origin server did not answer the site's proxy in time."),
    _R.ORIGIN_UNREACHABLE: _row(_C.HTTP_ERROR, _D, "The site's proxy cannot reach the origin server."),
    _R.ORIGIN_TLS: _row(
        _C.HTTP_ERROR, _D, "The site's proxy and the origin server could not agree on a secure connection."
    ),
    _R.ORIGIN_PROTOCOL: _row(
        _C.HTTP_ERROR, _D, "The origin server gave the site's proxy an unusable answer."
    ),
    _R.CLIENT_ERROR: _row(_C.HTTP_ERROR, _P, "The server rejects this request."),
    _R.BOT_CHALLENGE: _row(_C.CHALLENGE, _B, "A bot check stands before the page.", escalate=True),
    _R.LOGIN_WALL: _row(_C.CHALLENGE, _B, "A login form stands before the page."),
    _R.CONSENT_WALL: _row(_C.CHALLENGE, _B, "A consent form stands before the page.", escalate=True),
    _R.WAITING_ROOM: _row(_C.CHALLENGE, _B, "A waiting room stands before the page."),
    _R.ROBOTS_DISALLOWED: _row(_C.ROBOTS_DISALLOWED, _B, "The site's robots.txt does not allow this page."),
    _R.ROBOTS_UNREADABLE: _row(
        _C.ROBOTS_DISALLOWED, _B, "The site's robots.txt cannot be read, so nothing there is asked for."
    ),
    _R.UNSAFE_ADDRESS: _row(
        _C.UNSAFE_ADDRESS,
        _B,
        "The page led to an address inside a private network, which is refused.",
        fault=_LOCAL,
    ),
    _R.UNSAFE_PORT: _row(
        _C.UNSAFE_ADDRESS,
        _B,
        "The page led to a port that is not meant for web pages, which is refused.",
        fault=_LOCAL,
    ),
    _R.TRUNCATED_BODY: _row(
        _C.INCOMPLETE_CONTENT, _P, "The connection ended before the whole page had arrived."
    ),
    _R.TRUNCATED_ENCODING: _row(_C.INCOMPLETE_CONTENT, _P, "The compressed page breaks off in the middle."),
    _R.PARTIAL_CONTENT: _row(_C.INCOMPLETE_CONTENT, _P, "The server sent only a part of the page."),
    _R.EMPTY_CONTENT: _row(_C.INCOMPLETE_CONTENT, _P, "The server answered without content."),
    _R.BODY_TOO_LARGE: _row(
        _C.INCOMPLETE_CONTENT, _P, "The page is larger than allowed; its beginning was kept."
    ),
    _R.UNDECODABLE: _row(_C.INVALID_CONTENT, _P, "The content cannot be decoded."),
    _R.UNSUPPORTED_ENCODING: _row(
        _C.INVALID_CONTENT, _P, "The content is compressed in a way that is not supported."
    ),
    _R.WRONG_MEDIA_TYPE: _row(_C.INVALID_CONTENT, _P, "The content is not of the type that was demanded."),
    _R.WRONG_CHARSET: _row(
        _C.INVALID_CONTENT, _P, "The content is not in the character encoding that was demanded."
    ),
    _R.TOO_SMALL: _row(_C.INVALID_CONTENT, _P, "The content is smaller than demanded."),
    _R.TOO_LARGE: _row(_C.INVALID_CONTENT, _P, "The content is larger than demanded."),
    _R.REDIRECT_UNEXPECTED: _row(
        _C.INVALID_CONTENT, _P, "The page came from a URL other than the one demanded."
    ),
    _R.SELECTOR_MISSING: _row(
        _C.INVALID_CONTENT, _P, "An element that the page must have is not there.", escalate=True
    ),
    _R.JSON_PATH_MISSING: _row(_C.INVALID_CONTENT, _P, "A value that the document must have is not there."),
    _R.COUNT_TOO_LOW: _row(_C.INVALID_CONTENT, _P, "There are fewer matches than demanded.", escalate=True),
    _R.COUNT_TOO_HIGH: _row(_C.INVALID_CONTENT, _P, "There are more matches than demanded."),
    _R.TEXT_MISSING: _row(
        _C.INVALID_CONTENT, _P, "Text that the page must show is not there.", escalate=True
    ),
    _R.TEXT_FORBIDDEN: _row(_C.INVALID_CONTENT, _P, "The page shows text that it must not show."),
    _R.SIZE_DROP: _row(_C.INVALID_CONTENT, _P, "The page is much smaller than the last usable one."),
    _R.COUNT_DROP: _row(_C.INVALID_CONTENT, _P, "The page has far fewer matches than the last usable one."),
    _R.PARSER_REJECTED: _row(_C.INVALID_CONTENT, _P, "The parser rejected the page."),
    _R.ARTIFACT_MISSING: _row(_C.INVALID_CONTENT, _P, "A part that had to be kept could not be obtained."),
    _R.SOFT_404: _row(
        _C.INVALID_CONTENT, _P, "The page says that it does not exist, although its status says success."
    ),
    _R.JS_REQUIRED: _row(
        _C.INVALID_CONTENT, _P, "The page is an empty shell that only a browser fills.", escalate=True
    ),
    _R.MAINTENANCE_PAGE: _row(
        _C.INVALID_CONTENT, _P, "The page only says that the site is under maintenance."
    ),
    _R.PARKED_DOMAIN: _row(_C.INVALID_CONTENT, _P, "The domain is parked or for sale."),
    _R.HOSTING_SUSPENDED: _row(_C.INVALID_CONTENT, _P, "The site's hosting account is suspended."),
    _R.CLIENT_REDIRECT_LOOP: _row(_C.INVALID_CONTENT, _P, "The page keeps sending the browser on."),
    _R.BROWSER_CRASHED: _row(
        _C.BROWSER_ERROR, _D, "The browser crashed.", after=_P, fault=_LOCAL, retry=True
    ),
    _R.BROWSER_DISCONNECTED: _row(
        _C.BROWSER_ERROR, _D, "The connection to the browser was lost.", after=_P, fault=_LOCAL
    ),
    _R.BROWSER_UNAVAILABLE: _row(
        _C.BROWSER_ERROR, _D, "No browser could be started.", after=_P, fault=_LOCAL
    ),
    _R.STEP_FAILED: _row(_C.BROWSER_ERROR, _P, "One of the given steps could not be carried out."),
    _R.DISK_FULL: _row(
        _C.STORAGE_ERROR,
        _P,
        "The disk is full: free space or raise the limit; earlier evidence is safe.",
        fault=_LOCAL,
    ),
    _R.STORAGE_UNAVAILABLE: _row(
        _C.STORAGE_ERROR, _P, "The evidence could not be written to the archive.", fault=_LOCAL
    ),
    _R.STORAGE_DENIED: _row(
        _C.STORAGE_ERROR, _P, "This user may not write to the archive's folder.", fault=_LOCAL
    ),
    _R.LOCAL_NETWORK: _row(_C.LOCAL_ERROR, _D, "This machine has no network.", after=_P, fault=_LOCAL),
    _R.LOCAL_PROXY: _row(_C.LOCAL_ERROR, _D, "The configured proxy does not work.", after=_P, fault=_LOCAL),
    _R.LOCAL_PROXY_AUTH: _row(
        _C.LOCAL_ERROR, _D, "The configured proxy does not accept its credentials.", after=_P, fault=_LOCAL
    ),
    _R.CAPTIVE_PORTAL: _row(
        _C.LOCAL_ERROR, _D, "This machine's network asks for a login of its own.", fault=_LOCAL
    ),
    _R.RESOURCE_EXHAUSTED: _row(
        _C.LOCAL_ERROR, _D, "This machine ran out of memory, buffers or open files.", after=_P, fault=_LOCAL
    ),
    _R.CANCELLED: _row(_C.LOCAL_ERROR, _D, "The capture was cancelled here.", after=_P, fault=_LOCAL),
}
