"""The refitter, which replaces the weights of an engine."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import numpy as np

from netloop.api.engine import ICudaEngine
from netloop.api.enums import ErrorCodeTRT, WeightsRole
from netloop.api.logger import ILogger
from netloop.api.observers import LoggedObject
from netloop.compiler.execution.sharded_engine import ShardedEngine
from netloop.model.graph import ILayer, check_instance, check_member
from netloop.model.layers.affine import IScaleLayer
from netloop.model.layers.convolution import IConvolutionLayer, IDeconvolutionLayer, is_given
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import live_layers
from netloop.model.network import INetworkDefinition
from netloop.model.weights import Weights, read_again, weights_array
from netloop.process.cuda_runtime import cuda_runtime
from netloop.values.checked_attributes import WithStatement
from netloop.values.diagnostics import ExecutionError, NetloopError, did_you_mean, listed
from netloop.values.enums import TensorLocation
from netloop.values.string_arrays import type_name
from netloop.values.types import Array

CONVOLUTION_ROLES = {WeightsRole.KERNEL: "kernel", WeightsRole.BIAS: "bias"}
ATTRIBUTES: dict[type[ILayer], dict[WeightsRole, str]] = {
    IConvolutionLayer: CONVOLUTION_ROLES,
    IDeconvolutionLayer: CONVOLUTION_ROLES,
    IScaleLayer: {WeightsRole.SHIFT: "shift", WeightsRole.SCALE: "scale"},
}
"""The attributes of layers that are weights, by role."""

Part = tuple[str, WeightsRole]
"""The weights of a layer in a role: the name of the layer, and the role."""


class Refitter(WithStatement, LoggedObject):
    """Replace the weights of an engine, or of one that ``netloop.shard`` made.

    The constants that are arguments of the engine's programs have names: the one set by ``set_weights_name``, otherwise
    that of their layer. Replacing them compiles nothing. Kernels, biases, shifts and scales that are attributes of
    layers have only roles, and ``set_weights`` replaces them; the next call compiles its program again. All weights can
    be replaced, with or without ``BuilderFlag.REFIT``; with ``REFIT_INDIVIDUAL`` only those that are named and marked.

    Methods that are refused log an error and return False.

    Attributes:
        weights_validation: recorded without effect; sizes and element types are always checked.
    """

    weights_validation: bool = True

    def __init__(self, engine: ICudaEngine | ShardedEngine, logger: ILogger) -> None:
        if not isinstance(engine, ShardedEngine):
            check_instance("engine", engine, ICudaEngine)
        self._engine = engine
        self._core = engine if isinstance(engine, ShardedEngine) else engine.executable
        self._absent: set[IConstantLayer] = set() if isinstance(engine, ShardedEngine) else engine.absent
        super().__init__(logger)
        self._holders: dict[str, list[IConstantLayer]] = {}
        for constant in engine.refittable_constants:
            self._holders.setdefault(engine.network.weights_name(constant), []).append(constant)
        network = engine.network
        self._present = {
            network.weights_name(layer): layer.weights for layer in network if isinstance(layer, IConstantLayer)
        }
        marked_only = not isinstance(engine, ShardedEngine) and engine.build_options.marked_only
        self._parts = {} if marked_only else _parts_of(engine.network)
        self._new: dict[str, Array] = {}
        self._on_device: dict[str, Weights] = {}
        self._new_parts: dict[Part, Array] = {}

    # ------------------------------------------------------------------ queries

    def get_all_weights(self) -> list[str]:
        """The names of all weights that can be replaced."""
        return list(self._holders)

    def get_missing_weights(self) -> list[str]:
        """The names of the weights that are not in the engine's plan and have not been set."""
        absent = self._absent
        known = {*self._new, *self._on_device}
        return [name for name, layers in self._holders.items() if name not in known and not absent.isdisjoint(layers)]

    def get_all(self) -> tuple[list[str], list[WeightsRole]]:
        """The layers of all weights that can be replaced, and the role of each."""
        layers, roles = self._roles(self._holders)
        return layers + [name for name, _ in self._parts], roles + [role for _, role in self._parts]

    def get_missing(self) -> tuple[list[str], list[WeightsRole]]:
        """The layers of the weights that are not in the engine's plan and have not been set, and the role of each."""
        return self._roles(self.get_missing_weights())

    def _roles(self, names: Iterable[str]) -> tuple[list[str], list[WeightsRole]]:
        layers = [holder.name for name in names for holder in self._holders[name]]
        return layers, [WeightsRole.CONSTANT] * len(layers)

    def get_named_weights(self, weights_name: str) -> Weights:
        """The new weights that were set; empty if none were."""
        new = self._new.get(weights_name)
        return self._on_device.get(weights_name, Weights()) if new is None else Weights(new)

    def get_weights_prototype(self, weights_name: str) -> Weights:
        """The engine's current weights, as a model of type and size; empty, with an error in the log, if unknown."""
        if check_instance("weights_name", weights_name, str) not in self._holders:
            self._refuse_name(weights_name)
            return Weights()
        return Weights(np.ascontiguousarray(self._holders[weights_name][0].weights))

    def get_weights_location(self, weights_name: str) -> TensorLocation:
        """Where the new weights are that were set; HOST if none were."""
        return TensorLocation.DEVICE if weights_name in self._on_device else TensorLocation.HOST

    # ------------------------------------------------------------------ new weights

    def set_named_weights(self, name: str, weights: Any, location: TensorLocation = TensorLocation.HOST) -> bool:
        """Set new weights of the same size and element type, in any shape; whether they fit.

        Weights on the HOST are copied at once. Those on the DEVICE are read by each refit from now on, as TensorRT
        does, so that their memory has to stay until ``unset_named_weights``. ``Weights(type, address, count)`` may be
        in memory of the host or of a GPU in both cases.
        """
        on_device = check_member("location", location, TensorLocation) is TensorLocation.DEVICE
        if check_instance("name", name, str) not in self._holders:
            return self._refuse_name(name)
        array = weights_array(weights)
        if not self._fit(repr(name), array, [holder.weights for holder in self._holders[name]]):
            return False
        self.unset_named_weights(name)
        if on_device:
            self._on_device[name] = weights if isinstance(weights, Weights) else Weights(array)
        else:
            self._new[name] = array.copy()
        return True

    def present(self, name: str) -> Array | None:
        """The engine's current weights of a name, refittable or not; None if there is no such constant."""
        return self._present.get(name)

    def set_weights(self, layer_name: str, role: WeightsRole, weights: Any) -> bool:
        """Set new weights of a layer, of the same size and element type; whether they fit."""
        check_instance("layer_name", layer_name, str)
        if check_member("role", role, WeightsRole) is WeightsRole.CONSTANT:
            named = (
                name for name, layers in self._holders.items() for constant in layers if constant.name == layer_name
            )
            return self.set_named_weights(next(named, layer_name), weights)
        part, array = (layer_name, role), weights_array(weights)
        if part not in self._parts:
            return self._refuse_part(*part)
        if not self._fit(f"of {layer_name!r}", array, [_held(layer, role) for layer in self._parts[part]]):
            return False
        self._new_parts[part] = array.copy()
        return True

    def _fit(self, which: str, array: Array, present: Iterable[Array]) -> bool:
        for wanted in present:
            if array.dtype != wanted.dtype or array.size != wanted.size:
                text, needed = (f"{other.size} of {type_name(other.dtype)}" for other in (array, wanted))
                return self._refuse(f"the weights {which} are {needed}, and were given {text}")
        return True

    def unset_named_weights(self, weights_name: str) -> bool:
        """Forget new weights that are not in the engine yet, and weights on the device; whether there were any."""
        result = self._new.pop(weights_name, None), self._on_device.pop(weights_name, None)
        return any(array is not None for array in result)

    def refit_cuda_engine(self) -> bool:
        """Put the new weights into the engine; calls in progress keep the old ones.

        Refused while weights that are not in the engine's plan are missing, or weights on the device cannot be read.
        """
        missing = self.get_missing_weights()
        if missing:
            return self._refuse(f"the weights {listed(missing)} are missing; set them with set_named_weights")
        try:
            self._new.update((name, read_again(weights)) for name, weights in self._on_device.items())
        except NetloopError as error:
            return self._refuse(str(error))
        with self._undone_by_errors(), self._core.replacing_weights():
            for layer, attribute, array in self._changes():
                setattr(layer, attribute, array)
            self._absent.difference_update(*(self._holders[name] for name in self._new))
            if self._new_parts:
                self._core.forget_programs()
        self._new.clear()
        self._new_parts.clear()
        return True

    def _changes(self) -> list[tuple[ILayer, str, Array]]:
        """The layers that get new weights, each with the attribute and its new value."""
        constants = [(layer, "weights", array) for name, array in self._new.items() for layer in self._holders[name]]
        parts = [
            (layer, ATTRIBUTES[type(layer)][part[1]], array)
            for part, array in self._new_parts.items()
            for layer in self._parts[part]
        ]
        return [*constants, *parts]

    @contextmanager
    def _undone_by_errors(self) -> Generator[None]:
        """Restore the engine's weights after an error: Ctrl-C, or a device without enough memory."""
        before = [(layer, attribute, getattr(layer, attribute)) for layer, attribute, _ in self._changes()]
        absent = set(self._absent)
        try:
            yield
        except BaseException:
            for layer, attribute, array in before:
                vars(layer)[attribute] = array  # unchecked: absent weights are a view of one zero
            self._absent.update(absent)
            raise

    def refit_cuda_engine_async(self, stream_handle: int) -> bool:
        """Refit, after the work of a CUDA stream, and wait for the end, as ``refit_cuda_engine``."""
        cuda = cuda_runtime()
        if cuda is not None:
            try:
                cuda.synchronize(int(stream_handle))
            except ExecutionError as error:
                return self._refuse(str(error))
        return self.refit_cuda_engine()

    def release_refit_resources(self) -> bool:
        """True: there is nothing to release."""
        return True

    def _refuse_name(self, name: str) -> bool:
        hint = did_you_mean(name, self._holders)
        return self._refuse(f"the engine has no weights {name!r} that can be replaced" + (hint and f"; {hint}"))

    def _refuse_part(self, name: str, role: WeightsRole) -> bool:
        roles = [
            role.name for layer, role in (*self._parts, *zip(*self._roles(self._holders), strict=True)) if layer == name
        ]
        if roles:
            return self._refuse(f"the weights of {name!r} have the role {' or '.join(roles)}, not {role.name}")
        return self._refuse_name(name)

    def _refuse(self, what: str) -> bool:
        return self._log_error(ErrorCodeTRT.INVALID_ARGUMENT, what)


def _parts_of(network: INetworkDefinition) -> dict[Part, list[ILayer]]:
    """The layers that have weights as attributes, by name and role."""
    parts: dict[Part, list[ILayer]] = {}
    for layer in live_layers(network):
        for role in ATTRIBUTES.get(type(layer), ()):
            if is_given(_held(layer, role)):
                parts.setdefault((layer.name, role), []).append(layer)
    return parts


def _held(layer: ILayer, role: WeightsRole) -> Any:
    return getattr(layer, ATTRIBUTES[type(layer)][role])
