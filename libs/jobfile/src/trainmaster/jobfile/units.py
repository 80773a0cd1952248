"""Decides what a duration, a size and a whole number are, strictly. Pure."""

import re
from typing import Final

_NUMBER: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,6})?")
_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DURATION: Final = re.compile(
    r"(?:(?P<d>[0-9.]+)d)?(?:(?P<h>[0-9.]+)h)?(?:(?P<m>[0-9.]+)m)?(?:(?P<s>[0-9.]+)s)?"
)
_SIZE: Final = re.compile(r"(?P<number>[0-9.]+)(?P<unit>Ki|Mi|Gi|Ti|k|M|G|T)?")
_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_BYTES: Final = {
    "": 1,
    "k": 1000,
    "M": 1000**2,
    "G": 1000**3,
    "T": 1000**4,
    "Ki": 1024,
    "Mi": 1024**2,
    "Gi": 1024**3,
    "Ti": 1024**4,
}
_LONG_UNIT: Final = re.compile(
    r"([0-9.]+)\s*(d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)\b"
)
_LONG_SIZE: Final = re.compile(r"([0-9.]+)\s*([kmgt])(i?)b?(?:ytes)?")


def whole(text: str) -> int | None:
    """Read a whole number; no leading zeros, no plus, no underscores."""
    return int(text) if _WHOLE.fullmatch(text) else None


def duration(text: str) -> float | None:
    """Read seconds: `1800`, `30m`, `2h`, `1h30m`, `1.5d`; units from large to small."""
    if _NUMBER.fullmatch(text):
        return float(text)
    found = _DURATION.fullmatch(text)
    parts = {u: n for u, n in found.groupdict().items() if n} if found else {}
    if not parts or not all(_NUMBER.fullmatch(number) for number in parts.values()):
        return None
    return sum(float(number) * _SECONDS[unit] for unit, number in parts.items())


def size(text: str) -> int | None:
    """Read bytes: `512Gi`, `1.5Ti`, `64G` (decimal), or a bare whole number."""
    found = _SIZE.fullmatch(text)
    if found is None or not _NUMBER.fullmatch(found["number"]):
        return None
    return round(float(found["number"]) * _BYTES[found["unit"] or ""])


def likely_duration(text: str) -> str:
    """Guess the right spelling of a wrong duration, "" without an idea."""
    guess = _LONG_UNIT.sub(lambda found: found[1] + found[2][0], text.strip().lower())
    guess = re.sub(r"(?:\s|,|and)+", "", guess)
    return guess if guess != text and duration(guess) is not None else ""


def likely_size(text: str) -> str:
    """Guess the right spelling of a wrong size, "" without an idea."""
    found = _LONG_SIZE.fullmatch(text.strip().lower())
    if found is None:
        return ""
    letter = found[2].upper() if found[3] or found[2] != "k" else "k"
    guess = f"{found[1]}{letter}{found[3]}"
    return guess if guess != text and size(guess) is not None else ""
