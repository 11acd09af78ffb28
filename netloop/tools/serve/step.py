"""The program of one step of many sequences, whose states are in slots on the device."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from netloop.api.engine import ICudaEngine
from netloop.api.refitter import ATTRIBUTES
from netloop.api.step_states import Shapes, fixed_type, require_names, require_pairs, require_type, require_weights
from netloop.compiler.execution.engines import Tunable
from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.execution.weight_loading import DeviceWeights, WeightLoader, device_copy
from netloop.compiler.passes import MACHINE_CODE
from netloop.compiler.recipe import Recipe
from netloop.compiler.tuning import Samples, sample_inputs
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.call_inputs import check_values
from netloop.model.check import require_valid
from netloop.model.graph.infer import TypeTable
from netloop.model.network import INetworkDefinition
from netloop.process.forked import require_jax
from netloop.values.diagnostics import ExecutionError, Finding
from netloop.values.types import Array, TensorType

PARTS = tuple(ATTRIBUTES)
"""The layers whose weights are compiled into programs."""


class StepResult(NamedTuple):
    """The results of a call of the program.

    Attributes:
        states: the states of all slots, by the name of the input.
        outputs: the outputs of each row, by name.
        flags: the error flag of each row; 0 where nothing failed.
    """

    states: dict[str, jax.Array]
    outputs: dict[str, Array]
    flags: Array


class StepProgram(Tunable):
    """The network of an engine for one sequence, vectorized over the rows of a batch.

    Lengths that the network leaves open are 1 unless ``shapes`` says otherwise, so that a network whose first axis is
    the batch has one row for each sequence. Rows cannot influence each other: an error belongs to one row, whose state
    stays as it was. Its typical call, which is timed, is of as many first steps as ``rows`` says, on states of its own.

    Args:
        engine: the engine.
        states: for each input that is a state, the output that is its next value.
        shapes: the shapes of inputs, by name.
        rows: the number of rows of a typical call.
        slots: the number of slots of states.
        recipe: the decisions by which programs are made; None for those of the engine.

    Attributes:
        states: for each input that is a state, the output that is its next value.
        inputs: the types of the other inputs, by name.
        state_types: the types of the states, by the name of the input.
        outputs: the names of the outputs that are no states.
        output_types: their types.

    Raises:
        ValueError: a name of a state or shape is not one of the network.
        NetworkError: the network is invalid for these shapes or has data-dependent ones, or a next state is of another
            type than the state.
    """

    def __init__(
        self,
        engine: ICudaEngine,
        states: Mapping[str, str],
        shapes: Shapes,
        rows: int = 1,
        slots: int = 1,
        recipe: Recipe | None = None,
    ) -> None:
        network = self.network = engine.network
        recipe = recipe or engine.recipe
        # of several rows, calls of machine code would be made one after the other
        self.recipe = replace(recipe, passes=recipe.passes - (MACHINE_CODE if rows > 1 else frozenset()))
        self._rows, self._slots = rows, slots
        require_weights(engine)
        require_names(engine, states, shapes)
        self.engine, self.states = engine, dict(states)
        tensor_types = {tensor: fixed_type(tensor, shapes) for tensor in network.inputs}
        table = TypeTable(tensor_types)
        validated = require_valid(network, table)
        require_pairs(network.inputs, network.outputs, self.states, table)
        with self.settings():
            self._lowered = LoweredNetwork.of(network, table, validated, self.recipe)
            self._loader = WeightLoader(self._lowered, engine.executable.constants)
            with self._lowered.timer.phase("load"):
                self._loader(engine.executable.weights)
        self._names = [tensor.name for tensor in network.outputs]
        types = {key.name: type for key, type in tensor_types.items()}
        self.inputs = {name: type for name, type in types.items() if name not in states}
        self.state_types = {name: types[name] for name in states}
        self.output_types = {
            tensor.name: TensorType(table[tensor].dtype, table[tensor].shape)
            for tensor in network.outputs
            if tensor.name not in states.values()
        }
        self.outputs = [*self.output_types]
        self._compiled: dict[int, XlaFunction] = {}
        self._lock = threading.Lock()
        self.weights = engine.executable.weights

    @property
    def sizes(self) -> list[int]:
        """The numbers of rows for which a program is compiled."""
        return sorted(self._compiled)

    @property
    def latest(self) -> LoweredNetwork:
        return self._lowered

    def checked(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """The arrays of a step, of exactly the types of the program.

        Raises:
            InputError: inputs are missing, unknown, or of another element type or shape.
        """
        tensors = [tensor for tensor in self.network.inputs if tensor.name in self.inputs]
        arrays = {key.name: np.asarray(value) for key, value in check_values(tensors, inputs).items()}
        for name, of in self.inputs.items():
            require_type(name, arrays[name], of)
        return arrays

    def made_up(self, network: INetworkDefinition, samples: Samples) -> dict[str, Array]:
        """Inputs of a step for timing; raises NoSamples."""
        shapes = {name: of.shape for name, of in {**self.inputs, **self.state_types}.items()}
        arrays = sample_inputs(network, replace(samples, shapes=shapes))
        return {name: arrays[name] for name in self.inputs}

    def prepare(self, inputs: Mapping[str, Any]) -> None:
        self.checked(inputs)
        self.compile(self._rows)

    def run_to_end(self, inputs: Mapping[str, Any]) -> None:
        arrays = self.checked(inputs)
        first = {name: np.zeros(of.shape, of.dtype) for name, of in self.state_types.items()}
        rows = {name: np.stack([array] * self._rows) for name, array in arrays.items()}
        slot, starts = np.zeros(self._rows, np.int32), np.ones(self._rows, np.bool_)
        result = self(self.empty_states(), first, slot, slot, starts, rows)
        if result.flags[0]:
            raise ExecutionError(self.finding(int(result.flags[0])))

    def move_weights(self) -> None:
        with self.settings():
            self.weights = DeviceWeights(device_copy(constant.evaluate()) for constant in self.engine.constants)

    def empty_states(self) -> dict[str, jax.Array]:
        """Zeros as the states of all slots."""
        with self.settings():
            return {name: jnp.zeros((self._slots, *of.shape), of.dtype) for name, of in self.state_types.items()}

    def refitted(self) -> bool:
        """Take the weights that the engine has now; False if its programs hold weights that a refit can replace."""
        if any(isinstance(layer, PARTS) for layer in self.engine.network):
            return False
        self.weights = self.engine.executable.weights
        return True

    def compile(self, size: int) -> None:
        """Compile the program of a number of rows, unless there is one."""
        require_jax()
        with self._lock:
            if size not in self._compiled:
                self._compiled[size] = self._compile(size)

    def _compile(self, size: int) -> XlaFunction:
        row = jax.ShapeDtypeStruct((size,), np.int32)
        states = {
            name: jax.ShapeDtypeStruct((self._slots, *of.shape), of.dtype) for name, of in self.state_types.items()
        }
        inputs = {name: jax.ShapeDtypeStruct((size, *of.shape), of.dtype) for name, of in self.inputs.items()}
        first = {name: jax.ShapeDtypeStruct(of.shape, of.dtype) for name, of in self.state_types.items()}
        flags = jax.ShapeDtypeStruct((size,), np.bool_)
        function = self._lowered.function(self._step, donate_argnums=1)
        with self.settings():
            function.compile(self._loader(self.weights), states, first, row, row, flags, inputs)
        return function

    def __call__(
        self,
        states: dict[str, jax.Array],
        first: Mapping[str, Any],
        read: Array,
        write: Array,
        starts: Array,
        inputs: Mapping[str, Array],
    ) -> StepResult:
        """Run a step of some rows.

        Args:
            states: the states of all slots, whose memory is reused.
            first: the state before the first step.
            read: the slot of each row.
            write: the slot for its next state.
            starts: whether it is the first step of its sequence.
            inputs: the arrays of the other inputs, a row for each.

        Raises:
            NetworkError, ExecutionError: the program cannot be compiled, or the device failed.
        """
        self.compile(len(read))
        with self.settings():
            arguments = self._loader(self.weights), states, dict(first), read, write, starts, dict(inputs)
            result, outputs, flags = self._compiled[len(read)](*arguments)
            # all copies to the host begin before the first one is awaited
            return StepResult(result, *jax.device_get((outputs, flags)))

    def finding(self, flag: int) -> Finding:
        """The finding behind an error flag."""
        return self._lowered.program.errors.finding(flag)

    def _step(
        self, loaded: Any, states: Any, first: Any, read: Any, write: Any, starts: Any, inputs: Any
    ) -> tuple[Any, Any, Any]:
        before = {name: _where(starts, first[name], state[read]) for name, state in states.items()}
        outputs, flags = jax.vmap(lambda row: self._row(loaded, row))({**before, **inputs})
        after = {name: _where(flags != 0, before[name], outputs[new]) for name, new in self.states.items()}
        kept = {name: state.at[write].set(after[name]) for name, state in states.items()}
        return kept, {name: outputs[name] for name in self.outputs}, flags

    def _row(self, loaded: Any, row: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """The outputs of one row, and its error flag."""
        arrays = [row[tensor.name] for tensor in self._lowered.inputs]
        outcome = self._lowered.run(self._loader.values(loaded), arrays)
        verdict = outcome.verdict()
        return dict(zip(self._names, outcome.values, strict=True)), jnp.int32(0 if verdict is None else verdict)


def _where(rows: Any, chosen: Any, other: Any) -> Any:
    return jnp.where(rows.reshape(-1, *[1] * (other.ndim - 1)), chosen, other)
