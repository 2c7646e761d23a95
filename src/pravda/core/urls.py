"""Identity of URLs: read once at the door as a browser reads them, then used as a value everywhere."""

import re
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import unquote_to_bytes

import ada_url

MAX_URL_BYTES: Final = 64 * 1024
"""Longest URL taken, before and after serialisation, in bytes of UTF-8."""

# Fetch Standard, "port blocking", https://fetch.spec.whatwg.org/#bad-port; 0 can never be connected to.
# fmt: off
REFUSED_PORTS: Final = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
    526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
    3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
})
# fmt: on
"""Ports that browsers never speak HTTP to, since other protocols listen there."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# URL Standard, "special scheme": these take any number of slashes, and a backslash is a slash to them.
_SPECIAL_SCHEMES: Final = frozenset({"http", "https", "ws", "wss", "ftp", "file"})
# Schemes whose path may hold an @ that is no user info.
_OPAQUE_SCHEMES: Final = frozenset(
    {"mailto", "sip", "sips", "xmpp", "tel", "acct", "urn", "cid", "mid", "data", "about", "javascript"}
)
_SCHEME: Final = re.compile(r"[\x00-\x20]*([A-Za-z][A-Za-z0-9+.\-\t\n\r]*):")
_SLASHES: Final = re.compile(r"[/\\\t\n\r]*")
_TWO_SLASHES: Final = re.compile(r"[\t\n\r]*/[\t\n\r]*/")
_HIDDEN_AUTHORITY: Final = re.compile(r"[^?#/\\]*(?:(?:[/\\][\t\n\r]*){2,}|:[\t\n\r]*[/\\])")
_AUTHORITY_END: Final = re.compile(r"[/?#]")
_SPECIAL_AUTHORITY_END: Final = re.compile(r"[/\\?#]")
_TAB_OR_NEWLINE: Final = str.maketrans("", "", "\t\n\r")


class BadURL(ValueError):
    """The text is not a URL that can be captured; the message never repeats it, for it may hold a password."""


class UnsupportedScheme(BadURL):
    """The URL can be read, but its scheme is neither http nor https."""


@dataclass(frozen=True, slots=True, kw_only=True)
class URL:
    """One http or https URL, as the WHATWG URL Standard serialises it."""

    href: str = field(
        repr=False
    )  # whole serialisation, with credentials and fragment: never stored or logged
    page: str  # identity of the page: href without credentials and fragment
    scheme: str  # "http" or "https"
    host: str  # ASCII host as it stands in the URL, IPv6 in brackets, no port
    port: int  # effective port, the scheme's own when the URL names none
    origin: str  # scheme, host and port when it is not the scheme's own
    target: str  # path and query as they stand on the request line, "/" at least
    fragment: str | None  # without "#"; None where there is none, "" where it is empty
    username: str = field(repr=False)  # percent-decoded, "" where absent
    password: str = field(repr=False)  # percent-decoded, "" where absent
    credentials: bytes | None = field(
        repr=False
    )  # b"user:password" for Basic authentication; None where absent

    @property
    def fetch_url(self) -> str:
        """What an engine is given: the page, since credentials travel as a header and fragments never."""
        return self.page

    @property
    def hostname(self) -> str:
        """The host without the brackets of an IPv6 address."""
        return self.host.strip("[]")

    @property
    def port_is_refused(self) -> bool:
        """Whether browsers refuse to connect to this port."""
        return self.port in REFUSED_PORTS

    def same_origin(self, other: "URL") -> bool:
        """Whether both have the same scheme, host and port."""
        return self.origin == other.origin


def whatwg_href(url: str, base: str | None = None) -> str:
    """The URL, resolved against the base, exactly as the WHATWG URL Standard serialises it."""
    text = _scalar_values(url)
    base_text = None if base is None else _scalar_values(base)
    try:
        href: str = ada_url.URL(text, base_text).href
    except ValueError:
        # From None: the library's exception would keep the text, and with it a password, in a traceback.
        raise BadURL("this is not a URL that a browser would accept") from None
    # Percent-encoding can triple a text: what is handed out must itself be readable again.
    if len(href) > MAX_URL_BYTES:
        raise BadURL(f"the URL is longer than {MAX_URL_BYTES} bytes")
    return href


def parse(url: str, base: str | None = None) -> URL:
    """The value of an http or https URL; the one place where text becomes a URL."""
    href = whatwg_href(url, base)
    scheme, _, rest = href.partition(":")
    if scheme not in _DEFAULT_PORTS:
        raise UnsupportedScheme("only http and https URLs can be captured")
    # The serialised form is strict: "//" always follows, the path is never empty, and in the authority
    # an "@" of user info is percent-encoded, as "#" is everywhere before the fragment.
    rest, hash_sign, fragment = rest.removeprefix("//").partition("#")
    path_start = rest.index("/")
    userinfo, _, host_port = rest[:path_start].rpartition("@")
    target = rest[path_start:]
    host, port = _split_port(host_port)
    username, _, password = (unquote_to_bytes(part) for part in userinfo.partition(":"))
    origin = f"{scheme}://{host_port}"
    return URL(
        href=href,
        page=origin + target,
        scheme=scheme,
        host=host,
        port=_DEFAULT_PORTS[scheme] if port is None else port,
        origin=origin,
        target=target,
        fragment=fragment if hash_sign else None,
        username=username.decode("utf-8", "replace"),
        password=password.decode("utf-8", "replace"),
        credentials=username + b":" + password if userinfo else None,
    )


def join(base: URL, location: bytes | str) -> URL:
    """Where a Location header leads from `base`."""
    target = parse(location if isinstance(location, str) else _header_text(location), base.href)
    if target.fragment is None and base.fragment is not None:
        # RFC 9110 §10.2.2: the target inherits the fragment when Location has none of its own.
        return replace(target, href=f"{target.href}#{base.fragment}", fragment=base.fragment)
    return target


def redact(url: str) -> str:
    """Any URL text without its user info, the rest untouched; of a broken one rather too much is taken away."""
    if "@" not in url:
        return url
    start, end = _userinfo_span(url)
    at_sign = url.rfind("@", start, end)
    return url if at_sign < 0 else url[:start] + url[at_sign + 1 :]


def _header_text(value: bytes) -> str:
    """A header value as text: UTF-8 where it is that, else Latin-1, which reads any bytes."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _scalar_values(text: str) -> str:
    """The text with lone surrogates replaced (Web IDL, "USVString"), if it is not too long to be a URL."""
    if len(text) > MAX_URL_BYTES:
        raise BadURL(f"the URL is longer than {MAX_URL_BYTES} bytes")
    clean = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if len(clean.encode()) > MAX_URL_BYTES:
        raise BadURL(f"the URL is longer than {MAX_URL_BYTES} bytes")
    return clean


