"""New weights for an engine, without compiling it anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from netloop.api.engine import ICudaEngine
from netloop.api.enums import ErrorCodeTRT, WeightsRole
from netloop.api.logger import ILogger
from netloop.api.observers import IErrorRecorder
from netloop.checked_attributes import Settings, none_or, whole
from netloop.diagnostics import did_you_mean, listed
from netloop.dims import Weights, weights_array
from netloop.enums import TensorLocation
from netloop.graph.layer import ILayer, check_instance, check_member
from netloop.layers.affine import IScaleLayer
from netloop.layers.convolution import IConvolutionLayer, IDeconvolutionLayer, is_given
from netloop.layers.sources import IConstantLayer
from netloop.nest import live_layers
from netloop.types import Array

OF_WINDOWS = {WeightsRole.KERNEL: "kernel", WeightsRole.BIAS: "bias"}
ATTRIBUTES: dict[type[ILayer], dict[WeightsRole, str]] = {
    IConvolutionLayer: OF_WINDOWS,
    IDeconvolutionLayer: OF_WINDOWS,
    IScaleLayer: {WeightsRole.SHIFT: "shift", WeightsRole.SCALE: "scale"},
}
"""The attributes that are weights, by their roles."""

Part = tuple[str, WeightsRole]
"""The weights of a layer in a role."""


class Refitter(Settings):
    """Replaces weights of an engine.

    The constants that its programs take as arguments have names: the one that ``set_weights_name`` gave, or else that
    of the constant's layer. Kernels, biases, shifts and scales that are attributes of layers have roles alone, and
    ``set_weights`` replaces them; programs are then compiled anew. All weights may be replaced, whether the build had
    ``BuilderFlag.REFIT`` or not; with ``REFIT_INDIVIDUAL`` those that are marked, and so named, and no others.

    Attributes:
        error_recorder: what is told of errors; None if nothing is.
        max_threads: recorded, and of no effect.
        weights_validation: whether new weights are looked at; sizes and types are always.
    """

    error_recorder: IErrorRecorder | None = None
    max_threads: int = 1
    weights_validation: bool = True

    CHECKS = {"error_recorder": none_or(IErrorRecorder), "max_threads": whole(1)}

    def __init__(self, engine: ICudaEngine, logger: ILogger) -> None:
        self._engine = check_instance("engine", engine, ICudaEngine)
        self._logger: ILogger = check_instance("logger", logger, ILogger)
        self._holders: dict[str, list[IConstantLayer]] = {}
        for each in engine.refittable_constants:
            self._holders.setdefault(engine.network.weights_name(each), []).append(each)
        network = engine.network
        self._present = {
            network.weights_name(each): each.weights for each in network if isinstance(each, IConstantLayer)
        }
        self._parts = {} if engine.origin.marked_only else _parts_of(engine)
        self._new: dict[str, Array] = {}
        self._new_parts: dict[Part, Array] = {}

    @property
    def logger(self) -> ILogger:
        """What its messages go to."""
        return self._logger

    # ------------------------------------------------------------------ what there is

    def get_all_weights(self) -> list[str]:
        """The names of all weights that may be replaced."""
        return list(self._holders)

    def get_missing_weights(self) -> list[str]:
        """The names of the weights that the engine's plan left out, and that were not set yet."""
        absent = self._engine.absent
        return [
            name for name, layers in self._holders.items() if name not in self._new and not absent.isdisjoint(layers)
        ]

    def get_all(self) -> tuple[list[str], list[WeightsRole]]:
        """The layers of all weights, and the role of each."""
        layers, roles = self._roles(self._holders)
        return layers + [name for name, _ in self._parts], roles + [role for _, role in self._parts]

    def get_missing(self) -> tuple[list[str], list[WeightsRole]]:
        """The layers of the weights that the engine's plan left out, and that were not set yet; the role of each."""
        return self._roles(self.get_missing_weights())

    def _roles(self, names: Iterable[str]) -> tuple[list[str], list[WeightsRole]]:
        layers = [each.name for name in names for each in self._holders[name]]
        return layers, [WeightsRole.CONSTANT] * len(layers)

    def get_named_weights(self, weights_name: str) -> Weights:
        """New weights that were set; empty if none were."""
        new = self._new.get(weights_name)
        return Weights() if new is None else Weights(new)

    def get_weights_prototype(self, weights_name: str) -> Weights:
        """The weights as the engine has them, for their type and size; empty, with a line in the log, if there are none
        of this name.
        """
        if check_instance("weights_name", weights_name, str) not in self._holders:
            self._refuse_name(weights_name)
            return Weights()
        return Weights(np.ascontiguousarray(self._holders[weights_name][0].weights))

    def get_weights_location(self, weights_name: str) -> TensorLocation:
        """HOST: new weights are numpy arrays."""
        return TensorLocation.HOST

    # ------------------------------------------------------------------ what is new

    def set_named_weights(self, name: str, weights: Any, location: TensorLocation = TensorLocation.HOST) -> bool:
        """Give new weights; False, with a line in the log, if they do not fit."""
        if check_instance("name", name, str) not in self._holders:
            return self._refuse_name(name)
        array = weights_array(weights)
        if not self._fit(repr(name), array, [each.weights for each in self._holders[name]]):
            return False
        self._new[name] = array.copy()
        return True

    def present(self, name: str) -> Array | None:
        """The weights of the constants of a name, as the engine has them, may they be replaced or not; None if it has
        no such constant.
        """
        return self._present.get(name)

    def set_weights(self, layer_name: str, role: WeightsRole, weights: Any) -> bool:
        """Give new weights to a layer; False, with a line in the log, if they do not fit."""
        check_instance("layer_name", layer_name, str)
        if check_member("role", role, WeightsRole) is WeightsRole.CONSTANT:
            named = (name for name, layers in self._holders.items() for each in layers if each.name == layer_name)
            return self.set_named_weights(next(named, layer_name), weights)
        part, array = (layer_name, role), weights_array(weights)
        if part not in self._parts:
            return self._refuse_part(*part)
        if not self._fit(f"of {layer_name!r}", array, [_held(each, role) for each in self._parts[part]]):
            return False
        self._new_parts[part] = array.copy()
        return True

    def _fit(self, which: str, array: Array, present: Iterable[Array]) -> bool:
        for wanted in present:
            if array.dtype != wanted.dtype or array.size != wanted.size:
                given = f"{array.size} of {array.dtype}"
                return self._refuse(f"the weights {which} are {wanted.size} of {wanted.dtype}, and were given {given}")
        return True

    def unset_named_weights(self, weights_name: str) -> bool:
        """Forget new weights that were not taken yet; whether there were any."""
        return self._new.pop(weights_name, None) is not None

    def refit_cuda_engine(self) -> bool:
        """Make the engine take the new weights; what runs meanwhile keeps the old ones.

        False, with a line in the log, while weights are missing that the engine's plan left out.
        """
        missing = self.get_missing_weights()
        if missing:
            return self._refuse(f"the weights {listed(missing)} are missing; give them with set_named_weights")
        for name, array in self._new.items():
            for layer in self._holders[name]:
                layer.weights = array
            self._engine.absent.difference_update(self._holders[name])
        for (name, role), array in self._new_parts.items():
            for layer in self._parts[name, role]:
                setattr(layer, ATTRIBUTES[type(layer)][role], array)
        self._engine.take_weights()
        if self._new_parts:
            self._engine.forget_programs()
        self._new.clear()
        self._new_parts.clear()
        return True

    def refit_cuda_engine_async(self, stream_handle: int) -> bool:
        """The same; it is over when this returns."""
        return self.refit_cuda_engine()

    def release_refit_resources(self) -> bool:
        """True: there is nothing to release."""
        return True

    def _refuse_name(self, name: str) -> bool:
        hint = did_you_mean(name, self._holders)
        return self._refuse(f"the engine has no weights {name!r} that can be replaced" + (hint and f"; {hint}"))

    def _refuse_part(self, name: str, role: WeightsRole) -> bool:
        roles = [
            each.name for layer, each in (*self._parts, *zip(*self._roles(self._holders), strict=True)) if layer == name
        ]
        if roles:
            return self._refuse(f"the weights of {name!r} have the role {' or '.join(roles)}, not {role.name}")
        return self._refuse_name(name)

    def _refuse(self, what: str) -> bool:
        self._logger.log(ILogger.ERROR, what)
        if self.error_recorder is not None:
            self.error_recorder.report_error(ErrorCodeTRT.INVALID_ARGUMENT, what)
        return False


def _parts_of(engine: ICudaEngine) -> dict[Part, list[ILayer]]:
    """The layers that have weights as attributes, by name and role."""
    parts: dict[Part, list[ILayer]] = {}
    for layer in live_layers(engine.network):
        for role in ATTRIBUTES.get(type(layer), ()):
            if is_given(_held(layer, role)):
                parts.setdefault((layer.name, role), []).append(layer)
    return parts


def _held(layer: ILayer, role: WeightsRole) -> Any:
    return getattr(layer, ATTRIBUTES[type(layer)][role])
