"""The example really trains, dies and comes back: every test starts real ranks."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

TRAIN = Path(__file__).parents[3] / "examples/char_lm/train.py"
SMALL = ("--steps=24", "--batch=96", "--hidden=24", "--log-every=1")
# Slow enough to be interrupted long before its end.
SLOW = (*SMALL, "--checkpoint-every=3", "--sleep-seconds=0.06")
LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclass(kw_only=True)
class Ranks:
    """The processes of one run."""

    processes: list[subprocess.Popen[str]]
    printed: list[str] = field(default_factory=list)

    def wait_for(self, text: str) -> None:
        """Read what rank 0 prints up to a line that holds the text."""
        stdout = self.processes[0].stdout
        assert stdout is not None
        for line in stdout:
            self.printed.append(line)
            if text in line:
                return
        pytest.fail(f"rank 0 ended without {text!r}: {self.printed}")

    def codes(self, *, within_seconds: float = 30) -> list[int]:
        """Wait for the end of all ranks."""
        deadline = time.monotonic() + within_seconds
        return [p.wait(deadline - time.monotonic()) for p in self.processes]

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def errors(self, rank: int) -> str:
        stderr = self.processes[rank].stderr
        assert stderr is not None
        return stderr.read()

    def digest(self) -> str:
        """Read to the end of a successful run and return the name of its weights."""
        self.wait_for("final weights blake3")
        assert set(self.codes()) == {0}, self.errors(0)
        return self.printed[-1].split()[-1]


@contextlib.contextmanager
def ranks(
    folder: Path,
    world_size: int,
    arguments: tuple[str, ...] = SMALL,
    env: dict[int, dict[str, str]] | None = None,
    through: tuple[str, ...] = (),
) -> Generator[Ranks]:
    """Start all ranks; `env` adds to the environment of single ones."""
    places = {
        "WORLD_SIZE": str(world_size),
        "MASTER_PORT": str(free_port()),
        "TM_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "TM_METRICS_FILE": str(folder / "metrics.jsonl"),
        "TM_OUTPUT_DIR": str(folder),
    }
    processes = [
        subprocess.Popen(
            [*through, sys.executable, str(TRAIN), *arguments],
            env=os.environ | places | {"RANK": str(rank)} | (env or {}).get(rank, {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world_size)
    ]
    running = Ranks(processes=processes)
    try:
        yield running
    finally:
        running.kill()
        for process in processes:
            process.communicate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def newest(folder: Path) -> Path:
    return max((folder / "checkpoints").glob("step-*/manifest.json")).parent


def resume(path: Path, world_size: int) -> dict[int, dict[str, str]]:
    return {rank: {"TM_RESUME_FROM": str(path)} for rank in range(world_size)}


def step_metrics(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line, parse_constant=pytest.fail) for line in lines]


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A run that nobody disturbed."""

    folder: Path
    digest: str


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Whole]:
    """Runs by their number of ranks."""
    runs: dict[int, Whole] = {}
    for world_size in (1, 2):
        folder = tmp_path_factory.mktemp("whole")
        with ranks(folder, world_size, (*SMALL, "--checkpoint-every=12")) as run:
            runs[world_size] = Whole(folder=folder, digest=run.digest())
    return runs


def test_the_loss_falls_and_is_reported(whole: dict[int, Whole]):
    folder, digest = whole[1].folder, whole[1].digest
    metrics = step_metrics(folder)
    losses = [float(str(m["loss"])) for m in metrics]
    assert [m["step"] for m in metrics] == list(range(1, 25))
    assert losses[0] > 4
    assert losses[-1] < 3.5
    assert {*metrics[0]} == {"v", "t", "rank", "step", "phase", "loss", "tokens_per_s"}
    assert (folder / "final-weights.blake3").read_text() == f"{digest}\n"


def test_a_loss_that_is_no_number_is_reported_as_a_word(tmp_path: Path):
    with ranks(tmp_path, 1, (*SMALL, "--steps=2", "--learning-rate=inf")) as run:
        run.digest()
    assert step_metrics(tmp_path)[-1]["loss"] == "nan"


@pytest.mark.parametrize("world_size", [1, 2])
def test_a_killed_and_resumed_run_ends_with_the_same_bits(
    tmp_path: Path, whole: dict[int, Whole], world_size: int
):
    with ranks(tmp_path, world_size, SLOW) as run:
        run.wait_for("step 5 ")
        run.kill()
    found = newest(tmp_path)
    with ranks(tmp_path, world_size, SMALL, resume(found, world_size)) as run:
        run.wait_for(f"step {int(found.name[-6:]) + 1} ")
        assert not [line for line in run.printed if line.startswith("step")][:-1]
        assert run.digest() == whole[world_size].digest


