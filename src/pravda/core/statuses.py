"""What a status code says by itself: the status table as data."""

from http import HTTPStatus

from pravda.core.states import Reason

_TABLE: dict[int, Reason] = {
    **dict.fromkeys((204, 205), Reason.EMPTY_CONTENT),
    **dict.fromkeys((401, 407, 419, 440, 498, 561), Reason.AUTH_REQUIRED),
    402: Reason.PAYMENT_REQUIRED,
    **dict.fromkeys((403, 406, 418, 423, 444, 450, 493, 999), Reason.ACCESS_DENIED),
    404: Reason.NOT_FOUND,
    410: Reason.GONE,
    **dict.fromkeys((408, 598, 599), Reason.RESPONSE_TIMEOUT),
    **dict.fromkeys((421, 425), Reason.SERVER_ERROR),
    **dict.fromkeys((429, 430), Reason.RATE_LIMITED),
    451: Reason.LEGAL_BLOCK,
    502: Reason.BAD_GATEWAY,
    504: Reason.GATEWAY_TIMEOUT,
    **dict.fromkeys((503, 509, 529), Reason.SERVICE_UNAVAILABLE),
    511: Reason.CAPTIVE_PORTAL,
    520: Reason.ORIGIN_PROTOCOL,
    521: Reason.ORIGIN_REFUSED,
    **dict.fromkeys((522, 524), Reason.ORIGIN_TIMEOUT),
    **dict.fromkeys((523, 527), Reason.ORIGIN_UNREACHABLE),
    **dict.fromkeys((525, 526), Reason.ORIGIN_TLS),
}

FOLLOWED = frozenset({301, 302, 303, 307, 308})
"""RFC 9110 §15.4: the redirects a client follows by itself."""

RETRY_STATUSES = frozenset({421, 425})
"""RFC 9110 §15.5.20, RFC 8470 §5.2: worth one more try on a fresh connection."""


def reason_of(status: int, *, accept_given: bool = False) -> Reason | None:
    """The reason a final status stands for; None: a success, to be validated. 206 and 304 are judged elsewhere."""
    if status == 406 and accept_given:
        return Reason.CLIENT_ERROR  # the caller's own Accept was refused, not we
    if found := _TABLE.get(status):
        return found
    match status // 100:
        case 1:
            return Reason.EMPTY_RESPONSE  # RFC 9110 §15.2: interim, and nothing followed
        case 2:
            return None
        case 3:
            return Reason.REDIRECT_UNRESOLVED
        case 4:
            return Reason.CLIENT_ERROR
        case 5:
            return Reason.SERVER_ERROR
        case _:
            return Reason.UNEXPECTED_STATUS


def phrase(status: int) -> str:
    """The status with its registered name, as "503 Service Unavailable"."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
