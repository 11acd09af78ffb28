"""``tensorrt.plugin``, which can be imported and mentioned; what it makes are kernels for NVIDIA's devices."""

from typing import Any, NoReturn

from netloop.model.plugins.unavailable import V3, refuse

__path__: list[str] = []
"""That of a package without modules, of which scripts ask ``importlib.util.find_spec``."""


class PluginName:
    """A name of ``tensorrt.plugin``, for annotations; refused when it is called."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any, **named: Any) -> NoReturn:
        refuse(f"netloop has no tensorrt.plugin.{self.name}", V3)

    def __or__(self, other: Any) -> Any:
        return Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return PluginName(name)
