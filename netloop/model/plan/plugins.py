"""Plugins in plans: name, version, namespace and fields, from which a registered creator makes the plugin again.

::

    {"name": "circular_pad", "version": "1", "namespace": "example",
     "fields": [{"name": "pads", "type": "INT32", "data": 3}]}

The data of a field is the number of an array of bytes. The plan contains no code: the creator is the reader's own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from netloop.model.layers.plugin import kernel_of
from netloop.model.plan.json_reader import JsonValue
from netloop.model.plugins.description import description
from netloop.model.plugins.enums import PluginFieldType, TensorRTPhase
from netloop.model.plugins.fields import PluginField, PluginFieldCollection_
from netloop.model.plugins.interfaces import IPluginCreatorV3One, IPluginV3
from netloop.model.plugins.kernel import calling
from netloop.model.plugins.registry import get_plugin_registry
from netloop.values.diagnostics import FileFormatError, Finding, LayerError, did_you_mean, quoted, reason
from netloop.values.types import Array

NAMES = ("name", "version", "namespace")


def write(plugin: IPluginV3, number_of: Callable[[Array], int]) -> dict[str, Any]:
    """Convert a plugin to JSON, with the numbers of the arrays of its fields.

    Raises:
        ValueError: it has no name, or raises an exception.
    """
    name, version, namespace, fields = description(plugin)
    return {
        "name": name,
        "version": version,
        "namespace": namespace,
        "fields": [_field(field, number_of) for field in fields],
    }


def _field(field: PluginField, number_of: Callable[[Array], int]) -> dict[str, Any]:
    data = np.frombuffer(field.data.tobytes(), np.uint8)
    return {"name": field.name, "type": field.type.name, "data": number_of(data)}


def read(node: JsonValue, array: Callable[[JsonValue], Array]) -> IPluginV3:
    """Make a plugin with its registered creator; ``array`` returns an array by its number.

    Raises:
        FileFormatError: the node does not describe a plugin, no creator is registered for it, or the creator fails.
    """
    parts = node.fields((*NAMES, "fields"))
    name, version, namespace = (parts[name].text() for name in NAMES)
    creator = _creator(node, name, version, namespace)
    fields = PluginFieldCollection_(_read_field(value, array) for value in parts["fields"].items())
    try:
        with calling(f"create_plugin of {type(creator).__name__} {quoted(name)}"):
            result: Any = creator.create_plugin(name, fields, TensorRTPhase.RUNTIME)
        if not isinstance(result, IPluginV3):
            raise LayerError(
                f"create_plugin of {type(creator).__name__} returned {quoted(result)}, which is not an IPluginV3"
            )
        kernel_of(result)
    except LayerError as error:
        where = f"{node.where}, plugin {quoted(name)}"
        raise FileFormatError(Finding("NL713", error.what, where, error.why, error.fix)) from error.__cause__
    return result


def _creator(node: JsonValue, name: str, version: str, namespace: str) -> IPluginCreatorV3One:
    registry = get_plugin_registry()
    one = registry.get_creator(name, version, namespace)
    if one is None:
        plugin = f"plugin {quoted(name)} of version {quoted(version)} in namespace {quoted(namespace)}"
        what = f"the plan has the {plugin}, and no creator is registered for it"
        hint = did_you_mean(name, {creator.name for creator in registry.all_creators} - {name})
        fix = f"register its creator before the plan is read{hint and f'; {hint}'}"
        raise FileFormatError(Finding("NL715", what, node.where, reason("NL715"), fix))
    return one


def _read_field(node: JsonValue, array: Callable[[JsonValue], Array]) -> PluginField:
    parts = node.fields(("name", "type", "data"))
    data, type = array(parts["data"]), parts["type"].member(PluginFieldType)
    try:
        return PluginField(parts["name"].text(), data.tobytes(), type)
    except ValueError as error:
        node.refuse(f"the data of the field does not fit its type: {error}")
