"""Decides what to train and where things lie, from arguments and environment."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from training import Settings

TEXT = Path(__file__).parent / "text"
DEFAULTS = Settings(
    steps=300,
    batch=2560,
    seed=1,
    context=16,
    embedding=24,
    hidden=384,
    dropout=0.05,
    learning_rate=0.008,
    warmup_steps=20,
    clip_norm=1.0,
)
HELP = {
    "steps": "train up to this step",
    "batch": "windows per step, over all ranks",
    "seed": "of the weights, the order and the dropout",
    "context": "characters seen before the one to predict",
    "embedding": "numbers per character",
    "hidden": "units of the hidden layer",
    "dropout": "share of hidden units left out",
    "learning_rate": "highest rate, after the warm-up",
    "warmup_steps": "steps in which the rate rises",
    "clip_norm": "longest gradient",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How the run behaves; none of this changes the result."""

    text: Path
    checkpoint_every: int
    log_every: int
    sleep_seconds: float
    connect_timeout_seconds: float
    silence_timeout_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the launcher wants things; what has no place is not written."""

    checkpoints: Path | None
    resume_from: Path | None
    metrics: Path | None
    output: Path | None

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> Self:
        """Read what the launcher set; empty is the same as not set."""
        return cls(
            checkpoints=_path(env.get("TM_CHECKPOINT_DIR")),
            resume_from=_path(env.get("TM_RESUME_FROM")),
            metrics=_path(env.get("TM_METRICS_FILE")),
            output=_path(env.get("TM_OUTPUT_DIR")),
        )


def parse_arguments(arguments: list[str] | None = None) -> tuple[Settings, Habits]:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Train a small character model on all ranks.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for name, default in _defaults().items():
        kind = _positive_int if isinstance(default, int) else float
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, default=default, help=HELP[name])
    _add_habits(parser)
    given = vars(parser.parse_args(arguments))
    settings = Settings(**{name: given.pop(name) for name in _defaults()})
    return settings, Habits(**given)


def _add_habits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--text", type=Path, default=TEXT, help="folder with *.txt files to learn")
    add(
        "--checkpoint-every", type=_positive_int, default=50, help="steps between saves"
    )
    add("--log-every", type=_positive_int, default=10, help="steps between lines")
    add("--sleep-seconds", type=float, default=0.0, help="idle time in each step")
    add(
        "--connect-timeout-seconds",
        type=float,
        default=60.0,
        help="how long to wait for the other ranks at the start",
    )
    add(
        "--silence-timeout-seconds",
        type=float,
        default=120.0,
        help="how long another rank may be silent before this one gives up",
    )


def _defaults() -> dict[str, int | float]:
    return {item.name: getattr(DEFAULTS, item.name) for item in fields(DEFAULTS)}


def _positive_int(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
