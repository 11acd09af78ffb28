"""The modules that commands need when they run, and not for their help: they import numpy or JAX."""

from __future__ import annotations

import importlib
import typing

if typing.TYPE_CHECKING:
    from netloop.tools.cli import callers as callers
    from netloop.tools.cli import contents as contents
    from netloop.tools.cli import inputs as inputs
    from netloop.tools.cli import iterations as iterations
    from netloop.tools.cli import jax_function as jax_function
    from netloop.tools.cli import jax_primitives as jax_primitives
    from netloop.tools.cli import outputs as outputs
    from netloop.tools.cli import plan_engine as plan_engine
    from netloop.tools.cli import serving as serving
    from netloop.tools.cli import timing as timing
else:

    def __getattr__(name: str) -> typing.Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return importlib.import_module(f"netloop.tools.cli.{name}")
