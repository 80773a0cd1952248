"""A launcher's state told in words: a job's life and what its members reported."""

from collections.abc import Iterable, Sequence

from trainmaster.core.events import Event, Transition
from trainmaster.core.facts import (
    CheckFailure,
    MemberClosed,
    MemberPrepared,
    MemberStarted,
    MemberStopped,
    RankExited,
)
from trainmaster.core.ids import Key, MemberKey
from trainmaster.core.moment import Moment
from trainmaster.core.record import Job
from trainmaster.core.spec import JobSpec
from trainmaster.core.values import Proof, RankExit
from trainmaster.launcher.policy import Launcher
from trainmaster.launcher.state import State
from trainmaster.testkit.builders import KEY, START, a_spec, an_entry, said

NOW = Moment(at=START)
VERSIONS = {"spec": "s1", "program": "p1", "python": "3.11.7"}
PREPARED = MemberPrepared(address="10.0.0.1", port=20001, versions=VERSIONS)
STARTED = MemberStarted(pids=(7,))
STOPPED = MemberStopped()
FAILURE = CheckFailure(check="program", field="command", seen="no file /x")


def closed(how: str = "swept", node: str = "n1") -> MemberClosed:
    return MemberClosed(proof=Proof(node=node, how=how, detail="2 scans"))


def exited(rank: int, node: str = "", **how: object) -> RankExited:
    exit_ = RankExit(rank=rank, node=node or f"n{rank + 1}").model_copy(update=how)
    return RankExited(exit=exit_)


def member(node: str, attempt: int = 1) -> MemberKey:
    return MemberKey("local", node, KEY.job, attempt)


class Scene:
    """One launcher that has read some events."""

    def __init__(self, words: str = "", *, spec: JobSpec | None = None) -> None:
        self.launcher = Launcher()
        self.state = State()
        self.seq = 0
        self.spec = a_spec() if spec is None else spec
        self.tell(words)

    def tell(self, words: str) -> None:
        """Go on with the job's life."""
        for word in words.split():
            job = self.state.jobs.get(KEY) or Job(key=KEY)
            self.hear(said(job, word, spec=self.spec))

    def hear(self, *events: Event, key: Key = KEY) -> Sequence[object]:
        changed: list[object] = []
        for event in events:
            self.seq += 1
            entry = an_entry(event, key=key, seq=self.seq)
            changed += self.launcher.fold(self.state, entry)
        return changed

    def report(self, node: str, *events: Event, attempt: int = 1) -> "Scene":
        self.hear(*events, key=member(node, attempt))
        return self

    def all_report(self, *events: Event, nodes: Iterable[str] = ("n1", "n2")) -> None:
        for node in nodes:
            self.report(node, *events)

    def decided(self) -> list[Event]:
        decision = self.launcher.decide(self.state, {}, NOW)
        return [write.event for group in decision.groups for write in group]

    def only(self) -> Event:
        (event,) = self.decided()
        return event

    def settle(self) -> list[Event]:
        """Append what is decided until nothing is; every event must follow."""
        said: list[Event] = []
        for _ in range(5):
            events = self.decided()
            if not events:
                return said
            for event in events:
                assert isinstance(event, Transition)
                assert self.hear(event), f"{event} is void in {self.job.state}"
            said += events
        message = f"it never comes to rest: {said}"
        raise AssertionError(message)

    @property
    def job(self) -> Job:
        return self.state.jobs[KEY]
