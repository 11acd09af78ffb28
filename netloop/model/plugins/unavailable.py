"""Names of TensorRT that scripts mention, in annotations or as base classes, and that netloop cannot give a meaning."""

from typing import Any, ClassVar, NoReturn

from netloop.model.plugins.interfaces import IPluginCapability, IPluginCreatorInterface
from netloop.values.diagnostics import Finding, NetloopError, reason

V3 = "derive from IPluginV3, whose enqueue works on addresses of the host, or write a function of JAX and a JaxPlugin"
"""Replacements of plugins that are compiled for NVIDIA's devices."""

AS_IT_IS = "; or python -m netloop.compat --tensorrt 10 SCRIPT runs it as it is"
"""The way to run a script with the plugins of versions 8 to 10."""

ALGORITHMS = "leave the selection to XLA, which chooses the kernels"


def refuse(what: str, instead: str) -> NoReturn:
    """Raise the error that netloop lacks something that belongs to NVIDIA's kernels.

    Raises:
        NetloopError: always.
    """
    raise NetloopError(Finding("NL421", what, why=reason("NL421"), fix=instead))


class Unavailable:
    """The base of classes that can be named and derived from, but not instantiated."""

    INSTEAD: ClassVar[str] = V3
    """The replacement of the class."""

    def __new__(cls, *args: Any, **named: Any) -> NoReturn:
        theirs = next(kind.__name__ for kind in cls.__mro__ if kind.__module__.startswith("netloop."))
        own = "" if theirs == cls.__name__ else f", from which {cls.__name__} derives"
        refuse(f"netloop has no {theirs}{own}", cls.INSTEAD)


# ---------------------------------------------------------------------------- plugins before version 3


class IPluginV2(Unavailable):
    """A plugin of TensorRT 4 and later, deprecated there; refused when instantiated."""


class IPluginV2Ext(IPluginV2):
    """An IPluginV2 with types of its outputs; refused when instantiated."""


class IPluginV2DynamicExtBase(IPluginV2):
    """The base of IPluginV2DynamicExt in TensorRT's bindings; refused when instantiated."""


class IPluginV2DynamicExt(IPluginV2DynamicExtBase):
    """An IPluginV2 with dynamic shapes; refused when instantiated."""

    INSTEAD = V3 + AS_IT_IS


class IPluginCreator(Unavailable, IPluginCreatorInterface):
    """A creator of plugins before version 3; refused when instantiated."""

    INSTEAD = "derive from IPluginCreatorV3One" + AS_IT_IS

    def create_plugin(self, name: str, field_collection: Any) -> NoReturn:
        """Refuse to create a plugin."""
        refuse("netloop has no IPluginCreator", IPluginCreator.INSTEAD)


# ---------------------------------------------------------------------------- plugins of ``tensorrt.plugin``


class IPluginCreatorV3Quick(Unavailable, IPluginCreatorInterface):
    """The creator of a plugin of ``tensorrt.plugin``; refused when instantiated."""


class IPluginV3QuickCore(Unavailable, IPluginCapability):
    """The name of a plugin of ``tensorrt.plugin``; refused when instantiated."""


class IPluginV3QuickBuild(Unavailable, IPluginCapability):
    """The part of a plugin of ``tensorrt.plugin`` that is used in a build; refused when instantiated."""


class IPluginV3QuickAOTBuild(IPluginV3QuickBuild):
    """An IPluginV3QuickBuild with a kernel that is compiled ahead of time; refused when instantiated."""


class IPluginV3QuickRuntime(Unavailable, IPluginCapability):
    """The part of a plugin of ``tensorrt.plugin`` that is used in a run; refused when instantiated."""


class ISymExpr(Unavailable):
    """An argument of a kernel that is compiled ahead of time; refused when instantiated."""


class ISymExprs(Unavailable):
    """The arguments of a kernel that is compiled ahead of time; refused when instantiated."""


class KernelLaunchParams(Unavailable):
    """The grid and the blocks of a kernel that is compiled ahead of time; refused when instantiated."""


class FallbackString(Unavailable):
    """A string that TensorRT's Python package passes to its C++; refused when instantiated."""

    INSTEAD = "pass a str"


# ---------------------------------------------------------------------------- the choice of kernels in TensorRT 10


class IAlgorithmSelector(Unavailable):
    """A selector of kernels; in TensorRT 10, removed in 11; refused when instantiated."""

    INSTEAD = ALGORITHMS


class IAlgorithm(Unavailable):
    """A kernel that an IAlgorithmSelector may select; refused when instantiated."""

    INSTEAD = ALGORITHMS


class IAlgorithmContext(Unavailable):
    """The layer for which an IAlgorithmSelector selects; refused when instantiated."""

    INSTEAD = ALGORITHMS


class IAlgorithmIOInfo(Unavailable):
    """The format of an input or output of a kernel; refused when instantiated."""

    INSTEAD = ALGORITHMS


class IAlgorithmVariant(Unavailable):
    """The number of a kernel; refused when instantiated."""

    INSTEAD = ALGORITHMS
