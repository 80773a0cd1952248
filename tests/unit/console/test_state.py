"""The console's read model, its words and its answers, with nothing outside."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from trainmaster.console import answers
from trainmaster.console.finding import find
from trainmaster.console.policy import Console
from trainmaster.console.reasons import Now
from trainmaster.console.shelf import Shelf
from trainmaster.console.state import Recent, State, Told, fold, trail_key
from trainmaster.console.store import tables
from trainmaster.core.decision import Decision
from trainmaster.core.envelope import Entry
from trainmaster.core.events import REGISTRY, Archived
from trainmaster.core.facts import DrainRequested, NodeLost, NodeRegistered, RankExited
from trainmaster.core.ids import (
    JobId,
    JobKey,
    MemberKey,
    NodeKey,
    PlanKey,
)
from trainmaster.core.messages import Progress
from trainmaster.core.moment import Moment
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.values import Cause
from trainmaster.testkit.builders import (
    KEY,
    START,
    a_history,
    a_log,
    a_submitted,
    an_entry,
)

pytestmark = pytest.mark.unit

MEMBER = MemberKey("local", "n1", KEY.job, 1)
ENDED = "submitted placed ordered started ended"


def a_state(words: str, *, state: State | None = None, key: JobKey = KEY) -> State:
    """Fold a life."""
    known = State() if state is None else state
    for entry in a_log(a_history(words), key=key):
        _ = tuple(fold(known, entry))
    return known


def told(state: State, *, now: Now | None = None) -> Any:
    return answers.job_details(state.jobs[KEY], now or Now())


def key_of(number: int) -> JobKey:
    return JobKey("default", JobId(f"01J{number:03d}"))


def test_the_console_decides_nothing():
    assert Console().decide(a_state(ENDED), {}, Moment(at=START)) == Decision()


def test_the_console_hears_every_family():
    heard = {subject.split(".")[1] for subject in Console.hears}
    assert heard == {family for family, _ in REGISTRY}


def test_every_attempt_is_kept_in_brief():
    job = told(a_state(f"{ENDED} reclaimed chosen requeued placed ordered"))
    first, second = job["attempts"]
    assert (first["cause"], first["reason"]) == ("rank_failed", "rank 0 exited with 1")
    assert first["started_at"] < first["ended_at"] < second["placed_at"]
    assert (second["restore_step"], second["ended_at"]) == (10, None)
    assert (job["attempt"], job["state"]) == (2, "starting")


def test_a_void_event_is_no_part_of_a_jobs_life():
    state = State()
    entries = a_log(a_history("submitted started placed"))
    changed = [tuple(fold(state, entry)) for entry in entries]
    assert changed[1] == ()
    assert state.trail(KEY.job).places == [1, 3]


def test_what_a_node_reports_before_the_job_is_read_is_kept():
    state = State()
    _ = tuple(fold(state, an_entry(RankExited(), key=MEMBER, seq=9)))
    _ = tuple(fold(state, an_entry(a_submitted(), seq=4)))
    assert state.trail(KEY.job).places == [-9, 4]


def test_the_state_survives_being_saved_and_loaded():
    rows = tables()
    state = a_state(f"{ENDED} reclaimed:n1")
    _ = tuple(fold(state, an_entry(RankExited(), key=MEMBER, seq=9)))
    _ = tuple(fold(state, an_entry(NodeRegistered(), key=NodeKey("local", "n1"))))
    changed = [
        ("job", KEY),
        ("trail", trail_key(KEY.job)),
        ("node", NodeKey("local", "n1")),
    ]
    documents: dict[str, dict[str, str]] = {}
    for (name, key), body in rows.dump(state, changed).items():
        assert body is not None
        documents.setdefault(name, {})[key] = body
    loaded = rows.load(documents)
    assert (loaded.jobs, loaded.trails, loaded.nodes) == (
        state.jobs,
        state.trails,
        state.nodes,
    )
    assert loaded.jobs.charged == {KEY}
    assert find(loaded.jobs, "train").job.key == KEY


def test_an_archived_job_is_kept_until_there_are_too_many():
    state = State(jobs=Shelf(finished_kept=2))
    life = "submitted cancel cancelled archived"
    for number in range(4):
        for place, event in enumerate(a_history(life)):
            seq = 10 * number + place
            _ = tuple(fold(state, an_entry(event, key=key_of(number), seq=seq)))
    assert set(state.jobs) == {key_of(2), key_of(3)}
    assert set(state.trails) == {trail_key(JobId("01J002")), trail_key(JobId("01J003"))}
    assert find(state.jobs, "train").job.key == key_of(3)


def test_a_job_that_still_blocks_a_node_is_never_dropped():
    state = State(jobs=Shelf(finished_kept=0))
    a_state("submitted placed ordered started completed succeeded", state=state)
    [node, _] = answers.node_rows(state.nodes, state.jobs)
    assert node["blocked_by"] == ["attempt 1 of job job-1 (train) awaits proof"]
    assert told(state)["unreclaimed"] == [
        {
            "attempt": 1,
            "nodes": ["n1", "n2"],
            "awaits": [
                "proof that nothing of attempt 1 is left on n1",
                "proof that nothing of attempt 1 is left on n2",
            ],
        }
    ]


def test_a_page_begins_behind_the_one_before():
    state = State()
    for number in range(5):
        _ = tuple(fold(state, an_entry(a_submitted(), key=key_of(number), seq=number)))
    newest = [view.job.key for view in state.jobs.newest_first()]
    assert newest == [key_of(n) for n in (4, 3, 2, 1, 0)]
    older = [view.job.key for view in state.jobs.newest_first(before=key_of(2))]
    assert older == [key_of(1), key_of(0)]


def test_progress_of_an_older_attempt_is_not_shown():
    state = a_state(f"{ENDED} reclaimed requeued placed ordered started")
    _ = tuple(fold(state, an_entry(CheckpointVerified(attempt=1, step=50))))
    old = Now(progress=Progress(attempt=1, step=70, loss=1.0))
    assert (told(state, now=old)["step"], told(state, now=old)["loss"]) == (50, None)
    new = Now(progress=Progress(attempt=2, step=51, loss=float("nan")))
    assert (told(state, now=new)["step"], told(state, now=new)["loss"]) == (51, "nan")


def test_a_verdicts_cause_is_shown_and_else_that_of_the_last_attempt():
    assert told(a_state(f"{ENDED} reclaimed failed"))["cause"] == "rank_failed"
    assert told(a_state("submitted cancel cancelled"))["cause"] == ""
    cancelled = "submitted placed ordered started cancel"
    assert told(a_state(cancelled))["cause"] == Cause.CANCELLED


def test_a_node_says_in_a_word_why_it_gets_no_work():
    state, key = State(), NodeKey("local", "n1")
    states: list[str] = []
    for event in (NodeRegistered(), NodeLost(), NodeRegistered(), DrainRequested()):
        _ = tuple(fold(state, an_entry(event, key=key)))
        states.append(answers.node_rows(state.nodes, state.jobs)[0]["state"])
    assert states == ["ready", "lost", "ready", "draining"]


def test_only_the_newest_events_stay_in_memory():
    recent = Recent(most=3)
    entries = a_log(a_history("submitted placed ordered started ended"))
    for number, entry in enumerate(entries, 1):
        recent.add(Told(seq=number, entry=entry))
    assert [each.seq for each in recent.behind(0)] == [3, 4, 5]
    assert [each.seq for each in recent.behind(4)] == [5]
    assert recent.behind(5) == []
    assert recent.at(2) is None
    assert recent.at(3) == entries[2]


def test_a_row_of_a_job_is_a_document_like_any_other():
    view = a_state(ENDED).jobs[KEY]
    adapter = TypeAdapter(type(view))
    assert adapter.validate_json(adapter.dump_json(view)) == view


def test_an_entry_of_a_plan_touches_no_row():
    entry: Entry = an_entry(REGISTRY["plan", ""](), key=PlanKey("local"))
    assert tuple(fold(State(), entry)) == ()


def test_a_job_whose_end_was_purged_is_over():
    state = State()
    entries = a_log(a_history("submitted placed ordered started"))
    for entry in (*entries, an_entry(Archived(attempt=3), key=KEY, seq=50)):
        tuple(fold(state, entry))
    known = state.jobs[KEY]
    assert (known.final, known.job.archived) == (True, True)
    assert answers.job_row(known, Now())["reason"].startswith("how it ended was purged")
