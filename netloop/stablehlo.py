"""StableHLO: networks as programs of the compiler that JAX, and other systems, use."""

from netloop.formats.deploy.stablehlo import exported as exported
from netloop.formats.deploy.stablehlo import function_of as function_of
from netloop.formats.deploy.stablehlo import save as save
