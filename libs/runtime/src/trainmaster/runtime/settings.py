"""What one service process is told from outside: `TM_*` variables."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from trainmaster.core.rights import Role
from trainmaster.runtime.bus import BusAddress

_KeyPairAlgorithm = Literal[
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
]


class OidcRule(BaseModel):
    """Whoever has this value in this claim has this role on this team (`*`: all)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    claim: str = "groups"
    value: str
    team: str
    role: Role


class OidcSettings(BaseModel):
    """The identity provider whose tokens are taken, as JSON in TM_OIDC."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    issuer: str
    audience: str
    algorithms: tuple[_KeyPairAlgorithm, ...] = Field(
        default=("RS256", "ES256"), min_length=1
    )
    leeway_seconds: float = Field(default=60.0, ge=0, le=600)
    keys_seconds: float = Field(default=600.0, gt=0)
    subject_claim: str = "email"
    grants: tuple[OidcRule, ...] = ()


class Settings(BaseSettings):
    """Where the servers are and who this service is there."""

    model_config = SettingsConfigDict(env_prefix="TM_", extra="ignore")

    nats_url: str = "nats://127.0.0.1:4222"
    nats_user: str = ""
    nats_password: SecretStr = SecretStr("")
    database_url: SecretStr = SecretStr("")
    epoch: int = 1
    http_host: str = "127.0.0.1"
    http_port: int = 0
    admin_token: SecretStr = SecretStr("")
    sources_file: str = ""
    """Which other systems may publish, and what they are; see runtime/sources.py."""
    storage_root: str = ""
    """Where each STORE of `storage://STORE/…` is mounted, the same on every node."""
    oidc: OidcSettings | None = None
    requests_per_second: float = Field(default=500.0, ge=0)
    """How often one token may ask, 0 for any; the admin's own is not limited."""
    requests_burst: int = Field(default=1000, ge=1)
    trusted_proxies: tuple[str, ...] = ()
    """Addresses whose X-Forwarded-For says from where a request comes."""

    @property
    def bus(self) -> BusAddress:
        """Where NATS is and who we are there."""
        return BusAddress(
            url=self.nats_url,
            user=self.nats_user,
            password=self.nats_password.get_secret_value(),
        )
