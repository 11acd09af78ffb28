"""The base class of workloads: one problem for netloop, hand-written JAX and other systems."""

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
"""A solution: outputs from inputs, both by name, in arrays of the system."""

JaxFunction = Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]
"""Outputs from weights and inputs."""


@dataclass(frozen=True)
class Jax:
    """A solution in JAX.

    Attributes:
        function: outputs from weights and inputs.
        weights: its first argument, a pytree of arrays that is prepared once.
    """

    function: JaxFunction
    weights: Any = ()


class Workload(ABC):
    """One problem. A subclass defines how each system solves it; undefined solutions are not measured.

    Attributes:
        floors: the largest allowed time of netloop as a multiple of another variant's: ``expert``, a variant by name,
            or ``peer`` for the best of the other systems except numba, which stands for the limit in C.
        tolerance: the largest allowed difference of results, relative to the largest number.
        beyond: the largest allowed number of milliseconds beyond a variant; ``""`` stands for no time at all.
        feeds_back: whether outputs of a call are inputs of the next.
        first_calls: the calls of each variant that are not timed, after which none compiles anything any more.
        passes: the passes whose effect this workload measures.
    """

    floors: ClassVar[Mapping[str, float]] = {}
    beyond: ClassVar[Mapping[str, float]] = {}
    tolerance: ClassVar[float] = 1e-4
    feeds_back: ClassVar[bool] = False
    first_calls: ClassVar[int] = 1
    passes: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The number, subject and size of the workload."""

    @property
    def missing(self) -> str:
        """What is to be done before it can run; empty if nothing is."""
        return ""

    @abstractmethod
    def inputs(self) -> Arrays:
        """The inputs of a call; the same each time."""

    def network(self) -> trt.INetworkDefinition | None:
        """A network in the plain form in which a user of TensorRT writes it."""
        return None

    def parts(self) -> Mapping[str, Callable[[], Call]]:
        """Other work of netloop than running the network, by name."""
        return {}

    def expert(self) -> Jax | None:
        """Hand-written JAX with every known optimization."""
        return None

    def gpu_expert(self) -> Jax | None:
        """Hand-written JAX in the form that is best on a GPU; None if it is that of ``expert``."""
        return None

    def idiomatic(self) -> Jax | None:
        """JAX as users write it."""
        return None

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        """ONNX models for onnxruntime and OpenVINO, by form, such as ``op`` or ``loop``."""
        return {}

    def torch(self, torch: Any) -> Call | None:
        """A solution with the PyTorch module; inputs and outputs are tensors."""
        return None

    def numba(self, numba: Any) -> Call | None:
        """A compiled loop over numpy arrays, with the numba module."""
        return None

    def drive(self, call: Call, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Solve the problem once; by default with one call."""
        return call(inputs)


def numbers(seed: int) -> np.random.Generator:
    """Return a random generator that draws the same numbers in each process."""
    return np.random.default_rng(seed)


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Return normally distributed float32 numbers."""
    return (numbers(seed).standard_normal(shape) * scale).astype(np.float32)
