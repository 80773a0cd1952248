"""Jobs with a checkpoint directory, and what nodes may find of them."""

from collections.abc import Iterable

from trainmaster.checkpoint_manager.policy import CheckpointManager
from trainmaster.checkpoint_manager.state import State
from trainmaster.checkpoint_manager.wants import Finding, Phase, Scanned
from trainmaster.core.decision import Decision
from trainmaster.core.envelope import Entry
from trainmaster.core.events import CheckpointChosen, Event
from trainmaster.core.ids import NodeKey
from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.core.moment import Moment
from trainmaster.core.spec import CheckpointSpec, JobSpec
from trainmaster.core.values import Rejected
from trainmaster.testkit.builders import KEY, START, a_history, a_log, a_spec

DIRECTORY = "/ckpt/run"
ELSEWHERE = "/models/base"
MANAGER = CheckpointManager()
NOW = Moment(at=START.replace(hour=9, minute=58, second=2))
SETTLED = "submitted placed ordered started ended reclaimed"
CLEAN = "submitted placed ordered started completed reclaimed"


def saving(resume_from: str = "", directory: str = DIRECTORY) -> JobSpec:
    checkpoint = CheckpointSpec(directory=directory, resume_from=resume_from)
    return a_spec(checkpoint=checkpoint)


def folded(entries: Iterable[Entry]) -> State:
    state = State()
    for entry in entries:
        tuple(MANAGER.fold(state, entry))
    return state


def after(words: str, *, spec: JobSpec | None = None) -> State:
    return folded(a_log(a_history(words, spec=spec or saving())))


def whole(step: int, *, digest: str = "", path: str = "") -> ScannedCheckpoint:
    return ScannedCheckpoint(
        path=path or f"{DIRECTORY}/step-{step:06d}",
        step=step,
        format="plain",
        files=2,
        bytes=4096,
        digest=digest or f"digest-{step}",
    )


def torn(step: int, *, path: str = "") -> ScannedCheckpoint:
    return ScannedCheckpoint(
        path=path or f"{DIRECTORY}/step-{step:06d}",
        step=step,
        problem="weights.npy has 1,024 of 4,096 bytes",
    )


def moved(*checkpoints: ScannedCheckpoint) -> tuple[Rejected, ...]:
    return tuple(
        Rejected(path=c.path, moved_to=f"{DIRECTORY}/.tm-aside/step-{c.step:06d}")
        for c in checkpoints
    )


def found(
    *own: ScannedCheckpoint,
    phase: Phase = Phase.FINAL,
    attempt: int = 1,
    origin: tuple[ScannedCheckpoint, ...] = (),
    aside: tuple[Rejected, ...] = (),
) -> Scanned:
    return Scanned(
        key=KEY, attempt=attempt, phase=phase, own=own, origin=origin, moved=aside
    )


def decide(state: State, *scans: Finding) -> Decision:
    facts = {f"scan:{number}": scan for number, scan in enumerate(scans)}
    return MANAGER.decide(state, facts, NOW)


def said(decision: Decision) -> list[Event]:
    return [write.event for group in decision.groups for write in group]


def choices(decision: Decision) -> list[CheckpointChosen]:
    return [event for event in said(decision) if isinstance(event, CheckpointChosen)]


def chosen(state: State, *scans: Scanned) -> CheckpointChosen:
    (choice,) = choices(decide(state, *scans))
    return choice


def node(name: str, pool: str = "local") -> NodeKey:
    return NodeKey(pool, name)
