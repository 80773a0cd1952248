"""Turns what arrives into progress, metrics and losses that are no number.

It has no connection and no clock of its own: it is given messages and the time.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from math import isfinite
from typing import Final

from pydantic import ValidationError

from trainmaster.core import subjects
from trainmaster.core.ids import JobKey
from trainmaster.core.messages import MetricSample, OutputChunk
from trainmaster.core.subjects import RankStream
from trainmaster.monitor.board import Board, Word
from trainmaster.monitor.history import Row
from trainmaster.monitor.inbox import Arrival
from trainmaster.monitor.lines import Streams
from trainmaster.monitor.observed import NotFinite
from trainmaster.monitor.rules import Reading, read_line
from trainmaster.monitor.settings import (
    JOBS_MAX,
    METRIC_NAME_CHARS_MAX,
    METRICS_PER_SAMPLE_MAX,
)

_LOSSES: Final = ("loss", "train_loss", "train/loss", "training_loss")


@dataclass(slots=True, kw_only=True)
class Ear:
    """Reads messages; what it understands goes to the board and to `row`.

    `not_finite` is called once per attempt; `malformed` for what nobody can read, with
    whether it came as a metric.
    """

    board: Board
    row: Callable[[Row], None]
    not_finite: Callable[[NotFinite], None]
    malformed: Callable[[bool], None]
    _streams: Streams[RankStream] = field(default_factory=Streams[RankStream])
    _remarked: OrderedDict[JobKey, int] = field(
        default_factory=OrderedDict[JobKey, int]
    )

    def hear(self, arrival: Arrival, at: datetime) -> Iterator[None]:
        """Work a message off in small steps, so that others may come in between."""
        source = subjects.parse_rank_stream(arrival.subject)
        if source is None:
            self.malformed(arrival.metric)
            return
        stream = self._streams.of(source)
        try:
            if arrival.metric:
                sample = MetricSample.from_json(arrival.body)
                stream.declares = True
                self._sample(source, sample, sample.at or at)
            else:
                chunk = OutputChunk.from_json(arrival.body)
                if not stream.declares:
                    yield from self._output(source, stream.lines(chunk), at)
        except ValidationError:
            self.malformed(arrival.metric)

    def _output(
        self, source: RankStream, lines: Iterator[str], at: datetime
    ) -> Iterator[None]:
        for line in lines:
            reading = read_line(line)
            if reading is not None:
                self._read(source, reading, at)
            yield

    def _read(self, source: RankStream, reading: Reading, at: datetime) -> None:
        """Take what a printed line says."""
        word = Word(
            key=source.key,
            attempt=source.attempt,
            rank=source.rank,
            step=reading.step,
            at=at,
            loss=reading.loss,
        )
        self._say(word, reading.text)
        self.row(_row(source, reading.step, "loss", reading.loss, at))

    def _sample(self, source: RankStream, sample: MetricSample, at: datetime) -> None:
        """Take what a metrics file says."""
        named = ((name, sample.values.get(name)) for name in _LOSSES)
        loss = next((value for _, value in named if value is not None), None)
        if loss is not None or sample.step:
            word = Word(
                key=source.key,
                attempt=source.attempt,
                rank=source.rank,
                step=sample.step,
                at=at,
                loss=loss,
                declared=True,
            )
            self._say(word, f"{loss}")
        for name, value in islice(sample.values.items(), METRICS_PER_SAMPLE_MAX):
            if name.isprintable() and len(name) <= METRIC_NAME_CHARS_MAX:
                self.row(_row(source, sample.step, name, value, at))

    def _say(self, word: Word, text: str) -> None:
        self.board.take(word)
        if word.loss is not None and not isfinite(word.loss):
            self._remark(word, text)

    def _remark(self, word: Word, text: str) -> None:
        """State the first loss of an attempt that is no number."""
        if self._remarked.get(word.key, 0) >= word.attempt:
            return
        self._remarked[word.key] = word.attempt
        if len(self._remarked) > JOBS_MAX:
            self._remarked.popitem(last=False)
        self.not_finite(
            NotFinite(
                key=word.key,
                attempt=word.attempt,
                rank=word.rank,
                step=word.step,
                text=text,
            )
        )


def _row(source: RankStream, step: int, name: str, value: float, at: datetime) -> Row:
    return Row(source.key.job, source.attempt, source.rank, step, name, value, at)
