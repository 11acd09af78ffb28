"""Nodes of an ONNX model that are plugins: their operator is the name of a creator in the registry."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from netloop.formats.onnx.importer.model import Model
from netloop.formats.onnx.importer.unknown_operators import is_known, nodes_of
from netloop.formats.shared.import_errors import present
from netloop.formats.shared.own_operators import OwnOperator
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition
from netloop.model.plugins.enums import PluginFieldType, TensorRTPhase
from netloop.model.plugins.fields import FIELD_TYPES, PluginField, PluginFieldCollection_
from netloop.model.plugins.interfaces import IPluginCreatorV3One, IPluginV3
from netloop.model.plugins.jax_plugin import JaxPluginCreator
from netloop.model.plugins.registry import get_plugin_registry
from netloop.values.diagnostics import quoted, require

SHAPE_INPUTS = "tensorrt_plugin_shape_input_indices"
"""The attribute of a node with the numbers of the inputs that are shape inputs of its plugin."""

OF_NODES = {"plugin_version", "plugin_namespace", SHAPE_INPUTS}
"""The attributes that say which plugin a node is, and how it is added."""

NUMBERS: Mapping[type, PluginFieldType] = {int: PluginFieldType.INT32, float: PluginFieldType.FLOAT32}
ARRAYS = {dtype: kind for kind, dtype in FIELD_TYPES.items() if kind is not PluginFieldType.CHAR}
"""The types of fields, by those of attributes of numbers and of tensors."""


def plugin_operators(model: Model, overrides: bool) -> dict[str, OwnOperator]:
    """The operators of a model that are plugins, with functions that add them, as those that a caller brings along.

    They are those that neither netloop nor ONNX knows, and functions of the model. With ``overrides``, which is
    ``OnnxParserFlag.ENABLE_PLUGIN_OVERRIDE``, those of ONNX are too, if there is a creator of their name.
    """
    names = {creator.name for creator in get_plugin_registry().all_creators}
    return {
        f"{node.domain}::{node.op}": partial(_added, node.op)
        for node in nodes_of(model)
        if node.op in names and (overrides or node.key in model.functions or not is_known(node))
    }


def _added(name: str, network: INetworkDefinition, inputs: list[ITensor | None], attributes: Any) -> Sequence[ITensor]:
    """Add the plugin of a node; return its outputs."""
    creator = _creator(name, attributes)
    tensors = [present(tensor, f"input {number} is left out") for number, tensor in enumerate(inputs)]
    plugin = _plugin(creator, name, attributes)
    shapes = attributes.get(SHAPE_INPUTS, [])
    values = [tensor for number, tensor in enumerate(tensors) if number not in shapes]
    layer = network.add_plugin_v3(values, [tensors[number] for number in shapes], plugin)
    return layer.outputs


def _creator(name: str, attributes: Mapping[str, Any]) -> IPluginCreatorV3One:
    registry = get_plugin_registry()
    version, namespace = attributes.get("plugin_version", "1"), attributes.get("plugin_namespace", "")
    others = [(one.plugin_version, one.plugin_namespace) for one in registry.all_creators if one.name == name]
    what = f"no plugin {quoted(name)} of version {version!r} is registered in the namespace {namespace!r}"
    fix = f"set plugin_version and plugin_namespace of the node to one of {others}"
    return present(registry.get_creator(name, version, namespace), what, fix=fix)


def _plugin(creator: IPluginCreatorV3One, name: str, attributes: Mapping[str, Any]) -> IPluginV3:
    """The plugin of a node, with the fields that its creator names."""
    if isinstance(creator, JaxPluginCreator):  # of which all attributes are parameters
        return creator(**{key: value for key, value in attributes.items() if key not in OF_NODES})
    wanted = [field.name for field in creator.field_names if field.name in attributes]
    fields = PluginFieldCollection_([_field(key, attributes[key]) for key in wanted])
    return creator.create_plugin(name, fields, TensorRTPhase.BUILD)


def _field(name: str, value: Any) -> PluginField:
    """An attribute of a node as a field: integers are INT32 and text is CHAR, as in TensorRT's parser."""
    if isinstance(value, str):
        return PluginField(name, value, PluginFieldType.CHAR)
    if isinstance(value, np.ndarray):
        return PluginField(name, value, ARRAYS.get(value.dtype, PluginFieldType.UNKNOWN))
    values: list[Any] = value if isinstance(value, list) else [value]
    kinds = {type(number) for number in values} or {int}
    require(
        kinds <= {*NUMBERS}, f"attribute {quoted(name)} is no field of a plugin: those are numbers, texts and tensors"
    )
    kind = NUMBERS[kinds.pop()]
    return PluginField(name, np.array(values, FIELD_TYPES[kind]), kind)
