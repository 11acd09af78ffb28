"""The compiled functions of requests in slots, for each set of input types."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax

from netloop.compiler.execution.engines import Tunable
from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.execution.program_cache import ProgramCache
from netloop.compiler.execution.slot_checks import served_loop
from netloop.compiler.execution.slots import Slots
from netloop.compiler.execution.stream_lengths import free_lengths
from netloop.compiler.execution.weight_loading import DeviceWeights, device_copy
from netloop.compiler.lower import constants_of, require_program
from netloop.compiler.lower.compilability import require_arrays
from netloop.compiler.passes import MACHINE_CODE
from netloop.compiler.recipe import Recipe
from netloop.model.call_inputs import check_values
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition

FOR_ONE_ROW = MACHINE_CODE | {"matmul_partitioning", "carry_layout"}
"""The passes that choose a form for the rows of one request, which slots multiply, or do away with its loop."""


class SlotPrograms(Tunable):
    """A network whose requests run in slots, compiled for each set of input types.

    A call of the device makes ``trips`` iterations. The typical call, which is timed, is of as many requests as there
    are slots, all with the same inputs.

    Args:
        network: the network of one request.
        recipe: the decisions by which its programs are made.
        slots: the largest number of requests that run together.
        loop: the name of the loop; None for the one that ``served_loop`` finds.

    Raises:
        NetworkError: the network is invalid; no loop of it can run in slots (NL623); it needs the host (NL501, NL503).
        ValueError: it has no loop of the name.
    """

    def __init__(self, network: INetworkDefinition, recipe: Recipe, slots: int, trips: int, loop: str | None) -> None:
        block = recipe.validated(network).block
        require_arrays(network)
        self.loop = network.loops.index(served_loop(network, block, loop))
        self.network, self.served = network.copy(), network.copy()
        self.recipe, self.slots, self.trips = recipe, slots, trips
        with self.settings():
            # in this order, as the lengths are new constants
            self.lengths, self.constants = free_lengths(self.served, self.loop), constants_of(self.served)
            self.weights = _device_weights(self.served, self.constants)
            self._programs = ProgramCache(self.served, partial(Slots, self), recipe.placement)
            if not self._programs.shape_inputs and all(tensor.type.is_fixed for tensor in self.served.inputs):
                # what is refused is refused now, and not with the first request
                types = [jax.ShapeDtypeStruct(tensor.shape, tensor.type.dtype) for tensor in self.served.inputs]
                self._programs.find(dict(zip(self.served.inputs, types, strict=True)))

    @property
    def latest(self) -> LoweredNetwork | None:
        latest = self._programs.latest
        return latest.lowered if latest else None

    def __len__(self) -> int:
        return len(self._programs)

    @property
    def streamed(self) -> list[str]:
        """The names of the outputs whose rows stream, in the latest program; none before the first."""
        latest = self._programs.latest
        return [stream.name for stream in latest.streams] if latest else []

    @property
    def may_run_forever(self) -> bool:
        return True  # the loop that is served is none of the program's own

    def find(self, inputs: Mapping[str, Any]) -> tuple[Slots, list[Any]]:
        """The slots of the requests with inputs of some types, and these inputs in order."""
        arrays = [inputs[tensor.name] for tensor in self.served.inputs]
        return self._programs.find(dict(zip(self.served.inputs, arrays, strict=True))), arrays

    def prepare(self, inputs: Mapping[str, Any]) -> None:
        slots, arrays = self._checked(inputs)
        with self.settings():
            slots.compile(arrays)

    def run_to_end(self, inputs: Mapping[str, Any]) -> None:
        slots, arrays = self._checked(inputs)
        with self.settings():
            slots.run(arrays)

    def taken(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The arrays of a request by name, on the device or of numpy; the errors are those of ``check_values``."""
        arrays = self.recipe.placement.moved(check_values(self.served.inputs, inputs))
        return {tensor.name: array for tensor, array in arrays.items()}

    def _checked(self, inputs: Mapping[str, Any]) -> tuple[Slots, list[Any]]:
        arrays = self.taken(inputs)
        with self.settings():
            return self.find(arrays)

    def move_weights(self) -> None:
        with self.settings():
            self.weights = _device_weights(self.served, self.constants)


def _device_weights(network: INetworkDefinition, constants: list[IConstantLayer]) -> DeviceWeights:
    if any(constant.outputs[0].type.is_string for constant in constants):
        require_program(network, network.types)  # refuses strings, which no device has
    return DeviceWeights(device_copy(constant.evaluate()) for constant in constants)
