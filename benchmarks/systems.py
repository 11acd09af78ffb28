"""The systems that are compared: how each gets a problem, and how arrays go in and out.

A system is constructed in the process in which it is measured, which is pinned to its cores.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, ClassVar

import jax
import numpy as np
from onnx import ModelProto

import netloop as trt
from benchmarks.workload import Arrays, Call, Jax, Workload

ERRORS = 3
"""The lowest severity that onnxruntime reports."""

Made = Callable[[], Mapping[str, Any]]
"""Solves a problem once and waits for the results."""


def threads() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


class System(ABC):
    """A system that solves workloads.

    Attributes:
        package: the package that it needs.
        limit: the most seconds that an answer of it takes; it is killed then.
    """

    package: ClassVar[str]
    limit: ClassVar[float] = math.inf

    @abstractmethod
    def variants(self, workload: Workload) -> Mapping[str, Callable[[], Call]]:
        """The ways in which it solves a problem, by name; each is built when called."""

    @classmethod
    def solves(cls, workload: Workload) -> bool:
        """Whether there may be variants; decided without importing the system."""
        return True

    def take(self, arrays: Arrays) -> Mapping[str, Any]:
        """Convert numpy arrays to arrays of the system."""
        return arrays

    def wait(self, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Wait until outputs are computed."""
        return outputs

    def results(self, outputs: Mapping[str, Any]) -> Arrays:
        """Copy outputs to numpy arrays; an output may be a list of arrays of the system."""
        return {name: np.array(array) for name, array in outputs.items()}

    def make(self, workload: Workload, variant: str) -> Made:
        """Prepare a variant."""
        call, inputs = self.variants(workload)[variant](), self.take(workload.inputs())
        return lambda: self.wait(workload.drive(call, inputs))


class InJax(System):
    """netloop and hand-written JAX."""

    package = "jax"

    def variants(self, workload: Workload) -> Mapping[str, Callable[[], Call]]:
        network = workload.network()
        ours: dict[str, Callable[[], Call]] = {} if network is None else {"netloop": lambda: trt.compile(network)}
        by_hand = {
            name: lambda solution=solution: self.compiled(solution, workload)
            for name, solution in self.by_hand(workload).items()
            if solution is not None
        }
        return {**ours, **workload.parts(), **by_hand}

    def by_hand(self, workload: Workload) -> Mapping[str, Jax | None]:
        """The solutions in JAX, by name."""
        return {"expert": workload.expert(), "idiomatic": workload.idiomatic()}

    def compiled(self, solution: Jax, workload: Workload) -> Call:
        weights = jax.device_put(solution.weights)
        program = jax.jit(solution.function).lower(weights, self.take(workload.inputs())).compile()
        return lambda inputs: program(weights, inputs)

    def take(self, arrays: Arrays) -> Mapping[str, Any]:
        # JAX narrows 64-bit integers on their way to the device, and networks take them as they are
        return {name: array if array.dtype.itemsize == 8 else jax.device_put(array) for name, array in arrays.items()}

    def wait(self, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return jax.block_until_ready(outputs)


class OnnxRuntime(System):
    """onnxruntime on its CPU provider."""

    package = "onnxruntime"

    @classmethod
    def solves(cls, workload: Workload) -> bool:
        return bool(workload.models())

    def variants(self, workload: Workload) -> Mapping[str, Callable[[], Call]]:
        return {
            f"onnxruntime {kind}": lambda model=model: self.session(model())
            for kind, model in workload.models().items()
        }

    def session(self, model: ModelProto) -> Call:
        module = import_module(self.package)
        options = module.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads(), 1
        options.log_severity_level = ERRORS
        providers = ["CPUExecutionProvider"]
        session = module.InferenceSession(model.SerializeToString(), options, providers=providers)
        names = [output.name for output in model.graph.output]
        return lambda inputs: dict(zip(names, session.run(None, inputs), strict=True))


class OpenVino(System):
    """OpenVINO on its CPU plugin, in float32, from the same ONNX models."""

    package = "openvino"

    @classmethod
    def solves(cls, workload: Workload) -> bool:
        return bool(workload.models())

    def variants(self, workload: Workload) -> Mapping[str, Callable[[], Call]]:
        return {
            f"openvino {kind}": lambda model=model: self.request(model(), workload.feeds_back)
            for kind, model in workload.models().items()
        }

    def request(self, model: ModelProto, copies: bool) -> Call:
        """Return a call that copies only new inputs; its outputs are valid until the next call."""
        core = import_module(self.package).Core()
        hints = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads()}
        compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", hints)
        request = compiled.create_infer_request()
        names = [output.name for output in model.graph.output]
        given: dict[str, Any] = {}

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            for name, array in inputs.items():
                if given.get(name) is not array:
                    request.get_tensor(name).data[...] = given[name] = array
            request.start_async()  # infer() hides errors where there is one thread
            request.wait()
            outputs = {name: request.get_output_tensor(i).data for i, name in enumerate(names)}
            return {name: array.copy() for name, array in outputs.items()} if copies else outputs

        return call


class Torch(System):
    """PyTorch, in inference mode."""

    package = "torch"

    @classmethod
    def solves(cls, workload: Workload) -> bool:
        return type(workload).torch is not Workload.torch

    def variants(self, workload: Workload) -> Mapping[str, Callable[[], Call]]:
        torch = import_module(self.package)
        torch.set_num_threads(threads())
        call = workload.torch(torch)
        return {} if call is None else {"torch": lambda: torch.inference_mode()(call)}

    def take(self, arrays: Arrays) -> Mapping[str, Any]:
        torch = import_module(self.package)
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}

    def results(self, outputs: Mapping[str, Any]) -> Arrays:
        stack = import_module(self.package).stack
        return {
            name: np.array((stack(output) if isinstance(output, list) else output).numpy())
            for name, output in outputs.items()
        }


class Numba(System):
    """A loop compiled as C would be: the limit of what is possible."""

    package = "numba"

    @classmethod
    def solves(cls, workload: Workload) -> bool:
        return type(workload).numba is not Workload.numba

    def variants(self, workload: Workload) -> Mapping[str, Callable[[], Call]]:
        call = workload.numba(import_module(self.package))
        return {} if call is None else {"numba": lambda: call}


SYSTEMS: list[type[System]] = [InJax, OnnxRuntime, OpenVino, Torch, Numba]


def present(systems: Sequence[type[System]] = SYSTEMS) -> list[type[System]]:
    """Return those of some systems that are installed."""
    return [system for system in systems if find_spec(system.package)]


def versions() -> dict[str, str]:
    """Return the package versions of all installed systems."""
    return {system.package: version(system.package) for system in present()}
