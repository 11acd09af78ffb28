"""The identity of a plugin: the name of its creator, and the fields from which the creator makes it again."""

from typing import Any, NamedTuple

from netloop.model.plugins.enums import PluginCapabilityType
from netloop.model.plugins.fields import PluginField, PluginFieldCollection_
from netloop.model.plugins.interfaces import IPluginV3, IPluginV3OneCore
from netloop.model.plugins.jax_plugin import JaxPlugin
from netloop.model.plugins.kernel import calling
from netloop.values.checked_attributes import is_encodable
from netloop.values.diagnostics import LayerError, quoted


class Description(NamedTuple):
    """The name, version and namespace of a plugin's creator, and the fields that the plugin serializes."""

    name: str
    version: str
    namespace: str
    fields: list[PluginField]


def description(plugin: IPluginV3) -> Description:
    """Describe a plugin.

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
    return Description(*_names(plugin, core), list(fields))


def _names(plugin: IPluginV3, core: Any) -> tuple[str, str, str]:
    if not isinstance(core, IPluginV3OneCore):
        raise ValueError(f"has the CORE capability {quoted(core)}, which is not an IPluginV3OneCore")
    names = core.plugin_name, core.plugin_version, core.plugin_namespace
    if not all(isinstance(name, str) and is_encodable(name) for name in names):
        what = "which must be strings that UTF-8 can encode"
        raise ValueError(f"has the name, version and namespace {quoted(names)}, {what}")
    if not names[0]:
        how = "netloop.jax_plugin(name) before the function" if isinstance(plugin, JaxPlugin) else "plugin_name"
        raise ValueError(f"has no name, by which it could be found again; give it one with {how}")
    return names