def test_sigterm_to_one_rank_saves_and_ends_all(
    tmp_path: Path, whole: dict[int, Whole]
):
    with ranks(tmp_path, 2, (*SLOW, "--checkpoint-every=100")) as run:
        run.wait_for("step 3 ")
        run.processes[1].send_signal(signal.SIGTERM)
        run.wait_for("stopped by SIGTERM")
        assert run.codes() == [143, 143]
    with ranks(tmp_path, 2, SMALL, resume(newest(tmp_path), 2)) as run:
        assert run.digest() == whole[2].digest


def test_sigusr1_to_one_rank_saves_and_goes_on(tmp_path: Path):
    with ranks(tmp_path, 2, (*SLOW, "--checkpoint-every=100")) as run:
        run.wait_for("step 3 ")
        run.processes[1].send_signal(signal.SIGUSR1)
        run.wait_for("saved ")
        assert newest(tmp_path).name < "step-000024"
        run.wait_for("step ")


def test_another_number_of_ranks_may_continue(tmp_path: Path, whole: dict[int, Whole]):
    halfway = whole[1].folder / "checkpoints/step-000012"
    with ranks(tmp_path, 2, SMALL, resume(halfway, 2)) as run:
        run.wait_for("ranks 1 -> 2")
        run.wait_for("step 13 ")
        assert run.digest()


def test_a_torn_save_leaves_no_manifest_and_is_refused(tmp_path: Path):
    every_five = (*SMALL, "--checkpoint-every=5")
    limited = (sys.executable, "-c", LIMITED)  # state.json fits, weights.npy does not
    with ranks(tmp_path, 1, every_five, through=limited) as run:
        assert run.codes() == [1]
        assert "step-000005: not saved" in run.errors(0)
    torn = tmp_path / "checkpoints/step-000005"
    assert {path.name for path in torn.iterdir()} == {"state.json", ".weights.npy.tmp"}

    with ranks(tmp_path, 1, SMALL, resume(torn, 1)) as run:
        assert run.codes() == [1]
        assert "its save never finished" in run.errors(0)


def test_a_damaged_file_is_refused_by_name(tmp_path: Path, whole: dict[int, Whole]):
    damaged = shutil.copytree(newest(whole[1].folder), tmp_path / "damaged")
    weights = damaged / "weights.npy"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with ranks(tmp_path, 1, SMALL, resume(damaged, 1)) as run:
        assert run.codes() == [1]
        assert "weights.npy is not what was saved" in run.errors(0)


def test_ranks_that_resume_at_different_steps_refuse_to_start(
    tmp_path: Path, whole: dict[int, Whole]
):
    only_rank_one = {1: resume(newest(whole[2].folder), 2)[1]}
    with ranks(tmp_path, 2, SMALL, only_rank_one) as run:
        assert run.codes() == [1, 1]
        assert "disagree on the resume step (rank 0: 0, rank 1: 24)" in run.errors(0)


def test_a_lost_rank_ends_the_others_quickly(tmp_path: Path):
    with ranks(tmp_path, 3, SLOW) as run:
        run.wait_for("step 3 ")
        run.processes[1].kill()
        assert run.codes(within_seconds=3) == [1, -9, 1]
        assert "rank 0 lost rank 1" in run.errors(0)
        assert "rank 2 lost rank 0" in run.errors(2)


def test_losing_rank_zero_ends_the_others_quickly(tmp_path: Path):
    with ranks(tmp_path, 2, SLOW) as run:
        run.wait_for("step 3 ")
        run.processes[0].kill()
        assert run.codes(within_seconds=3) == [-9, 1]
        assert "rank 1 lost rank 0" in run.errors(1)


def test_a_frozen_rank_ends_the_others_after_the_silence_allowed(tmp_path: Path):
    with ranks(tmp_path, 2, (*SLOW, "--silence-timeout-seconds=0.5")) as run:
        run.wait_for("step 3 ")
        run.processes[1].send_signal(signal.SIGSTOP)
        assert run.processes[0].wait(5) == 1
        assert "lost rank 1: it is silent" in run.errors(0)


@pytest.mark.parametrize(
    ("rank", "why"), [("0", "ranks [1] did not"), ("1", "refused")]
)
def test_a_rank_alone_gives_up_at_the_deadline(tmp_path: Path, rank: str, why: str):
    alone = {0: {"RANK": rank, "WORLD_SIZE": "2"}}
    with ranks(tmp_path, 1, ("--connect-timeout-seconds=0.3",), alone) as run:
        assert run.codes(within_seconds=5) == [1]
        assert why in run.errors(0)
