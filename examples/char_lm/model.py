"""The network: a window of characters goes in, odds of the next character come out.

An embedding per character, one hidden layer with dropout, a softmax. All weights lie
in one flat vector, so summing gradients over ranks and saving are one operation each.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large the network is."""

    vocabulary: int
    context: int
    embedding: int
    hidden: int
    dropout: float

    def layout(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every weight, in the order of the flat vector."""
        return {
            "embedding": (self.vocabulary, self.embedding),
            "hidden_weight": (self.context * self.embedding, self.hidden),
            "hidden_bias": (self.hidden,),
            "output_weight": (self.hidden, self.vocabulary),
            "output_bias": (self.vocabulary,),
        }

    def size(self) -> int:
        """Count the weights."""
        return sum(map(prod, self.layout().values()))

    def views(self, flat: Floats) -> dict[str, Floats]:
        """Name the parts of a flat vector; writing to a part writes to the vector."""
        ends = np.cumsum([0, *map(prod, self.layout().values())])
        return {
            name: flat[start:end].reshape(shape)
            for (name, shape), (start, end) in zip(
                self.layout().items(), pairwise(ends), strict=True
            )
        }


def initial_weights(shape: Shape, random: np.random.Generator) -> Floats:
    """Draw weights so that every layer starts with outputs of about size one."""
    flat = np.zeros(shape.size(), np.float32)
    for name, part in shape.views(flat).items():
        if not name.endswith("_bias"):
            fan_in = 1 if name == "embedding" else part.shape[0]
            part[:] = random.standard_normal(part.shape, np.float32) / fan_in**0.5
    return flat


class Network:
    """Weights, and the gradient of the last batch."""

    def __init__(self, shape: Shape, weights: Floats) -> None:
        self.shape = shape
        self.weights = weights
        self._parts = shape.views(weights)

    def odds(self, contexts: Codes) -> Floats:
        """Give the probability of every next character, without dropout."""
        embedded = self._parts["embedding"][contexts].reshape(len(contexts), -1)
        hidden = np.tanh(
            embedded @ self._parts["hidden_weight"] + self._parts["hidden_bias"]
        )
        return _softmax(
            hidden @ self._parts["output_weight"] + self._parts["output_bias"]
        )

    def learn(
        self,
        contexts: Codes,
        targets: Codes,
        random: np.random.Generator,
        gradient: Floats,
    ) -> float:
        """Write the summed gradient of a batch and return its summed cross-entropy."""
        parts, grads = self._parts, self.shape.views(gradient)
        one_hot = np.eye(self.shape.vocabulary, dtype=np.float32)[contexts]
        embedded = (one_hot @ parts["embedding"]).reshape(len(contexts), -1)
        active = np.tanh(embedded @ parts["hidden_weight"] + parts["hidden_bias"])
        kept = _dropout_mask(active.shape, self.shape.dropout, random)
        hidden = active * kept
        odds = _softmax(hidden @ parts["output_weight"] + parts["output_bias"])
        rows = np.arange(len(targets))
        loss = -np.log(np.maximum(odds[rows, targets], 1e-30)).sum()

        d_logits = odds
        d_logits[rows, targets] -= 1
        grads["output_weight"][:] = hidden.T @ d_logits
        grads["output_bias"][:] = d_logits.sum(axis=0)
        d_hidden = (d_logits @ parts["output_weight"].T) * kept * (1 - active**2)
        grads["hidden_weight"][:] = embedded.T @ d_hidden
        grads["hidden_bias"][:] = d_hidden.sum(axis=0)
        d_embedded = d_hidden @ parts["hidden_weight"].T
        grads["embedding"][:] = one_hot.reshape(
            -1, self.shape.vocabulary
        ).T @ d_embedded.reshape(-1, self.shape.embedding)
        return float(loss)

    def continue_text(
        self, start: Codes, length: int, random: np.random.Generator
    ) -> Codes:
        """Append characters drawn from the odds, a little sharpened."""
        text = list(start)
        for _ in range(length):
            window = np.array([text[-self.shape.context :]], np.intp)
            sharp = self.odds(window)[0].astype(np.float64) ** 1.5
            total = sharp.sum()
            if not np.isfinite(total):
                break  # a network of NaNs has nothing to say
            text.append(random.choice(len(sharp), p=sharp / total))
        return np.array(text[len(start) :], np.intp)


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _dropout_mask(
    shape: tuple[int, ...], rate: float, random: np.random.Generator
) -> Floats:
    kept = random.random(shape, np.float32) >= rate
    return kept.astype(np.float32) / np.float32(1 - rate)
