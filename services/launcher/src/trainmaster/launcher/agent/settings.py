"""What one agent is told: which node it is, where its directory and NATS are."""

import sys
from pathlib import Path
from typing import Final

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from trainmaster.core.ids import NodeKey, token
from trainmaster.runtime.bus import BusAddress

HEARTBEAT_SECONDS: Final = 1.0
HEALTH_SECONDS: Final = 1.0
"""How often the reader of ASSIGN is looked at when nothing happens."""
RETRY_SECONDS: Final = 0.5
"""Between two tries at something that this node or NATS refused for the moment."""
CLOSED_KEPT_SECONDS: Final = 7 * 86400.0
"""How long an attempt stays refused on this node after its close was reported."""


class AgentSettings(BaseSettings):
    """One agent's settings; `TM_*` variables fill in what is not given."""

    model_config = SettingsConfigDict(env_prefix="TM_", extra="ignore", frozen=True)

    pool: str = "local"
    node: str = "n1"
    root: Path = Path("node")
    nats_url: str = "nats://127.0.0.1:4222"
    nats_user: str = ""
    nats_password: SecretStr = SecretStr("")
    epoch: int = 1
    address: str = "127.0.0.1"
    fake_accelerators: int = 0
    port_first: int = 20000
    port_last: int = 29999
    network_interface: str = ""
    python: str = sys.executable

    @property
    def key(self) -> NodeKey:
        """Name the node; raises InvalidTokenError."""
        return NodeKey(token("pool", self.pool), token("node", self.node))

    @property
    def bus(self) -> BusAddress:
        """Where NATS is and who we are there."""
        return BusAddress(
            url=self.nats_url,
            user=self.nats_user,
            password=self.nats_password.get_secret_value(),
        )
