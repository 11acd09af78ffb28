"""Plugins of TensorRT 8 to 10: ``IPluginV2DynamicExt``, one class with all methods of a plugin, and its creator.

A network has them as plugins of version 3, each method of which calls the older one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import netloop
from netloop.model.plugins.enums import PluginCapabilityType, PluginFieldType, TensorRTPhase
from netloop.model.plugins.fields import PluginField, PluginFieldCollection, PluginFieldCollection_
from netloop.model.plugins.interfaces import to_override

DATA = "serialized"
"""The only field of a plugin in a plan, which has the bytes of ``serialize``."""


class IPluginV2DynamicExt:
    """A plugin of TensorRT 8 to 10; derive from it.

    Attributes:
        plugin_type, plugin_version, plugin_namespace: the key of its creator.
        num_outputs: the number of its outputs.
    """

    plugin_type: str = ""
    plugin_version: str = ""
    plugin_namespace: str = ""
    num_outputs: int = 0

    def clone(self) -> IPluginV2DynamicExt:
        """Return a plugin with equal attributes."""
        to_override(self, "clone")

    def initialize(self) -> Any:
        """Prepare for runs."""

    def terminate(self) -> None:
        """Release what ``initialize`` took; never called, because Python frees unused objects."""

    def destroy(self) -> None:
        """Do nothing: Python frees unused objects."""

    def get_output_data_type(self, index: int, input_types: Sequence[netloop.DataType]) -> netloop.DataType:
        """Return the element type of an output."""
        to_override(self, "get_output_data_type")

    def get_output_dimensions(
        self, output_index: int, inputs: Sequence[netloop.DimsExprs], expr_builder: netloop.IExprBuilder
    ) -> netloop.DimsExprs:
        """Return the shape of an output."""
        to_override(self, "get_output_dimensions")

    def supports_format_combination(
        self, pos: int, in_out: Sequence[netloop.PluginTensorDesc], num_inputs: int
    ) -> bool:
        """Whether the plugin supports tensor ``pos``, counted from the inputs on, given the tensors before it."""
        to_override(self, "supports_format_combination")

    def configure_plugin(
        self, pos: Sequence[netloop.DynamicPluginTensorDesc], in_out: Sequence[netloop.DynamicPluginTensorDesc]
    ) -> None:
        """Receive the descriptions of the tensors, before any run with these shapes."""

    def get_workspace_size(
        self, in_out: Sequence[netloop.PluginTensorDesc], outputs: Sequence[netloop.PluginTensorDesc]
    ) -> int:
        """Return the number of bytes that a run needs in addition to its tensors."""
        return 0

    def enqueue(
        self,
        input_desc: Sequence[netloop.PluginTensorDesc],
        output_desc: Sequence[netloop.PluginTensorDesc],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
    ) -> Any:
        """Compute the outputs, as the ``enqueue`` of version 3 does."""
        to_override(self, "enqueue")

    def get_serialization_size(self) -> int:
        """Return the number of bytes of ``serialize``."""
        return len(self.serialize())

    def serialize(self) -> bytes | str:
        """Return the bytes that a plan stores, or their text, from which the creator makes a plugin."""
        return b""


class IPluginCreator:
    """A creator of plugins of one kind; derive from it.

    Attributes:
        name, plugin_version, plugin_namespace: its key.
        field_names: the fields that its plugins have.
    """

    name: str = ""
    plugin_version: str = ""
    plugin_namespace: str = ""
    field_names: Any = ()

    def create_plugin(self, name: str, field_collection: PluginFieldCollection_) -> Any:
        """Return a plugin with the given fields."""
        to_override(self, "create_plugin")

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> Any:
        """Return the plugin of which a plan has the bytes."""
        to_override(self, "deserialize_plugin")


class PluginOfVersion3(
    netloop.IPluginV3, netloop.IPluginV3OneCore, netloop.IPluginV3OneBuild, netloop.IPluginV3OneRuntime
):
    """A plugin of version 3 that calls an older one."""

    def __init__(self, older: IPluginV2DynamicExt) -> None:
        self.older = older
        self.plugin_name, self.plugin_version = older.plugin_type, older.plugin_version
        self.plugin_namespace, self.num_outputs = older.plugin_namespace, older.num_outputs
        self.enqueue = older.enqueue

    def get_capability_interface(self, type: PluginCapabilityType) -> PluginOfVersion3:
        return self

    def clone(self) -> PluginOfVersion3:
        return PluginOfVersion3(self.older.clone())

    def get_output_data_types(self, input_types: Sequence[netloop.DataType]) -> list[netloop.DataType]:
        return [self.older.get_output_data_type(index, input_types) for index in range(self.num_outputs)]

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, expr_builder: Any) -> list[netloop.DimsExprs]:
        return [self.older.get_output_dimensions(index, inputs, expr_builder) for index in range(self.num_outputs)]

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        return self.older.supports_format_combination(pos, [tensor.desc for tensor in in_out], num_inputs)

    def configure_plugin(self, inp: Any, out: Any) -> None:
        self.older.configure_plugin(inp, out)

    def get_workspace_size(self, inp: Any, out: Any) -> int:
        return self.older.get_workspace_size([tensor.desc for tensor in inp], [tensor.desc for tensor in out])

    def attach_to_context(self, resource_context: Any) -> PluginOfVersion3:
        attached = self.clone()
        attached.older.initialize()
        return attached

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        return PluginFieldCollection([PluginField(DATA, self.older.serialize(), PluginFieldType.CHAR)])


class CreatorOfVersion3(netloop.IPluginCreatorV3One):
    """A creator of version 3 that calls an older one."""

    def __init__(self, older: IPluginCreator) -> None:
        self.older = older
        self.name, self.plugin_version, self.plugin_namespace = older.name, older.plugin_version, older.plugin_namespace
        self.field_names = older.field_names

    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection_, phase: TensorRTPhase
    ) -> netloop.IPluginV3:
        if phase is TensorRTPhase.BUILD:
            return as_version_3(self.older.create_plugin(name, field_collection))
        (data,) = (field.data.tobytes() for field in field_collection if field.name == DATA)
        return as_version_3(self.older.deserialize_plugin(name, data))


def as_version_3(plugin: Any) -> Any:
    """A plugin for ``add_plugin_v3``; anything else as it is."""
    return PluginOfVersion3(plugin) if isinstance(plugin, IPluginV2DynamicExt) else plugin


def as_older(creator: Any) -> Any:
    """A creator as the script registered it."""
    return creator.older if isinstance(creator, CreatorOfVersion3) else creator
