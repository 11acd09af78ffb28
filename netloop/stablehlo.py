"""StableHLO: networks as programs of the compiler that JAX, and other systems, use."""

from netloop.formats.deploy.stablehlo import exported, function_of, save

__all__ = ["exported", "function_of", "save"]
