"""Decides how the end of a rank, a start or a member is reported. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from trainmaster.core.facts import CheckFailure, MemberClosed, MemberStarted
from trainmaster.core.values import Proof, RankExit
from trainmaster.launcher.backends.model import Exit, ProofKind, SweepProof

LINES_MAX: Final = 20
TAIL_BYTES: Final = 64 * 1024
LINE_CHARACTERS_MAX: Final = 400
REBOOTED: Final = "boot_id"
_HOW: Final[Mapping[ProofKind, str]] = {
    ProofKind.NEVER_STARTED: "never_started",
    ProofKind.BOOT_CHANGED: REBOOTED,
    ProofKind.SWEPT: "swept",
}


def rank_exit(
    end: Exit, *, rank: int, node: str, last_lines: tuple[str, ...]
) -> RankExit:
    """Say it in the words of the log; what nobody saw is `unknown`, never success."""
    at = end.at_unix_seconds
    return RankExit(
        rank=rank,
        node=node,
        code=end.code or 0,
        signal=end.signal or 0,
        unknown=end.unknown,
        out_of_memory=bool(end.oom) and end.code != 0,
        by_us=end.by_us,
        at=None if at is None else datetime.fromtimestamp(at, UTC),
        last_lines=last_lines,
    )


def last_lines(tail: bytes) -> tuple[str, ...]:
    """Take the last lines out of the end of a log; `tail` may begin inside a line."""
    text = tail.decode(errors="replace").replace("\r", "\n")
    lines = [line.rstrip() for line in text.split("\n")]
    said = [line for line in lines if line]
    return tuple(line[-LINE_CHARACTERS_MAX:] for line in said[-LINES_MAX:])


def start_failed(check: str, field: str, seen: str) -> MemberStarted:
    """Say why a member does not run."""
    return MemberStarted(failure=CheckFailure(check=check, field=field, seen=seen))


def unprepared(attempt: int) -> MemberStarted:
    """Refuse a start that was not prepared here: it may be running already."""
    return start_failed(
        "start",
        "prepared",
        f"no record of preparing attempt {attempt}: the agent's directory was lost",
    )


def closed_by_sweep(node: str, proof: SweepProof) -> MemberClosed:
    """Say that nothing is left, because it was looked for."""
    return MemberClosed(
        proof=Proof(node=node, how=_HOW[proof.kind], detail=proof.detail)
    )


def closed_by_reboot(node: str, *, before: str, now: str) -> MemberClosed:
    """Say that nothing is left, because the machine was started anew."""
    detail = f"boot {before} is over, this is {now}"
    return MemberClosed(proof=Proof(node=node, how=REBOOTED, detail=detail))
