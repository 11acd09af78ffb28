"""The registry of the creators of plugins."""

from typing import Any, NoReturn

from netloop.model.plugins.interfaces import IPluginCreatorInterface, IPluginCreatorV3One, IPluginResource
from netloop.model.plugins.unavailable import V3, refuse
from netloop.values.checked_attributes import CheckedAttributes
from netloop.values.unpicklable import Unpicklable

Key = tuple[str, str, str]


class IPluginRegistry(Unpicklable, CheckedAttributes):
    """The creators of plugins, by name, version and namespace; there is one, ``get_plugin_registry()``.

    Attributes:
        error_recorder: recorded, without effect.
        parent_search_enabled: recorded, without effect: there is no parent registry.
    """

    error_recorder: Any = None
    parent_search_enabled: bool = True

    def __init__(self) -> None:
        self._creators: dict[Key, IPluginCreatorV3One] = {}
        self._resources: dict[str, tuple[IPluginResource, int]] = {}

    @property
    def all_creators(self) -> list[IPluginCreatorV3One]:
        """The creators, in the order in which they were registered."""
        return list(self._creators.values())

    @property
    def all_creators_recursive(self) -> list[IPluginCreatorV3One]:
        """The creators of this registry, which has no parent."""
        return self.all_creators

    def register_creator(self, creator: IPluginCreatorInterface, plugin_namespace: str = "") -> bool:
        """Register a creator in a namespace, by default its own; return False if the name is taken.

        Raises:
            TypeError: it is not an ``IPluginCreatorV3One``.
            ValueError: it has no name.
        """
        if not isinstance(creator, IPluginCreatorV3One):
            raise TypeError(f"creator must be an object that derives from IPluginCreatorV3One, not {creator!r}")
        for name in ("name", "plugin_version", "plugin_namespace"):
            if not isinstance(getattr(creator, name), str):
                raise TypeError(f"{name} of {type(creator).__name__} must be a str, not {getattr(creator, name)!r}")
        if not creator.name:
            raise ValueError(f"{type(creator).__name__} has no name")
        key = creator.name, creator.plugin_version, plugin_namespace or creator.plugin_namespace
        if key in self._creators:
            return False
        creator.plugin_namespace = key[2]
        self._creators[key] = creator
        return True

    def load_library(self, plugin_path: str) -> NoReturn:
        """Refuse: libraries of plugins are compiled for NVIDIA's devices.

        Raises:
            NetloopError: always.
        """
        refuse(f"a registry of netloop loads no libraries, such as {plugin_path!r}", V3)

    def deregister_library(self, handle: Any) -> NoReturn:
        """Refuse, as ``load_library`` does.

        Raises:
            NetloopError: always.
        """
        refuse("a registry of netloop has no libraries", V3)

    def deregister_creator(self, creator: IPluginCreatorInterface) -> bool:
        """Remove a creator; return False if it is not registered."""
        keys = [key for key, one in self._creators.items() if one is creator]
        for key in keys:
            del self._creators[key]
        return bool(keys)

    def get_creator(self, type: str, version: str, plugin_namespace: str = "") -> IPluginCreatorV3One | None:
        """Return the creator of a name, version and namespace; None if there is none."""
        return self._creators.get((type, version, plugin_namespace))

    def acquire_plugin_resource(self, key: str, resource: IPluginResource) -> IPluginResource:
        """Return the shared resource of ``key``; the first call for a key stores a clone of ``resource``.

        Raises:
            TypeError: it is not an ``IPluginResource``.
        """
        if not isinstance(resource, IPluginResource):
            raise TypeError(f"resource must be an object that derives from IPluginResource, not {resource!r}")
        kept, users = self._resources.get(key) or (resource.clone(), 0)
        self._resources[key] = kept, users + 1
        return kept

    def release_plugin_resource(self, key: str) -> int:
        """Stop using the resource of ``key``, which the last user releases; return 0, or -1 if there is none."""
        if key not in self._resources:
            return -1
        kept, users = self._resources.pop(key)
        if users > 1:
            self._resources[key] = kept, users - 1
        else:
            kept.release()
        return 0


_REGISTRY = IPluginRegistry()


def get_plugin_registry() -> IPluginRegistry:
    """Return the registry, in which plans look up the plugins that they name."""
    return _REGISTRY
