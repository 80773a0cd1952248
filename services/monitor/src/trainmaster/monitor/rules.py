"""Reads step and loss from one line of output. Pure.

One family of lines: a word for the step with its number, and later on the line the word
loss with its value, as nanoGPT, torchtitan, litgpt, MaxText and most own loops print
them. What stands around does not matter. Losses of an evaluation are not those of the
training, and a line that names no step says nothing about progress.
"""

import re
from dataclasses import dataclass
from typing import Final

_STEP_MAX: Final = 2**31 - 1
_TEXT_CHARS_MAX: Final = 32
_WORD_CHARS_MAX: Final = 24
_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])"
)
_NUMBER: Final = (
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
    r"(?![\w#]|\.[\w#])"
)
_NO_NUMBER: Final = (
    r"(?:nan(?:\(\w*\))?|inf(?:inity)?|1?\.?#(?:[qs]?nan|ind|inf)\w*)(?!\w)"
)
_STEP: Final = re.compile(
    r"(?<![\w.])(?:global[_ ]?)?(step|iter(?:ation)?)s?"
    r"""["']?\s*[:=#]?\s*\[?\s*(\d{1,3}(?:,\d{3})+|\d{1,10})(?:\.0+)?(?![\w.])""",
    re.IGNORECASE,
)
_LOSS: Final = re.compile(
    r"""(?<![A-Za-z0-9])loss["']?\s*[:=]?\s*(?:tensor\()?["']?"""
    rf"(?P<value>[-+]?(?:{_NUMBER}|{_NO_NUMBER}))",
    re.IGNORECASE,
)
_WORD_BEFORE_STEP: Final = re.compile(r"([A-Za-z]+)[ _/]{1,2}$")
_WORD_BEFORE_LOSS: Final = re.compile(r"([A-Za-z]+)[^A-Za-z0-9]{0,3}$")
_NOT_TRAINING: Final = frozenset(
    {
        *("val", "valid", "validate", "validation", "validating"),
        *("eval", "evaluate", "evaluation", "evaluating", "test", "dev"),
        *("best", "min", "max", "target", "previous", "prev", "last", "aux"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a line says: a step, the loss of the training there, and its spelling."""

    step: int
    loss: float
    text: str


def read_line(line: str) -> Reading | None:
    """Read one line; None when it reports no step with a loss."""
    if "loss" not in line and "loss" not in line.lower():
        return None  # nearly all lines, at almost no cost
    plain = _ESCAPES.sub("", line)
    step = _step(plain)
    if step is None or _qualified(_WORD_BEFORE_STEP, plain, step.start()):
        return None
    number = int(step[2].replace(",", ""))
    text = _loss(plain, after=step.end())
    if not text or number > _STEP_MAX:
        return None
    return Reading(step=number, loss=to_float(text), text=text[:_TEXT_CHARS_MAX])


def _step(plain: str) -> re.Match[str] | None:
    """Find the first step; one that is called so counts for more than an iteration."""
    iteration: re.Match[str] | None = None
    for match in _STEP.finditer(plain):
        if match[1].lower() == "step":
            return match
        iteration = iteration or match
    return iteration


def _loss(plain: str, *, after: int) -> str:
    for match in _LOSS.finditer(plain, after):
        if not _qualified(_WORD_BEFORE_LOSS, plain, match.start()):
            return match["value"]
    return ""


def _qualified(pattern: re.Pattern[str], plain: str, at: int) -> bool:
    """Tell whether the word before makes it something else than the training's."""
    word = pattern.search(plain, max(0, at - _WORD_CHARS_MAX), at)
    return word is not None and word[1].lower() in _NOT_TRAINING


def to_float(text: str) -> float:
    """Turn any spelling of a number, or of what is none, into a float."""
    plain = text.replace(",", "").lower()
    if "inf" in plain:
        return float("-inf") if plain.startswith("-") else float("inf")
    if "nan" in plain or "ind" in plain:
        return float("nan")
    return float(plain)
