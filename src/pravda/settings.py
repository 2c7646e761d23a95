"""What the machine's owner decides, from `PRAVDA_*` environment variables or keyword arguments."""

from pathlib import Path
from typing import Annotated

from platformdirs import user_data_path
from pydantic import BeforeValidator, ByteSize, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from pravda.core import durations
from pravda.core.mistake import BadRequest
from pravda.core.request import DEFAULT_MAX_BYTES, Timeouts

VERSION = "0.1.0"

_DEFAULT = Timeouts()


def _seconds(value: object) -> float:
    number = durations.seconds("it", value)
    if number <= 0:
        raise ValueError("must be more than 0")
    return number


Budget = Annotated[float, BeforeValidator(_seconds)]
"""A duration above 0, in seconds."""


class Settings(BaseSettings):
    """Every setting with its default; an environment variable is the name in capitals behind `PRAVDA_`."""

    model_config = SettingsConfigDict(
        env_prefix="PRAVDA_", extra="forbid", frozen=True, env_ignore_empty=True
    )

    home: Path = Field(
        default_factory=lambda: user_data_path("pravda", appauthor=False),
        description="Folder of the archive. Default: the platform's folder for user data.",
    )
    user_agent: str = Field(
        default=f"pravda/{VERSION}",
        min_length=1,
        max_length=500,
        pattern=r"^[\x20-\x7e]+$",
        description="User-Agent of every request; add a contact address so that a site can reach you.",
    )
    allow_addresses: str = Field(
        default="",
        description="Networks, addresses or host names (comma separated) that may be captured although they are "
        "not public.",
    )
    proxy: SecretStr | None = Field(
        default=None,
        description="Proxy for all requests, as `http://user:password@host:port` or `socks5h://host:port`. "
        "Proxies of the environment are not used.",
    )
    ca_bundle: Path | None = Field(
        default=None,
        description="File of trusted certificate authorities (PEM). Default: the system's.",
    )
    timeout_connect: Budget = Field(default=_DEFAULT.connect, description="Budget `connect`.")
    timeout_first_byte: Budget = Field(default=_DEFAULT.first_byte, description="Budget `first_byte`.")
    timeout_idle: Budget = Field(default=_DEFAULT.idle, description="Budget `idle`.")
    timeout_body: Budget = Field(default=_DEFAULT.body, description="Budget `body`.")
    timeout_total: Budget = Field(default=_DEFAULT.total, description="Budget `total`.")
    max_bytes: ByteSize = Field(
        default=ByteSize(0),
        ge=0,
        description="The most bytes the archive may take on its disk, as `20GB`; a capture beyond it fails with "
        "`disk_full`. Default 0: as many as there are.",
    )
    min_free_bytes: ByteSize | None = Field(
        default=None,
        ge=0,
        description="Bytes of the archive's disk that must stay free, as `1GB`; 0: none. Default: 200 MB, or 5 % of "
        "the disk where that is less.",
    )
    max_body_bytes: int = Field(
        default=DEFAULT_MAX_BYTES,
        gt=0,
        description="The most decoded bytes of a body that are kept, unless the request says `max_bytes`.",
    )
    read_limit: int = Field(
        default=64 * 1024 * 1024,
        gt=0,
        description="The most bytes of a body that rules and signatures read; longer bodies fail content rules.",
    )
    spool_memory: int = Field(
        default=1024 * 1024,
        ge=0,
        description="Bytes of a body kept in memory before it goes to a temporary file.",
    )
    connections: int = Field(
        default=100, gt=0, le=10_000, description="The most connections kept open for reuse."
    )

    @property
    def timeouts(self) -> Timeouts:
        """The budgets of requests that name none."""
        return Timeouts(
            connect=self.timeout_connect,
            first_byte=self.timeout_first_byte,
            idle=self.timeout_idle,
            body=self.timeout_body,
            total=self.timeout_total,
        )


def load(**given: object) -> Settings:
    """Settings from the environment, overridden by what is given; raises BadRequest naming the setting."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # pydantic checks
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BadRequest(f"PRAVDA_{name.upper()}", first["msg"]) from None
