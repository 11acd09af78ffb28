"""TensorRT's base classes of plugins and their creators: the family of IPluginV3.

A plugin receives sizes, types and addresses of tensors as in TensorRT, except that addresses are always valid on the
host: where there is a GPU they are managed memory, which kernels read and write too.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from netloop.model.plugins.enums import APILanguage, PluginCapabilityType, TensorRTPhase
from netloop.model.plugins.expressions import DimsExprs, IExprBuilder
from netloop.model.plugins.fields import (
    DynamicPluginTensorDesc,
    PluginFieldCollection,
    PluginFieldCollection_,
    PluginTensorDesc,
)
from netloop.values.enums import DataType

NO_ALIAS = -1


@dataclass
class InterfaceInfo:
    """The name and version of an interface."""

    kind: str = ""
    major: int = 1
    minor: int = 0


class IVersionedInterface:
    """A class that implements a version of an interface."""

    INTERFACE: ClassVar[str] = ""

    @property
    def api_language(self) -> APILanguage:
        """PYTHON."""
        return APILanguage.PYTHON

    @property
    def interface_info(self) -> InterfaceInfo:
        """The name and version of the interface."""
        return InterfaceInfo(self.INTERFACE)


def to_override(plugin: object, method: str) -> NoReturn:
    """Say that a plugin has to override a method."""
    raise NotImplementedError(f"{type(plugin).__name__} must override {method}")


class IPluginCapability(IVersionedInterface):
    """A part of a plugin: core, build or runtime."""


class IPluginResourceContext:
    """The context that a plugin is attached to."""

    @property
    def error_recorder(self) -> None:
        """None: errors are exceptions."""

    @property
    def gpu_allocator(self) -> None:
        """None: Python allocates the memory, on the host."""


class IPluginV3(IVersionedInterface):
    """A plugin, a layer that a user writes. Derive from it and from its three parts."""

    INTERFACE = "PLUGIN_V3"

    def get_capability_interface(self, type: PluginCapabilityType) -> Any:
        """Return one of the three parts; usually the plugin itself is all three."""
        to_override(self, "get_capability_interface")

    def clone(self) -> IPluginV3:
        """Return a plugin with equal attributes."""
        to_override(self, "clone")

    def destroy(self) -> None:
        """Do nothing: Python frees unused objects."""


class IPluginV3OneCore(IPluginCapability):
    """The name of a plugin.

    Attributes:
        plugin_name, plugin_version, plugin_namespace: the key of its creator.
    """

    INTERFACE = "PLUGIN_V3ONE_CORE"

    plugin_name: str = ""
    plugin_version: str = ""
    plugin_namespace: str = ""


class IPluginV3OneBuild(IPluginCapability):
    """The part of a plugin that is used while a network is built.

    Attributes:
        num_outputs: the number of its outputs.
        format_combination_limit, metadata_string, timing_cache_id: recorded, without effect.
    """

    INTERFACE = "PLUGIN_V3ONE_BUILD"
    DEFAULT_FORMAT_COMBINATION_LIMIT = 100

    num_outputs: int = 0
    format_combination_limit: int = DEFAULT_FORMAT_COMBINATION_LIMIT
    metadata_string: str = ""
    timing_cache_id: str = ""

    def get_output_data_types(self, input_types: Sequence[DataType]) -> list[DataType]:
        """Return the element types of the outputs."""
        to_override(self, "get_output_data_types")

    def get_output_shapes(
        self, inputs: Sequence[DimsExprs], shape_inputs: Sequence[DimsExprs], expr_builder: IExprBuilder
    ) -> list[DimsExprs]:
        """Return the shapes of the outputs.

        Args:
            inputs: the shapes of the inputs.
            shape_inputs: the values of the shape inputs.
            expr_builder: builds expressions of lengths.
        """
        to_override(self, "get_output_shapes")

    def supports_format_combination(self, pos: int, in_out: Sequence[DynamicPluginTensorDesc], num_inputs: int) -> bool:
        """Whether the plugin supports tensor ``pos``, counted from the inputs on, given the tensors before it."""
        to_override(self, "supports_format_combination")

    def configure_plugin(self, inp: Sequence[DynamicPluginTensorDesc], out: Sequence[DynamicPluginTensorDesc]) -> None:
        """Receive the descriptions of the tensors, before any run with these shapes."""

    def get_workspace_size(self, inp: Sequence[DynamicPluginTensorDesc], out: Sequence[DynamicPluginTensorDesc]) -> int:
        """Return the number of bytes that a run needs in addition to its tensors."""
        return 0

    def get_valid_tactics(self) -> list[int]:
        """Return the algorithms that the plugin has, as positive numbers; netloop uses the first."""
        return []


class IPluginV3OneBuildV2(IPluginV3OneBuild):
    """An IPluginV3OneBuild of a plugin that changes inputs in place; the network's own tensors keep their values."""

    def get_aliased_input(self, output_index: int) -> int:
        """Return the index of the input that an output shares its memory with; -1 for memory of its own."""
        return NO_ALIAS


class IPluginV3OneRuntime(IPluginCapability):
    """The part of a plugin that is used while a network runs."""

    INTERFACE = "PLUGIN_V3ONE_RUNTIME"

    def attach_to_context(self, resource_context: IPluginResourceContext) -> Any:
        """Return the plugin that runs in a context, usually a clone."""
        to_override(self, "attach_to_context")

    def set_tactic(self, tactic: int) -> None:
        """Receive the algorithm, one of ``get_valid_tactics``; 0 if there are none."""

    def on_shape_change(self, inp: Sequence[PluginTensorDesc], out: Sequence[PluginTensorDesc]) -> None:
        """Receive the shapes of the following runs, in which data-dependent lengths are -1."""

    def enqueue(
        self,
        input_desc: Sequence[PluginTensorDesc],
        output_desc: Sequence[PluginTensorDesc],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
        /,
    ) -> None:
        """Compute the outputs; an exception, or a return value other than 0, is an error.

        Args:
            input_desc: the descriptions of the inputs.
            output_desc: the descriptions of the outputs.
            inputs: the addresses of the inputs, row-major.
            outputs: the addresses of the outputs, likewise; they have room for the largest size, and are 0.
            workspace: the address of the memory that ``get_workspace_size`` asked for.
            stream: 0, the default stream, which is waited for afterwards.
        """
        to_override(self, "enqueue")

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        """Return the fields that a plan stores; the creator receives them when the plan is read."""
        to_override(self, "get_fields_to_serialize")


class IPluginCreatorInterface(IVersionedInterface):
    """The base class of creators of plugins."""


class IPluginCreatorV3One(IPluginCreatorInterface):
    """A creator of plugins of one kind; derive from it and override ``create_plugin``.

    Attributes:
        name, plugin_version, plugin_namespace: its key.
        field_names: the fields that its plugins have.
    """

    INTERFACE = "PLUGIN CREATOR_V3ONE"

    name: str = ""
    plugin_version: str = ""
    plugin_namespace: str = ""
    field_names: Any = ()

    def create_plugin(self, name: str, field_collection: PluginFieldCollection_, phase: TensorRTPhase) -> IPluginV3:
        """Return a plugin with the given fields."""
        to_override(self, "create_plugin")


class IPluginResource(IVersionedInterface, ABC):
    """A resource that several plugins share; see ``IPluginRegistry.acquire_plugin_resource``."""

    INTERFACE = "IPluginResource"

    def clone(self) -> IPluginResource:
        """Return the copy that the registry keeps."""
        to_override(self, "clone")

    def release(self) -> None:
        """Release the resource."""
        to_override(self, "release")
