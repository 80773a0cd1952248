"""What one service process is told from outside: `TM_*` variables."""

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from trainmaster.runtime.bus import BusAddress


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

    @property
    def bus(self) -> BusAddress:
        """Where NATS is and who we are there."""
        return BusAddress(
            url=self.nats_url,
            user=self.nats_user,
            password=self.nats_password.get_secret_value(),
        )
