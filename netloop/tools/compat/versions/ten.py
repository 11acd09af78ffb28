"""TensorRT 10.16: the names that version 11 lacks, and what older meanings of names are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import netloop
from netloop.api.logger import ILogger
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.pointwise import IIdentityLayer
from netloop.model.network import sources_of_values
from netloop.tools.compat.versions.enumerations import (
    NetworkDefinitionCreationFlag10,
    OlderCreationFlag,
    OlderFeature,
    OlderNames,
    TacticSource,
)
from netloop.tools.compat.versions.older_plugins import (
    CreatorOfVersion3,
    IPluginCreator,
    IPluginV2DynamicExt,
    as_older,
    as_version_3,
)
from netloop.tools.compat.versions.weak_types import WeakTypes, cast_mixtures, widen_outputs
from netloop.values.checked_attributes import whole
from netloop.values.enums import DataType

__version__ = "10.16.1.11"
"""The release of TensorRT that the names match."""

NAMES = (
    *("Builder", "IAlgorithmSelector", "IBuilderConfig", "INetworkDefinition", "IPluginRegistry", "OnnxParser"),
    *("ICudaEngine", "NetworkDefinitionCreationFlag", "PreviewFeature", "Refitter", "Runtime", "TacticSource"),
    *("get_builder_plugin_registry", "get_plugin_registry"),
)
"""The names of the module that are others than those of version 11."""

NetworkDefinitionCreationFlag = NetworkDefinitionCreationFlag10
OBJECTS: dict[str, Any] = {"IPluginCreator": IPluginCreator, "IPluginV2DynamicExt": IPluginV2DynamicExt}
"""Names of the module that are defined elsewhere."""

PreviewFeature = OlderNames(netloop.PreviewFeature, MULTIDEVICE_RUNTIME_10_16=OlderFeature.MULTIDEVICE_RUNTIME_10_16)
ON_BY_DEFAULT = {*OlderFeature} - {OlderFeature.MULTIDEVICE_RUNTIME_10_16}
"""The features that are enabled unless a script disables them."""


T = TypeVar("T")


def as_version(thing: Any, version: type[T]) -> T:
    """Make an object of TensorRT 11's interface one of a class derived from its own, and return it."""
    object.__setattr__(thing, "__class__", version)
    return thing


class INetworkDefinition(netloop.INetworkDefinition):
    """A network of TensorRT 10, in which the types of outputs can be set.

    Without STRONGLY_TYPED its layers may mix floating-point types.

    Attributes:
        typed_outputs: the tensors whose type was set.
    """

    UNLISTED = frozenset({"typed_outputs"})

    typed_outputs: set[ITensor]

    def __init__(self, builder: Any = None, flags: int = 0) -> None:
        super().__init__(builder, flags)
        vars(self)["typed_outputs"] = set()
        if not self.flags >> int(OlderCreationFlag.STRONGLY_TYPED) & 1:
            vars(self)["types"] = WeakTypes()
            self.types.owner = self

    def convert(self, tensor: ITensor, dtype: DataType) -> None:
        """Take the type of a tensor: an identity converts to that of its output, as TensorRT 7 to 10 do."""
        producer = tensor.producer
        self.typed_outputs.add(tensor)
        if isinstance(producer, IIdentityLayer) and dtype in IIdentityLayer.OUTPUT_TYPES and not tensor.is_converted:
            producer.set_output_type(0, dtype)
        else:
            super().convert(tensor, dtype)

    def is_shape_tensor(self, tensor: ITensor) -> bool:
        """Whether it is one for TensorRT 8 to 10: the starts and strides of slices are, which decide no shape here."""
        slices = (layer for layer in self.layers if isinstance(layer, netloop.ISliceLayer))
        inputs = (layer.get_input(index) for layer in slices for index in (1, 3))
        return super().is_shape_tensor(tensor) or tensor in sources_of_values(filter(None, inputs))

    def add_plugin_v2(self, inputs: Sequence[ITensor], plugin: Any) -> Any:
        """Add a plugin that derives from IPluginV2DynamicExt, or one of version 3."""
        plugin = as_version_3(plugin)
        is_plugin = isinstance(plugin, netloop.IPluginV3)
        return self.add_plugin_v3(inputs, (), plugin) if is_plugin else super().add_plugin_v2(inputs, plugin)


