"""What a benchmark is: one problem, posed to netloop, to hand-written JAX, and to other systems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from onnx import ModelProto

import netloop as trt

Arrays = dict[str, np.ndarray]
Call = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What a system makes of a problem: outputs from inputs, both by name, in arrays of its own."""

JaxFunction = Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]
"""Outputs from weights and inputs."""


@dataclass(frozen=True)
class Jax:
    """A solution in JAX.

    Attributes:
        function: outputs from weights and inputs.
        weights: its first argument, prepared once; any tree of arrays.
    """

    function: JaxFunction
    weights: Any = ()


class Workload(ABC):
    """One problem. A subclass says how each system solves it; what it does not say is not measured.

    Attributes:
        floors: the most that netloop may take, as a multiple of another variant's time: ``expert``, a variant by its
            name, or ``peer`` for the best of the other systems but numba, which stands for the limit in C.
        tolerance: how far results may differ, relative to the largest number.
        beyond: the most milliseconds that netloop may take beyond a variant; ``""`` stands for no time at all.
        feeds_back: whether outputs of a call are inputs of the next.
        passes: the passes of netloop that this workload is for.
    """

    floors: ClassVar[Mapping[str, float]] = {}
    beyond: ClassVar[Mapping[str, float]] = {}
    tolerance: ClassVar[float] = 1e-4
    feeds_back: ClassVar[bool] = False
    passes: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The number of the workload, what it is, and its size."""

    @abstractmethod
    def inputs(self) -> Arrays:
        """The inputs of a call, the same each time."""

    def network(self) -> trt.INetworkDefinition | None:
        """A network written plainly, as a user of TensorRT would."""
        return None

    def parts(self) -> Mapping[str, Callable[[], Call]]:
        """What netloop does beside running networks, by name."""
        return {}

    def expert(self) -> Jax | None:
        """JAX by hand, with all that is known to make it fast."""
        return None

    def idiomatic(self) -> Jax | None:
        """JAX as its users write it."""
        return None

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        """ONNX models for onnxruntime and OpenVINO, by what is special about each: ``op``, ``loop``."""
        return {}

    def torch(self, torch: Any) -> Call | None:
        """PyTorch's, given its module; in and out are tensors."""
        return None

    def numba(self, numba: Any) -> Call | None:
        """A compiled loop over numpy's arrays, given the module of numba."""
        return None

    def drive(self, call: Call, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Solve the problem once; one call, unless a workload says otherwise."""
        return call(inputs)


def numbers(seed: int) -> np.random.Generator:
    """A source of numbers that are the same in each process."""
    return np.random.default_rng(seed)


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Normally distributed float32 numbers."""
    return (numbers(seed).standard_normal(shape) * scale).astype(np.float32)
