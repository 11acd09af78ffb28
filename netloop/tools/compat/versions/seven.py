"""TensorRT 7.2: the names that version 8 removed."""

from __future__ import annotations

from typing import Any

import netloop
from netloop.api.calibration import IInt8Calibrator
from netloop.tools.compat.versions import eight
from netloop.tools.compat.versions.bindings import ICudaEngine
from netloop.tools.compat.versions.enumerations import LayerType7, OlderFlag
from netloop.values.checked_attributes import none_or, whole

__version__ = "7.2.3.4"
"""The release of TensorRT that the names match."""

NAMES = ("Builder", "INetworkDefinition", "Runtime")
"""The names of the module that are others than those of version 8."""

OBJECTS: dict[str, Any] = {"LayerType": LayerType7}
"""Names of the module that are defined elsewhere."""

FLAGS = {
    "fp16_mode": netloop.BuilderFlag.FP16,
    "int8_mode": netloop.BuilderFlag.INT8,
    "refittable": netloop.BuilderFlag.REFIT,
    "debug_sync": netloop.BuilderFlag.DEBUG,
    "strict_type_constraints": OlderFlag.STRICT_TYPES,
}
"""The flags of a config that a builder has as attributes."""


class INetworkDefinition(eight.INetworkDefinition):
    """A network of TensorRT 7."""

    LAYER_TYPES = LayerType7


class Builder(eight.Builder):
    """A builder of TensorRT 7, which has the settings of a build itself.

    Attributes:
        max_workspace_size, average_find_iterations, min_find_iterations, int8_calibrator: those of a config.
        fp16_mode, int8_mode, refittable, debug_sync, strict_type_constraints: its flags.
    """

    max_workspace_size: int = 0
    average_find_iterations: int = 1
    min_find_iterations: int = 1
    int8_calibrator: IInt8Calibrator | None = None
    fp16_mode: bool = False
    int8_mode: bool = False
    refittable: bool = False
    debug_sync: bool = False
    strict_type_constraints: bool = False

    CHECKS = {
        "max_workspace_size": whole(0),
        "average_find_iterations": whole(1),
        "min_find_iterations": whole(1),
        "int8_calibrator": none_or(IInt8Calibrator),
    }

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        """Create a network without layers: one of single examples, unless the flags have EXPLICIT_BATCH."""
        return INetworkDefinition(self, flags)

    def build_cuda_engine(self, network: eight.INetworkDefinition) -> ICudaEngine | None:
        """Build the engine of a network with the settings of the builder; None, with the errors in the log."""
        config = self.create_builder_config()
        config.max_workspace_size = self.max_workspace_size
        config.avg_timing_iterations = self.average_find_iterations
        config.min_timing_iterations = self.min_find_iterations
        config.int8_calibrator = self.int8_calibrator
        for name, flag in FLAGS.items():
            if getattr(self, name):
                config.set_flag(flag)
        return self.build_engine(network, config)


class Runtime(eight.Runtime):
    """A runtime of TensorRT 7."""

    def deserialize_cuda_engine(self, serialized_engine: Any = None, plugin_factory: Any = None, **named: Any) -> Any:
        """Deserialize a plan; the factory of plugins is not used, because plans name theirs in the registry."""
        return super().deserialize_cuda_engine(serialized_engine, **named)
