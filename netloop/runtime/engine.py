"""An engine: a network compiled, and compiled anew for each set of input shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from netloop.check import require_sound
from netloop.diagnostics import ExecutionError, Finding, InputError, did_you_mean, listed
from netloop.dims import Dims
from netloop.enums import DataType, TensorIOMode
from netloop.graph.tensor import ITensor
from netloop.inputs import check_inputs
from netloop.lower import Program, constants_of
from netloop.lower.loop import Road
from netloop.network import INetworkDefinition
from netloop.runtime.programs import Given, Programs

LONGEST_FUSED_BODY = 2000
"""XLA's compiler for CPUs has crashed while fusing loop bodies of 4,000 operations."""


def compile(network: INetworkDefinition) -> ICudaEngine:
    """Compile a network.

    Where all input shapes are fixed the program is compiled here, else in the first call that brings new shapes.

    Raises:
        NetworkError: the network has no meaning, or a shape in it is known only while it runs.
    """
    return ICudaEngine(network)


class ICudaEngine:
    """A compiled network, called with a dict of arrays: ``engine({"x": x})["y"]``.

    It keeps its own copy of the network and of the weights; later edits do not reach it. The name is TensorRT's: it
    runs on any device that JAX has.
    """

    def __init__(self, network: INetworkDefinition) -> None:
        require_sound(network)
        self._network = network = network.copy()
        self._constants = constants_of(network)
        with jax.enable_x64(True):
            self._weights = [jnp.array(each.evaluate()) for each in self._constants]
        self._programs = Programs(network, self._compile)
        if not self._programs.shape_inputs and all(each.type.is_fixed for each in network.inputs):
            with jax.enable_x64(True):
                self._programs.find({each: jax.ShapeDtypeStruct(*_shape_and_type(each)) for each in network.inputs})

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, jax.Array]:
        """The outputs by name, in the order in which they were marked.

        Args:
            inputs: an array for each input, numpy's or JAX's, of exactly its element type and shape.

        Raises:
            InputError: an input is missing, unknown, or of another element type or shape.
            NetworkError: for these shapes the network has no meaning.
            ExecutionError: something without a meaning was met, such as more trips than an output has room for.
        """
        given = check_inputs(self._network.inputs, inputs)
        with jax.enable_x64(True):
            program = self._programs.find(given)
            outputs, status = program.run(self._weights, list(given.values()))
        if status is not None and int(status):
            raise ExecutionError(program.lowered.failures.findings[int(status) - 1])
        return {tensor.name: array for tensor, array in zip(self._network.outputs, outputs, strict=True)}

    def _compile(self, program: Program, given: Given) -> _Compiled:
        inputs = list(given)

        def run(weights: list[Any], arrays: list[Any]) -> tuple[list[Any], Any]:
            named = dict(zip(self._constants, weights, strict=True))
            outputs, status = program(named, dict(zip(inputs, arrays, strict=True)))
            return outputs, status if program.failures.findings else None

        lowered = jax.jit(run).lower(self._weights, list(given.values()))
        return _Compiled(program, lowered.compile(compiler_options=_options(program)))

    # ------------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        """The name of the network."""
        return self._network.name

    @property
    def num_layers(self) -> int:
        """The number of layers of the network."""
        return self._network.num_layers

    @property
    def num_io_tensors(self) -> int:
        """The number of inputs and outputs."""
        return len(self._tensors())

    def get_tensor_name(self, index: int) -> str:
        """The name of an input or output: first the inputs as they were added, then the outputs as they were marked."""
        return self._tensors()[index].name

    def __getitem__(self, index: int) -> str:
        return self.get_tensor_name(index)

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        """Whether a tensor is an input, an output, or neither."""
        tensor = self._tensor(name)
        if tensor is None:
            return TensorIOMode.NONE
        return TensorIOMode.INPUT if tensor.is_network_input else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> DataType:
        """The element type of an input or output."""
        return self._named(name).dtype

    def get_tensor_shape(self, name: str) -> Dims:
        """The shape of an input or output; -1 for a length that each call tells."""
        return self._named(name).shape

    @property
    def roads(self) -> dict[str, Road]:
        """How each loop ran in the latest program, and why, by the name of the loop."""
        latest = self._programs.latest
        return {loop.name: road for loop, road in latest.lowered.roads.items()} if latest else {}

    def _tensors(self) -> list[ITensor]:
        return self._network.inputs + [each for each in self._network.outputs if not each.is_network_input]

    def _tensor(self, name: str) -> ITensor | None:
        return next((each for each in self._tensors() if each.name == name), None)

    def _named(self, name: str) -> ITensor:
        tensor = self._tensor(name)
        if tensor is None:
            names = [each.name for each in self._tensors()]
            what = f"the engine has no input or output {name!r}; it has {listed(names)}"
            raise InputError(Finding("NL602", what, fix=did_you_mean(name, names)))
        return tensor


@dataclass(frozen=True)
class _Compiled:
    """A program and its compiled form.

    Attributes:
        lowered: the program.
        run: from the weights and the inputs to the outputs and the status, which is None if nothing can fail.
    """

    lowered: Program
    run: Callable[[list[Any], list[Any]], tuple[list[Any], Any]]


def _shape_and_type(tensor: ITensor) -> tuple[Any, Any]:
    return tensor.type.shape, tensor.type.dtype


def _options(program: Program) -> dict[str, Any]:
    return {"xla_disable_hlo_passes": "fusion"} if program.longest_body > LONGEST_FUSED_BODY else {}
