"""Says how a stack is that runs already, and which jobs a new one leaves alone."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx
from pydantic import ValidationError

from trainmaster.core import subjects
from trainmaster.core.messages import Assignment
from trainmaster.runtime.clock import pause
from trainmaster.runtime.local import POOL, Options
from trainmaster.runtime.log import Log

_PATIENCE_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.1
_JOBS_NAMED_MAX: Final = 5
UNREACHABLE: Final = 6
"""The code of `tm` for a server that does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How the stack that holds a data directory is."""

    said: str
    code: int = 0


async def found(options: Options, pid: int) -> Found:
    """Look at the stack that runs here; one that recovers is given a moment."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        seen = await _look(options, pid)
        if seen.code == 0 or time.monotonic() > end:
            return seen
        await pause(_LOOK_SECONDS)


async def _look(options: Options, pid: int) -> Found:
    try:
        url = str(json.loads(options.credentials.read_text())["url"])
    except FileNotFoundError:
        return Found(
            said=f"Trainmaster is starting or stopping below {options.data} already."
        )
    runs = f"Trainmaster runs already: {url} (data: {options.data})"
    parts = await _parts(url)
    if parts is None:
        return Found(
            said=f"{runs}, but it does not answer. Its process is {pid}; if it stays "
            f"so: `kill -9 {pid}`, then `tm up`. Ranks of running jobs go on.",
            code=UNREACHABLE,
        )
    ill = {name: how for name, how in parts.items() if how != "ready"}
    if not ill:
        return Found(said=runs)
    lines = [
        f"{runs}, but it is not well:",
        *(f"  {name}: {how}" for name, how in ill.items()),
        "It tries again by itself, and running jobs go on. If it stays so, mend",
        "what is named above, or start it anew: `tm down`, then `tm up`.",
    ]
    return Found(said="\n".join(lines), code=UNREACHABLE)


async def _parts(url: str) -> Mapping[str, str] | None:
    """Ask each part how it is; None when nobody answers."""
    try:
        async with httpx.AsyncClient(timeout=_ANSWER_SECONDS, trust_env=False) as http:
            told: dict[str, str] = (await http.get(f"{url}/readyz")).json()
    except (httpx.HTTPError, ValueError):
        return None
    return told


async def left_alone(log: Log, options: Options) -> str:
    """Warn of jobs on nodes that this start leaves out; "" when there are none."""
    left: dict[str, list[str]] = {}
    async for raw in log.last_values(subjects.ASSIGN, f"tm.assign.{POOL}.>"):
        key, job = subjects.parse_assign(raw.subject)
        if key not in options.node_keys:
            left.setdefault(key.node, []).append(_called(job, raw.body))
    if not left:
        return ""
    told = "; ".join(f"{n}: {_some(jobs)}" for n, jobs in sorted(left.items()))
    return (
        f"Warning: jobs are on nodes that were not started ({told}). Nobody watches, "
        "stops or ends them before their nodes are back: `tm down`, then "
        f"`tm up --nodes {_nodes_needed(left)}`."
    )


def _called(job: str, body: bytes) -> str:
    try:
        spec = Assignment.from_json(body).spec
    except ValidationError:
        spec = None
    return f"{spec.name} ({job})" if spec is not None and spec.name else job


def _some(jobs: list[str]) -> str:
    more = len(jobs) - _JOBS_NAMED_MAX
    shown = ", ".join(jobs[:_JOBS_NAMED_MAX])
    return f"{shown} and {more} more" if more > 0 else shown


def _nodes_needed(nodes: Mapping[str, list[str]]) -> int:
    """Count up to the last of them: nodes are n1, n2 and so on."""
    numbers = (name.removeprefix("n") for name in nodes)
    return max((int(n) for n in numbers if n.isdecimal()), default=len(nodes))
