"""Stand-ins for packages that a machine with a GPU need not have: Hypothesis, whose tests are skipped, and onnx.

The benchmarks name types of onnx in annotations, and use it for other systems only.
"""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Self

import pytest


class Anything:
    """A strategy, or what is made of one: nothing draws from it."""

    def __call__(self, *_: Any, **__: Any) -> Self:
        return self

    def __getattr__(self, name: str) -> Self:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __or__(self, _: Any) -> Self:
        return self


class Settings:
    """``hypothesis.settings``, without effect."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, test: Any) -> Any:
        return test

    register_profile = load_profile = staticmethod(lambda *_, **__: None)
    get_profile = staticmethod(lambda _: Settings())


def given(*_: Any, **__: Any) -> Any:
    """``hypothesis.given``: a test that is skipped."""

    def skipped(test: Any) -> Any:
        def without_arguments() -> None:
            pytest.skip("Hypothesis is not installed")

        without_arguments.__name__, without_arguments.__module__ = test.__name__, test.__module__
        return without_arguments

    return skipped


def without_onnx() -> None:
    """Put a stand-in in place of onnx, if that is not there."""
    if importlib.util.find_spec("onnx") is None:
        for name in ("onnx", "onnx.parser", "onnx.numpy_helper", "netloop.onnx"):
            module: Any = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None)
            module.__getattr__ = lambda name: Anything()
            sys.modules[name] = module


def without_hypothesis() -> None:
    """Put a stand-in in place of Hypothesis, if that is not there."""
    if importlib.util.find_spec("hypothesis") is not None:
        return
    strategies: Any = ModuleType("hypothesis.strategies")
    strategies.__getattr__ = lambda name: Anything()
    package: Any = ModuleType("hypothesis")
    vars(package).update(
        given=given, settings=Settings, assume=Anything(), example=lambda *_, **__: lambda test: test,
        reproduce_failure=Anything(), HealthCheck=[], strategies=strategies,
    )  # fmt: skip
    sys.modules.update({"hypothesis": package, "hypothesis.strategies": strategies})
