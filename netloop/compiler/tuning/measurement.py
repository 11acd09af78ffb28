"""How two engines are compared by the time of their calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import ceil
from typing import Any

import jax
import numpy as np

from netloop.compiler.execution.engines import Tunable
from netloop.compiler.passes.matmul_partitioning import cores

LEAST_GAIN = 0.03
"""The part of the time that a form must save to be chosen."""
ROUNDS = 7
"""The number of rounds, each with weights and inputs at other places of memory. A place alone has decided about a
factor of two, when weights shared the sets of a cache."""
PAIRS = 3
"""The most samples of each engine in a round."""
LIMIT = 2.0
"""The seconds of a comparison after which a round has one sample of each engine."""
HOPELESS = 3
"""The rounds after which a candidate that took longer in each of them is measured no further."""
SHORTEST = 1e-3
"""The seconds of a sample; of faster engines it is several calls."""


@dataclass(frozen=True)
class TimedPair:
    """The times of a call of two engines.

    Attributes:
        seconds: the median of the candidate.
        before: the median of the engine that it is compared with.
        ratios: for each round, the shortest time of the candidate divided by that of the other.
    """

    seconds: float
    before: float
    ratios: list[float]

    @staticmethod
    def of(candidate: list[list[float]], incumbent: list[list[float]]) -> TimedPair:
        """Compare the samples of each round; what else a machine does makes samples longer, and never shorter."""
        ratios = [min(one) / min(other) for one, other in zip(candidate, incumbent, strict=True)]
        seconds, before = (float(np.median([*chain.from_iterable(entry)])) for entry in (candidate, incumbent))
        return TimedPair(seconds, before, ratios)

    @property
    def is_faster(self) -> bool:
        """Whether the candidate saves time in half of the rounds, and takes longer in at most a quarter of them."""
        slower = sum(ratio >= 1 for ratio in self.ratios)
        return bool(np.median(self.ratios) < 1 - LEAST_GAIN) and slower <= len(self.ratios) // 4


@dataclass(frozen=True)
class Stopwatch:
    """Compares engines on some inputs.

    Attributes:
        inputs: the inputs of a call.
        calls: the number of calls in a sample, where one is long enough.
        clock: the clock, in seconds: of the CPU where a process has one core, as waiting for it then does not count.
    """

    inputs: Mapping[str, Any]
    calls: int = 1
    clock: Callable[[], float] = field(default_factory=lambda: _clock())

    def __call__(self, candidate: Tunable, incumbent: Tunable) -> TimedPair:
        """Time two engines in turns; errors of their calls are raised."""
        samples: tuple[list[list[float]], list[list[float]]] = [], []
        pair = candidate, incumbent
        for turn in range(ROUNDS):
            if turn == HOPELESS and min(TimedPair.of(*samples).ratios) > 1:
                break
            # the copies of both are made before either is measured, so that each takes what memory the other leaves
            values = [self._moved(executable) for executable in pair]
            longest = max(self._seconds(*entry, 1) for entry in zip(pair, values, strict=True))
            calls = self.calls * max(1, ceil(SHORTEST / max(longest, 1e-7)))
            samples[0].append([])
            samples[1].append([])
            for order in self._orders(turn, longest * calls):
                for which in order:
                    samples[which][-1].append(self._seconds(pair[which], values[which], calls))
        return TimedPair.of(*samples)

    def _orders(self, turn: int, longest: float) -> Iterator[tuple[int, int]]:
        """The order of each pair of samples: who comes second finds the caches in another state."""
        fitting = int(LIMIT / ROUNDS / max(2 * longest, 1e-9))
        return ((0, 1) if (turn + index) % 2 else (1, 0) for index in range(min(PAIRS, max(1, fitting))))

    def _moved(self, engine: Tunable) -> dict[str, Any]:
        """Copies of the inputs, for an engine whose weights are copied too; it has been called once since."""
        engine.move_weights()
        results = {
            name: np.array(tensor) if isinstance(tensor, np.ndarray) else tensor for name, tensor in self.inputs.items()
        }
        engine.run_to_end(results)
        return results

    def _seconds(self, engine: Tunable, given: Mapping[str, Any], calls: int) -> float:
        began = self.clock()
        for _ in range(calls):
            engine.run_to_end(given)
        return (self.clock() - began) / calls


def _clock() -> Callable[[], float]:
    return time.process_time if cores() == 1 and jax.default_backend() == "cpu" else time.perf_counter
