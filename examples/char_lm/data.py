"""Decides which windows of the text are learned at which step."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from blake3 import blake3
from errors import CannotGoOnError
from numpy.typing import NDArray

Codes = NDArray[np.intp]


class TextError(CannotGoOnError):
    """The text cannot be trained on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A text as numbers."""

    codes: Codes
    vocabulary: str
    digest: str

    def encode(self, text: str) -> Codes:
        """Turn characters of the vocabulary into numbers."""
        return np.array([self.vocabulary.index(c) for c in text], np.intp)

    def decode(self, codes: Codes) -> str:
        """Turn numbers back into characters."""
        return "".join(self.vocabulary[code] for code in codes)


def load_corpus(folder: Path) -> Corpus:
    """Read all `*.txt` of a folder in the order of their names."""
    text = "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.txt")))
    if not text:
        raise TextError(f"{folder} has no text; --text names a folder with *.txt files")
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    known, codes = np.unique(points, return_inverse=True)
    return Corpus(
        codes=codes.astype(np.intp),
        vocabulary="".join(map(chr, known)),
        digest=blake3(text.encode()).hexdigest(),
    )


class WindowOrder:
    """Shuffles the starts of all windows anew each epoch, the same on every rank.

    The order of an epoch follows from (seed, epoch); where we are in it is two numbers,
    which is all a checkpoint has to hold.
    """

    def __init__(self, *, windows: int, seed: int, epoch: int, cursor: int) -> None:
        self.epoch = epoch
        self.cursor = cursor
        self._windows = windows
        self._seed = seed
        self._order = self._shuffled()

    def next_batch(self, size: int) -> Codes:
        """Take the next windows; an epoch's rest that fills no batch is left out."""
        if size > self._windows:
            raise TextError(
                f"a batch of {size} needs more than the {self._windows} windows of "
                "the text; lower --batch"
            )
        if self.cursor + size > self._windows:
            self.epoch, self.cursor = self.epoch + 1, 0
            self._order = self._shuffled()
        batch = self._order[self.cursor : self.cursor + size]
        self.cursor += size
        return batch

    def _shuffled(self) -> Codes:
        random = np.random.default_rng([self._seed, self.epoch])
        return random.permutation(self._windows)


def windows_at(corpus: Corpus, starts: Codes, context: int) -> tuple[Codes, Codes]:
    """Cut out contexts and the character that follows each."""
    contexts = corpus.codes[starts[:, None] + np.arange(context)]
    return contexts, corpus.codes[starts + context]