class IBuilderConfig(netloop.IBuilderConfig):
    """A config of TensorRT 10."""

    TACTIC_SOURCES = TacticSource
    DEFAULT_TACTIC_SOURCES = 0b11000

    def set_preview_feature(self, feature: Any, enable: bool) -> None:
        """Enable or disable a feature."""
        if isinstance(feature, OlderFeature):
            self._older_features[feature] = bool(enable)
        else:
            super().set_preview_feature(feature, enable)

    def get_preview_feature(self, feature: Any) -> bool:
        """Whether a feature is enabled."""
        is_older = isinstance(feature, OlderFeature)
        return (
            self._older_features.get(feature, feature in ON_BY_DEFAULT)
            if is_older
            else super().get_preview_feature(feature)
        )

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

    def build_engine_with_config(self, network: Any, config: Any) -> ICudaEngine | Any:
        """Build the engine of a network; None, with the errors in the log, if it is invalid."""
        engine = super().build_engine_with_config(_strongly_typed(network), config)
        return None if engine is None else as_version(engine, ICudaEngine)

    def build_serialized_network(self, network: Any, config: Any) -> Any:
        """Build the plan of a network; None, with the errors in the log, if it is invalid."""
        return super().build_serialized_network(_strongly_typed(network), config)

    def get_plugin_registry(self) -> IPluginRegistry:
        """Return the global registry of plugins."""
        return get_plugin_registry()


def _strongly_typed(network: Any) -> Any:
    """A network, with casts before the layers that mix types and after outputs of FP8 and FP4."""
    if isinstance(network, INetworkDefinition):
        cast_mixtures(network)
        widen_outputs(network, network.typed_outputs)
    return network


class Runtime(netloop.Runtime):
    """A runtime of TensorRT 10."""

    def deserialize_cuda_engine(self, *serialized_engine: Any, **named: Any) -> Any:
        """Deserialize a plan; None, with the reason in the log, if it is damaged or not a plan."""
        engine = super().deserialize_cuda_engine(*serialized_engine, **named)
        return None if engine is None else as_version(engine, ICudaEngine)


class ICudaEngine(netloop.ICudaEngine):
    """An engine of TensorRT 10, whose weights can be streamed by its first names for that too."""

    @property
    def minimum_weight_streaming_budget(self) -> int:
        """0: weights stay on the device."""
        return 0

    @property
    def weight_streaming_budget(self) -> int:
        """The budget that was set last, in bytes; -1 lets TensorRT choose. It has no effect."""
        return vars(self).get("_first_budget", 0)

    @weight_streaming_budget.setter
    def weight_streaming_budget(self, budget: int) -> None:
        self._first_budget = whole(-1)("weight_streaming_budget", budget)
        self.log(ILogger.INFO, "no effect in netloop, because weights stay on the device: weight_streaming_budget")


class IPluginRegistry(netloop.IPluginRegistry):
    """The registry of plugins, by the names of TensorRT 10."""

    @property
    def plugin_creator_list(self) -> list[Any]:
        """The creators, in the order in which they were registered."""
        return [as_older(creator) for creator in self.all_creators]

    def get_plugin_creator(self, type: str, version: str, plugin_namespace: str = "") -> Any:
        """Return the creator of a name, version and namespace; None if there is none."""
        return as_older(self.get_creator(type, version, plugin_namespace))

    def register_creator(self, creator: Any, plugin_namespace: str = "") -> bool:
        """Register a creator in a namespace, by default its own; return False if the name is taken."""
        is_older = isinstance(creator, IPluginCreator)
        return super().register_creator(CreatorOfVersion3(creator) if is_older else creator, plugin_namespace)

    def deregister_creator(self, creator: Any) -> bool:
        """Remove a creator; return False if it is not registered."""
        registered = (one for one in self.all_creators if as_older(one) is creator)
        return super().deregister_creator(next(registered, creator))


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
