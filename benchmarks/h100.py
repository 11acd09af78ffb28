"""An H100 that only compiles: machine code for a GPU on a machine that has none, and the kernels that it launches.

It needs the CUDA plugin of JAX (the extra ``cuda13``), and in the environment ``JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1``,
which leaves out the plugin's look at the driver. Nothing is executed. XLA picks the kernels of products by timing them
where there is a device, and by rules here; the fusions, the loops and the number of launches are those of a real run.
"""

import importlib.util
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from netloop.compiler.recursion_limit import raised_recursion_limit
from netloop.compiler.xla_compilation import XlaFunction, compiler_options
from netloop.compiler.xla_faults import triton

PLUGINS = "jax_cuda13_plugin", "jax_cuda12_plugin"

TARGET = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072
  cuda_compute_capability { major: 9 }
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 12 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
"""The card as XLA describes it. XLA makes CUDA graphs for the three versions only."""


def is_there() -> bool:
    """Whether a plugin that compiles for it is installed."""
    return any(importlib.util.find_spec(name) is not None for name in PLUGINS)


@cache
def sharding() -> NamedSharding:
    """The place of arrays on the card."""
    topology = topologies.get_topology_desc("h100", "cuda", target_config=TARGET, topology="1x1x1")
    return NamedSharding(Mesh(np.array(topology.devices), ("x",)), PartitionSpec())


def compiled(function: Callable[..., Any], *types: Any, **options: Any) -> jax.stages.Compiled:
    """The machine code of a function of arrays, or of their types, as engines compile it.

    ``options`` are XLA's compiler options.

    Raises:
        JaxRuntimeError: XLA has no code for it.
    """
    traced = jax.jit(function, out_shardings=sharding()).trace(*jax.tree.map(_placed, types))
    return triton.compiled(traced.lower(lowering_platforms=("cuda",)), options or None)


def _placed(leaf: Any) -> jax.ShapeDtypeStruct:
    """The type of an array on the card."""
    dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    return jax.ShapeDtypeStruct(np.shape(leaf), dtype, sharding=sharding())


@contextmanager
def programs_are_compiled_for_it() -> Generator[list[jax.stages.Compiled]]:
    """A context in which the programs of engines are compiled for the card too, with its passes, and collected.

    They run where they did before, and the engines report the launches of those for the card.
    """
    programs, compile_here, texts = list[jax.stages.Compiled](), XlaFunction.compile, dict[XlaFunction, str]()

    def compile_for_both(self: Any, *arguments: Any) -> jax.stages.Compiled:
        if self._compiled is None:
            options = {} if self._nest is None else compiler_options(self._nest)
            with raised_recursion_limit(0 if self._nest is None else self._nest.depth):
                programs.append(compiled(self._jitted.__wrapped__, *arguments, **options))
            texts[self] = programs[-1].as_text() or ""
        return compile_here(self, *arguments)

    text = property(lambda self: texts.get(self, ""))
    with (
        patch.object(XlaFunction, "compile", compile_for_both),
        patch.object(XlaFunction, "text", text),
        patch.object(jax, "default_backend", lambda: "gpu"),
    ):
        yield programs
