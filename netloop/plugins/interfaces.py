"""What plugins and their creators derive from, as in TensorRT: the family of IPluginV3.

All sizes and types come to a plugin as in TensorRT, and so do the addresses of its tensors, but that here they are
always addresses of the host's memory.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from netloop.enums import DataType
from netloop.plugins.enums import APILanguage, PluginCapabilityType, TensorRTPhase
from netloop.plugins.expressions import DimsExprs, IExprBuilder
from netloop.plugins.fields import (
    DynamicPluginTensorDesc,
    PluginFieldCollection,
    PluginFieldCollection_,
    PluginTensorDesc,
)


@dataclass
class InterfaceInfo:
    """The name and version of an interface."""

    kind: str = ""
    major: int = 1
    minor: int = 0


class IVersionedInterface:
    """What is written against a version of an interface."""

    INTERFACE: ClassVar[str] = ""

    @property
    def api_language(self) -> APILanguage:
        """PYTHON."""
        return APILanguage.PYTHON

    @property
    def interface_info(self) -> InterfaceInfo:
        """The name and version of the interface."""
        return InterfaceInfo(self.INTERFACE)


def _to_override(plugin: object, method: str) -> NoReturn:
    raise NotImplementedError(f"{type(plugin).__name__} has to override {method}")


class IPluginCapability(IVersionedInterface):
    """A part of a plugin: core, build or runtime."""


class IPluginResourceContext:
    """What a plugin is attached to."""

    @property
    def error_recorder(self) -> None:
        """None: errors are exceptions."""

    @property
    def gpu_allocator(self) -> None:
        """None: the memory is that of the host, and Python's to give."""


class IPluginV3(IVersionedInterface):
    """A plugin: a layer that a user writes. Derive from it and from its three parts."""

    INTERFACE = "PLUGIN_V3"

    def get_capability_interface(self, type: PluginCapabilityType) -> Any:
        """The part of a kind; as a rule the plugin itself, which is all three."""
        _to_override(self, "get_capability_interface")

    def clone(self) -> IPluginV3:
        """A plugin with equal attributes."""
        _to_override(self, "clone")

    def destroy(self) -> None:
        """Nothing: Python frees what is not used."""


class IPluginV3OneCore(IPluginCapability):
    """What a plugin is called.

    Attributes:
        plugin_name, plugin_version, plugin_namespace: what its creator is found by.
    """

    INTERFACE = "PLUGIN_V3ONE_CORE"

    plugin_name: str = ""
    plugin_version: str = ""
    plugin_namespace: str = ""


class IPluginV3OneBuild(IPluginCapability):
    """What a plugin says while a network is built.

    Attributes:
        num_outputs: the number of its outputs.
        format_combination_limit, metadata_string, timing_cache_id: recorded, and of no effect.
    """

    INTERFACE = "PLUGIN_V3ONE_BUILD"
    DEFAULT_FORMAT_COMBINATION_LIMIT = 100

    num_outputs: int = 0
    format_combination_limit: int = DEFAULT_FORMAT_COMBINATION_LIMIT
    metadata_string: str = ""
    timing_cache_id: str = ""

    def get_output_data_types(self, input_types: Sequence[DataType]) -> list[DataType]:
        """The element types of the outputs."""
        _to_override(self, "get_output_data_types")

    def get_output_shapes(
        self, inputs: Sequence[DimsExprs], shape_inputs: Sequence[DimsExprs], expr_builder: IExprBuilder
    ) -> list[DimsExprs]:
        """The shapes of the outputs.

        Args:
            inputs: the shapes of the inputs.
            shape_inputs: the values of the shape inputs.
            expr_builder: makes lengths of lengths.
        """
        _to_override(self, "get_output_shapes")

    def supports_format_combination(self, pos: int, in_out: Sequence[DynamicPluginTensorDesc], num_inputs: int) -> bool:
        """Whether the plugin can work on tensor number ``pos``, inputs first, given those before."""
        _to_override(self, "supports_format_combination")

    def configure_plugin(self, inp: Sequence[DynamicPluginTensorDesc], out: Sequence[DynamicPluginTensorDesc]) -> None:
        """Take what the tensors are, before any run of such shapes."""

    def get_workspace_size(self, inp: Sequence[DynamicPluginTensorDesc], out: Sequence[DynamicPluginTensorDesc]) -> int:
        """How many bytes of memory a run needs beside its tensors."""
        return 0

    def get_valid_tactics(self) -> list[int]:
        """The ways to compute that the plugin knows, positive numbers; here the first is taken."""
        return []


class IPluginV3OneRuntime(IPluginCapability):
    """What a plugin does when a network runs."""

    INTERFACE = "PLUGIN_V3ONE_RUNTIME"

    def attach_to_context(self, resource_context: IPluginResourceContext) -> Any:
        """The plugin that runs in a context, as a rule a clone."""
        _to_override(self, "attach_to_context")

    def set_tactic(self, tactic: int) -> None:
        """Compute in a way of ``get_valid_tactics``; 0 if there is none."""

    def on_shape_change(self, inp: Sequence[PluginTensorDesc], out: Sequence[PluginTensorDesc]) -> None:
        """Take the shapes of the runs to come; a length that an output tells is -1."""

    def enqueue(
        self,
        input_desc: Sequence[PluginTensorDesc],
        output_desc: Sequence[PluginTensorDesc],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
    ) -> None:
        """Compute; an exception, or a number other than 0 returned, fails the layer.

        Args:
            input_desc: what the inputs are.
            output_desc: what the outputs are.
            inputs: the addresses of the inputs, row-major, in the memory of the host.
            outputs: the addresses of the outputs, alike; there is room for the largest size, and all is 0.
            workspace: the address of the memory that ``get_workspace_size`` asked for.
            stream: 0.
        """
        _to_override(self, "enqueue")

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        """What a plan keeps of the plugin; its creator is given it when the plan is read."""
        _to_override(self, "get_fields_to_serialize")


class IPluginCreatorInterface(IVersionedInterface):
    """What makes plugins."""


class IPluginCreatorV3One(IPluginCreatorInterface):
    """Makes plugins of one kind; derive from it and override ``create_plugin``.

    Attributes:
        name, plugin_version, plugin_namespace: what it is found by.
        field_names: the fields that its plugins have.
    """

    INTERFACE = "PLUGIN CREATOR_V3ONE"

    name: str = ""
    plugin_version: str = ""
    plugin_namespace: str = ""
    field_names: Any = ()

    def create_plugin(self, name: str, field_collection: PluginFieldCollection_, phase: TensorRTPhase) -> IPluginV3:
        """A plugin with some fields."""
        _to_override(self, "create_plugin")


class IPluginResource(IVersionedInterface, ABC):
    """What several plugins share; see ``IPluginRegistry.acquire_plugin_resource``."""

    INTERFACE = "IPluginResource"

    def clone(self) -> IPluginResource:
        """The one that is kept."""
        _to_override(self, "clone")

    def release(self) -> None:
        """Give back what it holds."""
        _to_override(self, "release")
