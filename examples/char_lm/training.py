"""Owns one data-parallel run: its state, one step, its way into a checkpoint and back.

A step depends on the settings and on the state alone, and a checkpoint holds the whole
state. That is why a run that was killed and resumed ends with the same bits as one that
never was.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from blake3 import blake3
from checkpoint import Checkpoint
from collective import Collective
from data import Codes, Corpus, WindowOrder, windows_at
from errors import CannotGoOnError
from model import Floats, Network, Shape, initial_weights
from optimizer import Adam, Schedule, clip


class DisagreementError(CannotGoOnError):
    """The ranks are about to train different things."""

    def __init__(self, *, what: str, values: list[Any]) -> None:
        """Say what each rank has."""
        each = ", ".join(f"rank {rank}: {value}" for rank, value in enumerate(values))
        super().__init__(
            f"the ranks disagree on the {what} ({each}); no step was made, "
            "start all of them with the same arguments, text and TM_RESUME_FROM"
        )


class UnfitError(CannotGoOnError):
    """The checkpoint belongs to another training."""

    def __init__(self, *, what: str, saved: Any, ours: Any) -> None:
        """Say what differs."""
        super().__init__(
            f"the checkpoint does not fit: its {what} is {saved}, here it is {ours}; "
            "use the arguments and the text it was saved with, or start fresh"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that decides the result, apart from the text and the ranks."""

    steps: int
    batch: int
    seed: int
    context: int
    embedding: int
    hidden: int
    dropout: float
    learning_rate: float
    warmup_steps: int
    clip_norm: float

    def shape(self, corpus: Corpus) -> Shape:
        """Size the network for this text."""
        return Shape(
            vocabulary=len(corpus.vocabulary),
            context=self.context,
            embedding=self.embedding,
            hidden=self.hidden,
            dropout=self.dropout,
        )

    def schedule(self) -> Schedule:
        """Give the learning rate of every step."""
        return Schedule(
            peak=self.learning_rate, warmup_steps=self.warmup_steps, steps=self.steps
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What somebody asked of a rank from outside."""

    stop: bool
    save: bool


class Run:
    """The state of one rank; everything but the random numbers is equal on all."""

    def __init__(
        self, settings: Settings, corpus: Corpus, collective: Collective
    ) -> None:
        """Start fresh at step zero."""
        shape = settings.shape(corpus)
        seeds = np.random.default_rng([settings.seed, 0])
        self.settings = settings
        self.corpus = corpus
        self.step = 0
        self.network = Network(shape, initial_weights(shape, seeds))
        self.adam = Adam(*np.zeros((2, shape.size()), np.float32))
        self.order = _order(settings, corpus, {"epoch": 0, "cursor": 0})
        self.random = _rank_random(settings, collective.rank, 0)
        self._collective = collective

    def restore(self, saved: Checkpoint) -> None:
        """Continue where a checkpoint ends."""
        _check_fits(self, saved)
        rank, world_size = self._collective.rank, self._collective.world_size
        self.step = saved.step
        self.network.weights[:] = saved.vectors["weights"]
        self.adam.first[:] = saved.vectors["adam-first"]
        self.adam.second[:] = saved.vectors["adam-second"]
        self.order = _order(self.settings, self.corpus, saved.state["data"])
        if world_size == saved.world_size:
            self.random.bit_generator.state = saved.state["random"][rank]
        else:  # other ranks than before: a new stream each, other bits from here on
            self.random = _rank_random(self.settings, rank, saved.step)

    def agree(self) -> None:
        """Refuse to start when the ranks did not load the same."""
        mine = {
            "resume step": self.step,
            "weights": self.weights_digest(),
            "text": self.corpus.digest,
            "settings": json.dumps(asdict(self.settings)),
        }
        everyone = self._collective.all_gather(mine)
        for what in mine:
            values = [theirs[what] for theirs in everyone]
            if len(set(values)) > 1:
                raise DisagreementError(what=what, values=values)

    def advance(self, requests: Requests) -> tuple[float, Requests]:
        """Make one step; return the loss of all ranks and what any of them was asked.

        The requests travel with the gradient, so that all ranks stop or save after the
        same step, whichever of them was asked.
        """
        settings = self.settings
        starts = self.order.next_batch(settings.batch)
        mine = np.array_split(starts, self._collective.world_size)
        contexts, targets = windows_at(
            self.corpus, mine[self._collective.rank], settings.context
        )
        message = np.zeros(self.network.weights.size + 3, np.float32)
        gradient, extra = message[:-3], message[-3:]
        loss = self.network.learn(contexts, targets, self.random, gradient)
        extra[:] = loss, requests.stop, requests.save
        self._collective.all_reduce_sum(message)
        self._move(gradient)
        loss, stop, save = map(float, extra)
        return loss / settings.batch, Requests(stop=stop > 0, save=save > 0)

    def snapshot(self) -> Checkpoint:
        """Collect what a checkpoint holds; all ranks must call this together."""
        randoms = self._collective.all_gather(self.random.bit_generator.state)
        return Checkpoint(
            step=self.step,
            world_size=self._collective.world_size,
            state={
                "settings": asdict(self.settings),
                "schedule": {
                    "step": self.step,
                    "next_rate": self.settings.schedule().rate(self.step + 1),
                },
                "data": {
                    "epoch": self.order.epoch,
                    "cursor": self.order.cursor,
                    "text_blake3": self.corpus.digest,
                },
                "random": randoms,
                "vocabulary": self.corpus.vocabulary,
                "layout": self.network.shape.layout(),
            },
            vectors={
                "weights": self.network.weights,
                "adam-first": self.adam.first,
                "adam-second": self.adam.second,
            },
        )

    def weights_digest(self) -> str:
        """Name the weights by their bits."""
        return blake3(self.network.weights.tobytes()).hexdigest()

    def sample(self, length: int) -> str:
        """Let the network write; takes nothing from the random numbers of the run."""
        random = np.random.default_rng([self.settings.seed, 1])
        start: Codes = self.corpus.codes[: self.settings.context]
        return self.corpus.decode(self.network.continue_text(start, length, random))

    def _move(self, gradient: Floats) -> None:
        gradient /= np.float32(self.settings.batch)
        clip(gradient, self.settings.clip_norm)
        self.step += 1
        rate = self.settings.schedule().rate(self.step)
        self.adam.update(self.network.weights, gradient, self.step, rate)


def _order(settings: Settings, corpus: Corpus, at: Mapping[str, Any]) -> WindowOrder:
    return WindowOrder(
        windows=len(corpus.codes) - settings.context,
        seed=settings.seed,
        epoch=at["epoch"],
        cursor=at["cursor"],
    )


def _rank_random(settings: Settings, rank: int, step: int) -> np.random.Generator:
    return np.random.default_rng([settings.seed, 2, rank, step])


def _check_fits(run: Run, saved: Checkpoint) -> None:
    ours = {
        "text": run.corpus.digest,
        "vocabulary": run.corpus.vocabulary,
        "layout": {k: list(v) for k, v in run.network.shape.layout().items()},
    }
    theirs = {
        "text": saved.state["data"]["text_blake3"],
        "vocabulary": saved.state["vocabulary"],
        "layout": saved.state["layout"],
    }
    for what, value in ours.items():
        if theirs[what] != value:
            raise UnfitError(what=what, saved=theirs[what], ours=value)
