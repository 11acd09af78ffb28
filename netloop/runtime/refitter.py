"""New weights for an engine, without compiling it anew."""

from __future__ import annotations

from typing import Any

from netloop.diagnostics import did_you_mean
from netloop.dims import Weights, weights_array
from netloop.enums import TensorLocation
from netloop.graph.layer import check_instance
from netloop.layers.sources import IConstantLayer
from netloop.runtime.engine import ICudaEngine
from netloop.runtime.enums import WeightsRole
from netloop.runtime.logger import ILogger
from netloop.runtime.observers import IErrorRecorder
from netloop.settings import Settings, none_or, whole
from netloop.types import Array


class Refitter(Settings):
    """Replaces weights of an engine: the constants that its programs take as arguments, by the names of their layers.

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
        self._constants = {layer.name: position for position, layer in enumerate(engine.constants)}
        self._new: dict[str, Array] = {}

    @property
    def logger(self) -> ILogger:
        """What its messages go to."""
        return self._logger

    # ------------------------------------------------------------------ what there is

    def get_all_weights(self) -> list[str]:
        """The names of all weights that may be replaced."""
        return list(self._constants)

    def get_missing_weights(self) -> list[str]:
        """Empty: weights do not depend on one another."""
        return []

    def get_all(self) -> tuple[list[str], list[WeightsRole]]:
        """The layers of all weights, and the role of each."""
        return list(self._constants), [WeightsRole.CONSTANT] * len(self._constants)

    def get_missing(self) -> tuple[list[str], list[WeightsRole]]:
        """Empty: weights do not depend on one another."""
        return [], []

    def get_named_weights(self, weights_name: str) -> Weights:
        """New weights that were set; empty if none were."""
        new = self._new.get(weights_name)
        return Weights() if new is None else Weights(new)

    def get_weights_prototype(self, weights_name: str) -> Weights:
        """The weights as the network was built with them, for their type and size; empty, with a line in the log, if
        there are none of this name.
        """
        if weights_name not in self._constants:
            self._refuse_name(weights_name)
            return Weights()
        return Weights(self._constant(weights_name).weights)

    def get_weights_location(self, weights_name: str) -> TensorLocation:
        """HOST: new weights are numpy arrays."""
        return TensorLocation.HOST

    # ------------------------------------------------------------------ what is new

    def set_named_weights(self, name: str, weights: Any, location: TensorLocation = TensorLocation.HOST) -> bool:
        """Give new weights; False, with a line in the log, if they do not fit."""
        if name not in self._constants:
            return self._refuse_name(name)
        array, wanted = weights_array(weights), self._constant(name).weights
        if array.dtype != wanted.dtype or array.size != wanted.size:
            given = f"{array.size} of {array.dtype}"
            return self._refuse(f"the weights {name!r} are {wanted.size} of {wanted.dtype}, and were given {given}")
        self._new[name] = array.copy()
        return True

    def set_weights(self, layer_name: str, role: WeightsRole, weights: Any) -> bool:
        """Give new weights to a constant layer."""
        if role is not WeightsRole.CONSTANT:
            return self._refuse(f"the weights of {layer_name!r} have the role CONSTANT, not {role.name}")
        return self.set_named_weights(layer_name, weights)

    def unset_named_weights(self, weights_name: str) -> bool:
        """Forget new weights that were not taken yet; whether there were any."""
        return self._new.pop(weights_name, None) is not None

    def refit_cuda_engine(self) -> bool:
        """Make the engine take the new weights; what runs meanwhile keeps the old ones."""
        for name, array in self._new.items():
            self._constant(name).weights = array
        self._engine.take_weights()
        self._new.clear()
        return True

    def refit_cuda_engine_async(self, stream_handle: int) -> bool:
        """The same; it is over when this returns."""
        return self.refit_cuda_engine()

    def release_refit_resources(self) -> bool:
        """True: there is nothing to release."""
        return True

    def _constant(self, name: str) -> IConstantLayer:
        return self._engine.constants[self._constants[name]]

    def _refuse_name(self, name: Any) -> bool:
        hint = did_you_mean(str(name), self._constants)
        return self._refuse(f"the engine has no weights {name!r} that can be replaced" + (hint and f"; {hint}"))

    def _refuse(self, what: str) -> bool:
        self._logger.log(ILogger.ERROR, what)
        return False
