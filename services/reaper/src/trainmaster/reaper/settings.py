"""How patient the reaper is; every limit by name, `TM_REAPER_*` overrides."""

from pydantic_settings import BaseSettings, SettingsConfigDict


class ReaperSettings(BaseSettings):
    """Deadlines in seconds; blind time is always added."""

    model_config = SettingsConfigDict(env_prefix="TM_REAPER_", extra="ignore")

    prepare_seconds: float = 600.0
    start_seconds: float = 120.0
    stop_margin_seconds: float = 30.0
    node_lost_seconds: float = 60.0
    proof_seconds: float = 120.0
    evidence_seconds: float = 60.0
    service_silent_seconds: float = 6.0
