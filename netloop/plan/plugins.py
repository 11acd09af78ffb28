"""Plugins in plans: name, version, namespace and fields, from which a registered creator makes the plugin again.

::

    {"name": "circular_pad", "version": "1", "namespace": "example",
     "fields": [{"name": "pads", "type": "INT32", "data": 3}]}

The data of a field is the number of an array of bytes. The plan contains no code: the creator is the reader's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from netloop.checked_attributes import is_encodable
from netloop.diagnostics import FileFormatError, Finding, LayerError, did_you_mean, quoted, reason
from netloop.layers.plugin import kernel_of
from netloop.plan.json_reader import JsonValue
from netloop.plugins.enums import PluginCapabilityType, PluginFieldType, TensorRTPhase
from netloop.plugins.fields import PluginField, PluginFieldCollection_
from netloop.plugins.interfaces import IPluginCreatorV3One, IPluginV3, IPluginV3OneCore
from netloop.plugins.jax_plugin import JaxPlugin
from netloop.plugins.kernel import calling
from netloop.plugins.registry import get_plugin_registry
from netloop.types import Array

NAMES = ("name", "version", "namespace")


def write(plugin: IPluginV3, number_of: Callable[[Array], int]) -> dict[str, Any]:
    """Convert a plugin to JSON, with the numbers of the arrays of its fields.

    Raises:
        ValueError: it has no name, or raises an exception.
    """
    kind = type(plugin).__name__
    try:
        with calling(f"get_capability_interface of {kind}"):
            core: Any = plugin.get_capability_interface(PluginCapabilityType.CORE)
            source: Any = plugin
            if not isinstance(plugin, JaxPlugin):
                source = plugin.get_capability_interface(PluginCapabilityType.RUNTIME)
        with calling(f"get_fields_to_serialize of {kind}"):
            fields = PluginFieldCollection_(source.get_fields_to_serialize())
    except LayerError as error:
        raise ValueError(f"fails: {error.what}") from error.__cause__
    return {
        **dict(zip(NAMES, _names(plugin, core), strict=True)),
        "fields": [_field(each, number_of) for each in fields],
    }


def _names(plugin: IPluginV3, core: Any) -> tuple[str, str, str]:
    if not isinstance(core, IPluginV3OneCore):
        raise ValueError(f"has the CORE capability {quoted(core)}, which is not an IPluginV3OneCore")
    names = core.plugin_name, core.plugin_version, core.plugin_namespace
    if not all(isinstance(each, str) and is_encodable(each) for each in names):
        what = "which must be strings that UTF-8 can encode"
        raise ValueError(f"has the name, version and namespace {quoted(names)}, {what}")
    if not names[0]:
        how = "netloop.jax_plugin(name) before the function" if isinstance(plugin, JaxPlugin) else "plugin_name"
        raise ValueError(f"has no name, by which a plan could identify it; give it one with {how}")
    return names


def _field(field: PluginField, number_of: Callable[[Array], int]) -> dict[str, Any]:
    data = np.frombuffer(field.data.tobytes(), np.uint8)
    return {"name": field.name, "type": field.type.name, "data": number_of(data)}


def read(node: JsonValue, array: Callable[[JsonValue], Array]) -> IPluginV3:
    """Make a plugin with its registered creator; ``array`` returns an array by its number.

    Raises:
        FileFormatError: the node does not describe a plugin, no creator is registered for it, or the creator fails.
    """
    parts = node.fields((*NAMES, "fields"))
    name, version, namespace = (parts[each].text() for each in NAMES)
    creator = _creator(node, name, version, namespace)
    fields = PluginFieldCollection_(_read_field(each, array) for each in parts["fields"].items())
    try:
        with calling(f"create_plugin of {type(creator).__name__} {quoted(name)}"):
            made: Any = creator.create_plugin(name, fields, TensorRTPhase.RUNTIME)
        if not isinstance(made, IPluginV3):
            raise LayerError(
                f"create_plugin of {type(creator).__name__} returned {quoted(made)}, which is not an IPluginV3"
            )
        kernel_of(made)
    except LayerError as error:
        where = f"{node.where}, plugin {quoted(name)}"
        raise FileFormatError(Finding("NL713", error.what, where, error.why, error.fix)) from error.__cause__
    return made


def _creator(node: JsonValue, name: str, version: str, namespace: str) -> IPluginCreatorV3One:
    registry = get_plugin_registry()
    found = registry.get_creator(name, version, namespace)
    if found is None:
        known = f"plugin {quoted(name)} of version {quoted(version)} in namespace {quoted(namespace)}"
        what = f"the plan has the {known}, and no creator is registered for it"
        hint = did_you_mean(name, {each.name for each in registry.all_creators} - {name})
        fix = f"register its creator before the plan is read{hint and f'; {hint}'}"
        raise FileFormatError(Finding("NL715", what, node.where, reason("NL715"), fix))
    return found


def _read_field(node: JsonValue, array: Callable[[JsonValue], Array]) -> PluginField:
    parts = node.fields(("name", "type", "data"))
    data, type = array(parts["data"]), parts["type"].member(PluginFieldType)
    try:
        return PluginField(parts["name"].text(), data.tobytes(), type)
    except ValueError as error:
        node.refuse(f"the data of the field does not fit its type: {error}")
