"""Trains a small character model on all ranks and survives being killed.

One process per rank. Ends with 0 when all steps are done, with 1 when it cannot go on
(the last line on stderr says why), with 143 when SIGTERM asked it to stop: after the
current step and a last checkpoint. SIGUSR1 asks for a checkpoint now.
"""

import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

# Before numpy is loaded: ranks share the cores, and one thread adds in one order.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import checkpoint
from collective import Collective
from data import load_corpus
from errors import CannotGoOnError
from options import Habits, Places, parse_arguments
from rendezvous import Rendezvous, connect
from report import MetricsFile, StepReport, step_line
from training import Requests, Run, Settings

EXIT_FAILED = 1
EXIT_STOPPED = 128 + signal.SIGTERM
SAMPLE_CHARACTERS = 300


@dataclass(slots=True, kw_only=True)
class Mailbox:
    """What signals asked for since the last step."""

    stop: bool = False
    save: bool = False

    def listen(self) -> None:
        """Catch SIGTERM (save and end) and SIGUSR1 (save and go on)."""
        signal.signal(signal.SIGTERM, self._receive)
        signal.signal(signal.SIGUSR1, self._receive)

    def take(self) -> Requests:
        """Hand over what was asked."""
        requests = Requests(stop=self.stop, save=self.save)
        self.save = False
        return requests

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self.stop = True
        else:
            self.save = True


def main() -> int:
    """Train, or say why that is not possible."""
    settings, habits = parse_arguments()
    try:
        rendezvous = Rendezvous.from_environment(
            connect_timeout_seconds=habits.connect_timeout_seconds,
            silence_timeout_seconds=habits.silence_timeout_seconds,
        )
        collective = connect(rendezvous)
        _say(
            f"rank {rendezvous.rank} (local rank {rendezvous.local_rank}) of "
            f"{rendezvous.world_size} is connected"
        )
        code = Training(settings, habits, collective).run()
    except CannotGoOnError as error:
        print(f"char_lm cannot go on: {error}", file=sys.stderr, flush=True)
        return EXIT_FAILED
    collective.close()
    return code


class Training:
    """Runs one rank to the last step or to a request to stop, saving on the way."""

    def __init__(
        self, settings: Settings, habits: Habits, collective: Collective
    ) -> None:
        self._settings = settings
        self._habits = habits
        self._collective = collective
        self._places = Places.from_environment()
        self._mailbox = Mailbox()
        self._speaks = collective.rank == 0
        metrics = self._places.metrics if self._speaks else None
        self._metrics = MetricsFile(metrics) if metrics else None

    def run(self) -> int:
        """Return the exit code."""
        self._mailbox.listen()
        run = self._begin()
        first = run.step + 1
        while run.step < self._settings.steps:
            report, requests = self._step(run)
            last = requests.stop or run.step == self._settings.steps
            self._tell(report, always=last or run.step == first)
            due = run.step % self._habits.checkpoint_every == 0
            if due or last or requests.save:
                self._save(run)
            if requests.stop:
                self._say(f"stopped by SIGTERM after step {run.step}")
                return EXIT_STOPPED
        self._finish(run)
        return 0

    def _begin(self) -> Run:
        corpus = load_corpus(self._habits.text)
        run = Run(self._settings, corpus, self._collective)
        resume_from = self._places.resume_from
        if resume_from is not None:
            saved = checkpoint.load(resume_from)
            run.restore(saved)
            self._tell_resumed(resume_from, saved)
        run.agree()
        self._say(
            f"{run.network.weights.size:,} weights, {len(corpus.codes):,} characters, "
            f"{len(corpus.vocabulary)} different"
        )
        if self._places.checkpoints is None:
            self._say("TM_CHECKPOINT_DIR is not set: nothing is saved")
        return run

    def _step(self, run: Run) -> tuple[StepReport, Requests]:
        begun = time.perf_counter()
        time.sleep(self._habits.sleep_seconds)
        loss, requests = run.advance(self._mailbox.take())
        report = StepReport(
            step=run.step,
            loss=loss,
            rate=self._settings.schedule().rate(run.step),
            tokens=self._settings.batch,
            seconds=time.perf_counter() - begun,
        )
        return report, requests

    def _tell(self, report: StepReport, *, always: bool) -> None:
        if self._metrics is not None:
            self._metrics.append(report)
        if always or report.step % self._habits.log_every == 0:
            self._say(step_line(report))

    def _save(self, run: Run) -> None:
        if self._places.checkpoints is None:
            return
        snapshot = run.snapshot()
        if self._speaks:
            folder = checkpoint.save(self._places.checkpoints, snapshot)
            self._say(f"saved {folder}")
        # No rank may end well before the checkpoint is on disk.
        self._collective.barrier()

    def _finish(self, run: Run) -> None:
        digest = run.weights_digest()
        if self._speaks and self._places.output is not None:
            self._places.output.mkdir(parents=True, exist_ok=True)
            checkpoint.write_durably(
                self._places.output / "final-weights.blake3", f"{digest}\n".encode()
            )
        if self._speaks:
            self._say(f"sample:\n{run.sample(SAMPLE_CHARACTERS)}\n")
        self._say(f"final weights blake3 {digest}")
        self._collective.barrier()

    def _tell_resumed(self, folder: Path, saved: checkpoint.Checkpoint) -> None:
        self._say(f"resumed from {folder} at step {saved.step}")
        then, now = saved.state["settings"], asdict(self._settings)
        changed = [f"{k} {then.get(k)} -> {v}" for k, v in now.items() if then[k] != v]
        if saved.world_size != self._collective.world_size:
            changed.append(f"ranks {saved.world_size} -> {self._collective.world_size}")
        if changed:
            self._say(f"changed since it was saved: {', '.join(changed)}")

    def _say(self, text: str) -> None:
        if self._speaks:
            _say(text)


def _say(text: str) -> None:
    # At once: whoever follows the run sees it as it happens.
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
