"""TensorRT 10.16: the names that version 11 lacks, and what older meanings of names are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import netloop
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.pointwise import IIdentityLayer
from netloop.tools.compat.versions.enumerations import OlderFeature, OlderNames
from netloop.values.enums import DataType

__version__ = "10.16.1.11"
"""The release of TensorRT that the names match."""

NAMES = (
    *("Builder", "IAlgorithmSelector", "IBuilderConfig", "INetworkDefinition", "IPluginRegistry", "OnnxParser"),
    *("PreviewFeature", "Refitter", "get_builder_plugin_registry", "get_plugin_registry"),
)
"""The names of the module that are others than those of version 11."""

PreviewFeature = OlderNames(netloop.PreviewFeature, MULTIDEVICE_RUNTIME_10_16=OlderFeature.MULTIDEVICE_RUNTIME_10_16)


class INetworkDefinition(netloop.INetworkDefinition):
    """A network of TensorRT 10, in which the types of outputs can be set."""

    def convert(self, tensor: ITensor, dtype: DataType) -> None:
        """Take the type of a tensor: an identity converts to that of its output, as TensorRT 7 to 10 do."""
        producer = tensor.producer
        if isinstance(producer, IIdentityLayer) and dtype in IIdentityLayer.OUTPUT_TYPES and not tensor.is_converted:
            producer.set_output_type(0, dtype)
        else:
            super().convert(tensor, dtype)


class IBuilderConfig(netloop.IBuilderConfig):
    """A config of TensorRT 10."""

    def set_preview_feature(self, feature: Any, enable: bool) -> None:
        """Enable or disable a feature."""
        if isinstance(feature, OlderFeature):
            self._older_features[feature] = bool(enable)
        else:
            super().set_preview_feature(feature, enable)

    def get_preview_feature(self, feature: Any) -> bool:
        """Whether a feature is enabled."""
        is_older = isinstance(feature, OlderFeature)
        return self._older_features.get(feature, True) if is_older else super().get_preview_feature(feature)

    @property
    def _older_features(self) -> dict[OlderFeature, bool]:
        return vars(self).setdefault("_recorded_features", {})


class Builder(netloop.Builder):
    """A builder of TensorRT 10."""

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        """Create a network without layers."""
        return INetworkDefinition(self, flags)

    def create_builder_config(self) -> IBuilderConfig:
        """Create a config with the default settings."""
        return IBuilderConfig()

    def get_plugin_registry(self) -> IPluginRegistry:
        """Return the global registry of plugins."""
        return get_plugin_registry()


class IPluginRegistry(netloop.IPluginRegistry):
    """The registry of plugins, by the names of TensorRT 10."""

    @property
    def plugin_creator_list(self) -> list[Any]:
        """The creators, in the order in which they were registered."""
        return list(self.all_creators)

    def get_plugin_creator(self, type: str, version: str, plugin_namespace: str = "") -> Any:
        """Return the creator of a name, version and namespace; None if there is none."""
        return self.get_creator(type, version, plugin_namespace)


def get_plugin_registry() -> IPluginRegistry:
    """Return the registry of plugins, which all versions share."""
    registry = object.__new__(IPluginRegistry)
    object.__setattr__(registry, "__dict__", vars(netloop.get_plugin_registry()))
    return registry


def get_builder_plugin_registry(capability: netloop.EngineCapability) -> IPluginRegistry:
    """Return the registry of plugins for builds, the same for every capability."""
    netloop.get_builder_plugin_registry(capability)
    return get_plugin_registry()


class OnnxParser(netloop.OnnxParser):
    """The parser of TensorRT 10."""

    def parse_with_weight_descriptors(self, model: bytes) -> bool:
        """Add a model from bytes, of which the weights may be in the file that ``parse_from_file`` would read."""
        return self.parse(model)


class Refitter(netloop.Refitter):
    """The refitter of TensorRT 10, with dynamic ranges, which no engine has here."""

    def get_dynamic_range(self, tensor_name: str) -> tuple[float, float]:
        """No range: both ends are 0, as in TensorRT for a tensor without one."""
        return 0.0, 0.0

    def set_dynamic_range(self, tensor_name: str, range: Any) -> bool:
        """False: only add_quantize quantizes."""
        return False

    def get_tensors_with_dynamic_range(self) -> list[str]:
        """No names."""
        return []


class IAlgorithmSelector:
    """A selector of kernels, which is never called: XLA chooses them."""

    def select_algorithms(self, context: Any, choices: Sequence[Any]) -> list[int]:
        """The indices of the kernels that may be used."""
        return list(range(len(choices)))

    def report_algorithms(self, contexts: Sequence[Any], choices: Sequence[Any]) -> None:
        """Receive the kernels that were chosen."""
