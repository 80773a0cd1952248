"""Whose checkpoint proves what, on the whole stack, with real files."""

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SAVE = Path(__file__).parents[1] / "chaos" / "save.py"
TRAIN = ["python3", str(SAVE), "go-on"]


def submit(stack: Stack, folder: Path, command: list[str], **changes: Any) -> str:
    """Submit a job that is to reach step 2 in a directory that others use too."""
    folder.chmod(0o777)  # ranks run as whoever submitted
    checkpoint = {"directory": str(folder / "checkpoints"), **changes}
    return stack.submit(
        folder,
        name="shared",
        command=command,
        checkpoint=checkpoint,
        success={"step": 2},
    )


def test_an_older_run_in_the_same_directory_proves_nothing(
    stack: Stack, tmp_path: Path
):
    assert stack.final(submit(stack, tmp_path, TRAIN)) == "succeeded"
    idle = submit(stack, tmp_path, ["true"])
    assert stack.final(idle) == "failed"
    assert "step 2 was there before the job" in stack.job(idle)["reason"]
    assert stack.saw(idle, "checkpoints_scanned")


def test_a_training_that_repeats_itself_succeeds_again(stack: Stack, tmp_path: Path):
    for _ in range(2):
        assert stack.final(submit(stack, tmp_path, TRAIN)) == "succeeded"


def test_going_on_from_the_own_directory_on_purpose_counts(
    stack: Stack, tmp_path: Path
):
    assert stack.final(submit(stack, tmp_path, TRAIN)) == "succeeded"
    again = str(tmp_path / "checkpoints")
    job = submit(stack, tmp_path, ["true"], resume_from=again)
    assert stack.final(job) == "succeeded"


def test_step_and_nodes_are_there_after_the_stack_was_restarted(
    stack: Stack, tmp_path: Path
):
    tmp_path.chmod(0o777)
    said = "echo step 7 loss 1.5; sleep 1"
    job = stack.submit(tmp_path, name="told", command=["/bin/sh", "-c", said])
    assert stack.final(job) == "succeeded"
    stack.saw(job, "archived")
    assert (stack.job(job)["step"], stack.job(job)["loss"]) == (7, 1.5)
    with stack.client() as client:
        node = client.nodes()[0]
        assert client.change_node("drain", node["pool"], node["node"])["changed"]
    stack.down()
    stack.up()
    assert (stack.job(job)["step"], stack.job(job)["loss"]) == (7, 1.5)
    with stack.client() as client:
        states = {row["node"]: row["state"] for row in client.nodes()}
        assert states[node["node"]] == "drained"
        assert client.change_node("undrain", node["pool"], node["node"])["changed"]
