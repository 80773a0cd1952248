"""Decides what looks like a secret that somebody wrote into a job file. Pure.

It judges by the name and by the form of the value. Whoever reports it must not repeat
the value: messages are kept where secrets must not be.
"""

import re
from typing import Final

_NAMES: Final = re.compile(
    r"(^|.*_)(passwd|password|passphrase|pwd|secret|secrets|token|credential|"
    r"credentials|apikey|api_key|access_key|secret_key|private_key|signing_key|"
    r"encryption_key|account_key|auth_key|ssh_key|key_secret|bearer|authorization)"
    r"(_?[0-9]+|_value)?$"
)
_NO_SECRETS: Final = re.compile(
    r"(^|.*_)(pad|eos|bos|unk|sep|cls|mask|stop|start|end|special|image|think|per|"
    r"next|first|last|prompt|max|min|num|n|new)_tokens?$"
)
"""Tokens of a tokenizer are words of the trade."""
_HARMLESS: Final = re.compile(r"|true|false|none|null|<[a-z|]*>", re.IGNORECASE)
_VALUES: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})"
    r"|\bhf_[A-Za-z0-9]{30,}|\bglpat-[A-Za-z0-9_-]{20,}|\bnpm_[A-Za-z0-9]{30,}"
    r"|\bsk-[A-Za-z0-9_-]{20,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."
    r"|\b[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*:[^/\s@]+@"
)
_ASSIGNED: Final = re.compile(
    r"(?:(?<=--)(?=\S+[= ])|\b(?=\w+=))([A-Za-z][A-Za-z0-9_-]*)[= ]+(?=(\S+))"
)
_EXPANDED: Final = ("$", "-", "<")
"""What begins so in a command is a variable of the shell, an option, a redirection."""


def named_like_a_secret(name: str) -> bool:
    """Say whether a variable of this name nearly always holds a secret."""
    plain = _snake(name)
    return bool(_NAMES.match(plain)) and not _NO_SECRETS.match(plain)


def looks_secret(name: str, value: str) -> bool:
    """Say whether this is a secret: by what it is called, or by its form."""
    if value.startswith("secret://"):
        return False
    if _VALUES.search(value):
        return True
    return not _HARMLESS.fullmatch(value) and named_like_a_secret(name)


def has_secret(text: str) -> bool:
    """Say whether a line or a script has a secret in it, as `--api-key=…`."""
    if _VALUES.search(text):
        return True
    return any(
        looks_secret(found[1], value)
        for found in _ASSIGNED.finditer(text)
        if not (value := found[2].strip("'\"")).startswith(_EXPANDED)
    )


def _snake(name: str) -> str:
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"[^a-z0-9]+", "_", parted.lower())
