"""Decides how far each step moves: warm-up and cosine schedule, clipping, Adam."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The learning rate as a function of the step alone."""

    peak: float
    warmup_steps: int
    steps: int
    floor_ratio: float = 0.1

    def rate(self, step: int) -> float:
        """Rise in a line, then fall along half a cosine to a tenth."""
        if step <= self.warmup_steps:
            return self.peak * step / self.warmup_steps
        done = (step - self.warmup_steps) / max(self.steps - self.warmup_steps, 1)
        fall = (1 + math.cos(math.pi * min(done, 1.0))) / 2
        return self.peak * (self.floor_ratio + (1 - self.floor_ratio) * fall)


def clip(gradient: Floats, norm_max: float) -> None:
    """Shorten a gradient that is too long; one that is not finite stays as it is."""
    norm = float(np.sqrt(np.dot(gradient, gradient)))
    if norm > norm_max and math.isfinite(norm):
        gradient *= np.float32(norm_max / norm)


class Adam:
    """First and second moments of the gradient; part of every checkpoint."""

    BETA1, BETA2, EPSILON = 0.9, 0.99, 1e-8

    def __init__(self, first: Floats, second: Floats) -> None:
        self.first = first
        self.second = second

    def update(self, weights: Floats, gradient: Floats, step: int, rate: float) -> None:
        """Move the weights in place; the first step has the number one."""
        self.first += np.float32(1 - self.BETA1) * (gradient - self.first)
        self.second += np.float32(1 - self.BETA2) * (gradient**2 - self.second)
        first = self.first / np.float32(1 - self.BETA1**step)
        second = self.second / np.float32(1 - self.BETA2**step)
        weights -= np.float32(rate) * first / (np.sqrt(second) + self.EPSILON)