def _split_port(host_port: str) -> tuple[str, int | None]:
    """Host and port of a serialised authority; no port where it is the scheme's own."""
    host, colon, port = host_port.rpartition(":")
    if not colon or port.endswith("]"):
        return host_port, None
    return host, int(port)


def _userinfo_span(url: str) -> tuple[int, int]:
    """Where user info would begin and how far it could reach, an empty span where there can be none."""
    match = _SCHEME.match(url)
    if match is None:
        return _relative_userinfo_span(url)
    scheme = match[1].translate(_TAB_OR_NEWLINE).lower()
    special = scheme in _SPECIAL_SCHEMES
    slashes = (_SLASHES if special else _TWO_SLASHES).match(url, match.end())
    if slashes:
        return slashes.end(), _authority_end(url, slashes.end(), special=special)
    # "user:password@host" reads as a scheme "user": nothing of it may stay, save where an "@" is ordinary.
    return 0, 0 if scheme in _OPAQUE_SCHEMES else len(url)


def _relative_userinfo_span(url: str) -> tuple[int, int]:
    """The same for a text without a scheme: "//user@host/", "user@host", or a scheme behind a stray character."""
    hidden = _HIDDEN_AUTHORITY.match(url)
    start = hidden.end() if hidden else 0
    return start, _authority_end(url, start, special=True, base="http://base.invalid/")


def _authority_end(url: str, start: int, *, special: bool, base: str | None = None) -> int:
    """The end of a readable URL's authority, else of the text: a raw "/" or "?" in a password breaks a URL."""
    try:
        whatwg_href(url, base)
    except BadURL:
        return len(url)
    end = (_SPECIAL_AUTHORITY_END if special else _AUTHORITY_END).search(url, start)
    return end.start() if end else len(url)
