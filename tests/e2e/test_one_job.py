"""One job's path from its file to the last accelerator given back, on the whole stack.

Read it beside the nine files: the words (`core/events.py`), the states (`core/job.py`),
then the policies in the order in which they take the job over.
"""

import os
import signal
import sys
from pathlib import Path

import pytest
from tests.e2e.stack import Event, Stack, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

ROOT = Path(__file__).parents[2]
SAVE = ROOT / "tests" / "chaos" / "save.py"
CHAR_LM = ROOT / "examples" / "char_lm"

# Who says what, in order. A rank fails once, so that every policy has its say.
STORY = [
    # submission: request → checked → on the log
    ("submission", "submitted", 0),
    # scheduler: why this job, why there
    ("scheduler", "attempt_placed", 1),
    # launcher: prepare → equal → start; its agents' backend starts what really runs
    ("agent", "member_prepared", 1),
    ("agent", "member_prepared", 1),
    ("launcher", "start_ordered", 1),
    ("launcher", "attempt_started", 1),
    ("launcher", "attempt_ended", 1),
    # reaper: the end is proven, node by node
    ("reaper", "attempt_reclaimed", 1),
    # checkpoint-manager: which one, and why
    ("checkpoint-manager", "checkpoint_chosen", 1),
    # reaper: again …
    ("reaper", "requeued", 1),
    ("scheduler", "attempt_placed", 2),
    ("launcher", "start_ordered", 2),
    ("launcher", "attempt_started", 2),
    ("launcher", "attempt_ended", 2),
    ("reaper", "attempt_reclaimed", 2),
    # … and over
    ("reaper", "succeeded", 2),
    ("reaper", "archived", 2),
]


def test_one_job_from_submission_to_reclaim(stack: Stack, tmp_path: Path):
    go = tmp_path / "go"  # the second attempt waits until the first was explained
    wait = f"while [ $TM_ATTEMPT = 2 -a ! -e {go} ]; do sleep 0.05; done"
    job = stack.submit(
        _open(tmp_path),
        name="one-job",
        command=["/bin/sh", "-c", f"{wait}; exec python3 {SAVE} fail"],
        nodes=2,
        output_directory="{job}/output",
        checkpoint={"directory": "{job}/checkpoints"},
        success={"step": 2},
    )
    # monitor: what is wrong, and how it knows
    (finding,) = stack.saw(job, "finding_raised")
    assert "rank 0 on n1 exited with code 3" in finding["event"]["summary"]
    go.touch()
    assert stack.final(job) == "succeeded"
    # Two streams tell of a job; who reads both may see one a little before the other.
    events = sorted(stack.events(job), key=lambda event: event["time"])
    _tells(events, STORY)

    # backends/process.py: two ranks of each attempt really ran, and really ended
    started = _of(events, "member_started")
    assert [event["attempt"] for event in started] == [1, 1, 2, 2]
    pids = {pid for event in started for pid in event["event"]["pids"]}
    assert len(pids) == 4
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    codes = {
        (event["attempt"], exit_.get("rank", 0)): exit_.get("code", 0)
        for event in _of(events, "rank_exited")
        for exit_ in [event["event"]["exit"]]
    }
    assert codes == {(1, 0): 3, (1, 1): 0, (2, 0): 0, (2, 1): 0}
    # checkpoint-manager: the newest that is proven whole, and no other
    verified = {event["event"]["step"] for event in _of(events, "checkpoint_verified")}
    assert verified == {1, 2}
    (chosen,) = _of(events, "checkpoint_chosen")
    assert chosen["event"]["restore"]["step"] == 1
    assert _of(events, "start_ordered")[1]["event"]["restore"]["step"] == 1
    # reaper: both nodes gave their proof for both attempts; the verdict cites evidence
    proofs = {
        (event["attempt"], proof["node"])
        for event in _of(events, "attempt_reclaimed")
        for proof in event["event"]["proofs"]
    }
    assert proofs == {(1, "n1"), (1, "n2"), (2, "n1"), (2, "n2")}
    (verdict,) = _of(events, "succeeded")
    assert "checkpoint of step 2 verified" in verdict["event"]["evidence"]
    with stack.client() as client:
        assert [n.get("accelerators_used") for n in client.nodes()] == [0, 0]


def test_a_killed_and_resumed_run_ends_with_the_same_bits(stack: Stack, tmp_path: Path):
    _open(tmp_path)
    whole, killed = _train(stack, tmp_path), _train(stack, tmp_path)
    until("a checkpoint of step 20", lambda: _verified_step(stack, killed) >= 20)
    pids = [
        pid
        for event in _of(stack.events(killed), "member_started")
        for pid in event["event"]["pids"]
    ]
    assert len(pids) == 4
    os.kill(pids[-1], signal.SIGKILL)

    assert stack.final(killed) == stack.final(whole) == "succeeded"
    assert stack.job(whole)["attempt"] == 1
    assert stack.job(killed)["attempt"] == 2
    (ended, _) = _of(stack.events(killed), "attempt_ended")
    assert ended["event"]["first"]["signal"] == signal.SIGKILL
    (chosen,) = _of(stack.events(killed), "checkpoint_chosen")
    assert 20 <= chosen["event"]["restore"]["step"] < 60, "it was killed on the way"
    digests = [
        (tmp_path / job / "output" / "final-weights.blake3").read_text()
        for job in (whole, killed)
    ]
    assert digests[0] == digests[1] != ""


def _train(stack: Stack, folder: Path) -> str:
    """Submit a small training of two nodes of two ranks; two fit side by side."""
    settings = "--steps 60 --batch 256 --hidden 64 --checkpoint-every 10"
    return stack.submit(
        CHAR_LM,
        name="char-lm",
        command=f"{sys.executable} train.py {settings} --sleep-seconds 0.05",
        nodes=2,
        accelerators_per_node=2,
        output_directory=f"{folder}/{{job}}/output",
        checkpoint={"directory": f"{folder}/{{job}}/checkpoints"},
        success={"step": 60, "checkpoint": True},
    )


def _verified_step(stack: Stack, job: str) -> int:
    notes = _of(stack.events(job), "checkpoint_verified")
    return max((note["event"]["step"] for note in notes), default=0)


def _of(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


def _tells(events: list[Event], story: list[tuple[str, str, int]]) -> None:
    """Hold that the events tell the story in its order, whatever is between."""
    told = iter((e["publisher"], e["type"], e["attempt"] or 0) for e in events)
    for line in story:
        assert line in told, f"{line} does not follow: {[e['type'] for e in events]}"


def _open(folder: Path) -> Path:
    """Let any user write here: ranks run as whoever submitted."""
    folder.chmod(0o777)
    return folder
