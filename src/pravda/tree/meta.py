"""What a stored page is and when it was current: the tracked metadata file."""

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from pravda.core.charset import DEFAULT, label_to_name
from pravda.core.digest import Json
from pravda.core.evidence import Validators
from pravda.tree.layout import (
    count_or_none,
    merged,
    moment,
    moment_text,
    read_object,
    text_or_none,
    write_object,
)

_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SENDABLE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]{1,8192}")
_ALIASES: Final = {"itemCount": "eventCount"}
"""Names under which older trees keep a value."""


class Confirmations(StrEnum):
    """How often a change of nothing but the time of confirmation may touch the tracked file."""

    ALWAYS = "always"
    DAILY = "daily"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What the stored bytes are and when they were current."""

    source_id: str
    url: str
    """As the sources file names it, without credentials."""
    content_hash: str
    """SHA-256 of the stored bytes, hex."""
    size: int
    """Bytes stored."""
    charset: str
    """WHATWG name in lower case."""
    validators: Validators
    content_changed_at: datetime
    last_confirmed_at: datetime | None
    """When the source last said that these bytes are current; None: never since they came."""
    item_count: int | None
    """What the parser found; None: there is no parser."""
    final_url: str | None = None
    """Where redirects led to; None: the page came from `url` itself."""
    standing: bytes = field(default=b"", repr=False, compare=False)
    """The file as it was read, whose keys and order are kept."""

    @property
    def came_from(self) -> str:
        """The URL of the request that brought the bytes."""
        return self.final_url or self.url

    @property
    def fresh_at(self) -> datetime:
        """When the page was last known to be current."""
        return max(self.last_confirmed_at or self.content_changed_at, self.content_changed_at)

    def only_confirms(self, old: "Meta") -> bool:
        """Whether this says no more than the old one but that the bytes are still current."""
        return replace(self, last_confirmed_at=old.last_confirmed_at) == old

    def to_file(self) -> bytes:
        """The bytes of the metadata file."""
        old = read_object(self.standing) or {}
        new: dict[str, Json] = {
            "sourceId": self.source_id,
            "url": self.url,
            "contentHash": self.content_hash,
            "bytes": self.size,
            "charset": self.charset,
            "etag": self.validators.etag,
            "lastModified": self.validators.last_modified,
            "contentChangedAt": moment_text(self.content_changed_at, old.get("contentChangedAt")),
            "lastConfirmedAt": moment_text(self.last_confirmed_at, old.get("lastConfirmedAt")),
            "itemCount": self.item_count,
        }
        if self.final_url or "finalUrl" in old:
            new["finalUrl"] = self.final_url
        return write_object(merged(old, new, _ALIASES))


def read_meta(source_id: str, data: bytes, old_state: bytes | None = None) -> Meta | None:
    """The metadata in a file, `lastConfirmedAt` from an old state file where it has none; None: it is damaged."""
    read = read_object(data)
    if read is None:
        return None
    content_hash, changed_at = read.get("contentHash"), moment(read.get("contentChangedAt"))
    if not isinstance(content_hash, str) or not _HASH.fullmatch(content_hash) or changed_at is None:
        return None
    confirmed = read if "lastConfirmedAt" in read or old_state is None else read_object(old_state) or {}
    return Meta(
        source_id=source_id,
        url=text_or_none(read.get("url")) or "",
        content_hash=content_hash,
        size=count_or_none(read.get("bytes")) or 0,
        charset=label_to_name(text_or_none(read.get("charset")) or DEFAULT) or DEFAULT,
        validators=Validators(
            etag=_validator(read.get("etag")), last_modified=_validator(read.get("lastModified"))
        ),
        content_changed_at=changed_at,
        last_confirmed_at=moment(confirmed.get("lastConfirmedAt")),
        item_count=count_or_none(read.get("itemCount", read.get("eventCount"))),
        final_url=text_or_none(read.get("finalUrl")),
        standing=data,
    )


def may_confirm(old: Meta, new: Meta, confirmations: Confirmations) -> bool:
    """Whether the tracked file may be touched only to move `lastConfirmedAt`; daily means once per day of UTC."""
    if confirmations is Confirmations.DAILY:
        before, now = old.last_confirmed_at, new.last_confirmed_at
        return before is None or now is None or before.date() != now.date()
    return confirmations is Confirmations.ALWAYS


def _validator(value: Json) -> str | None:
    """A validator that may be sent: what is blank or no header value can only have been written by somebody else."""
    text = text_or_none(value)
    return text if text and _SENDABLE.fullmatch(text) else None
