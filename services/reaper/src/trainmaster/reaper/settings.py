"""How patient the reaper is; every limit by name, `TM_REAPER_*` overrides."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class ReaperSettings(BaseSettings):
    """Deadlines in seconds, blind time is always added; how long the log is kept.

    The log of a job stays for `retention_days` after it was archived, and the mere word
    that it was for `traces_days`: no service may be away for longer than that.
    """

    model_config = SettingsConfigDict(env_prefix="TM_REAPER_", extra="ignore")

    prepare_seconds: float = 600.0
    start_seconds: float = 120.0
    stop_margin_seconds: float = 30.0
    node_lost_seconds: float = 60.0
    proof_seconds: float = 120.0
    evidence_seconds: float = 60.0
    service_silent_seconds: float = 6.0
    # Not before an Idempotency-Key is forgotten: submission asks the log for 24 h.
    retention_days: float = Field(default=7.0, ge=2.0)
    traces_days: float = Field(default=28.0, ge=2.0)
