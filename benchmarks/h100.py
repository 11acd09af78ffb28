"""An H100 that only compiles: machine code for a GPU on a machine that has none, and the kernels that it launches.

It needs the CUDA plugin of JAX (the extra ``cuda13``), and in the environment ``JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1``,
which leaves out the plugin's look at the driver. Nothing is executed. XLA picks the kernels of products by timing them
where there is a device, and by rules here; the fusions, the loops and the number of launches are those of a real run.
"""

import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple
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

    They run where they did before.
    """
    programs, compile_here = list[jax.stages.Compiled](), XlaFunction.compile

    def compile_for_both(self: Any, *arguments: Any) -> jax.stages.Compiled:
        if self._compiled is None:
            options = {} if self._nest is None else compiler_options(self._nest)
            with raised_recursion_limit(0 if self._nest is None else self._nest.depth):
                programs.append(compiled(self._jitted.__wrapped__, *arguments, **options))
        return compile_here(self, *arguments)

    with patch.object(XlaFunction, "compile", compile_for_both), patch.object(jax, "default_backend", lambda: "gpu"):
        yield programs


# ---------------------------------------------------------------------------- launches

LAUNCHING = frozenset(
    [
        "fusion",
        "custom-call",
        "copy",
        "sort",
        "dot",
        "convolution",
        "fft",
        "cholesky",
        "triangular-solve",
        "scatter",
        "reduce",
        "reduce-window",
        "async",
    ]
)
"""The operations of optimized HLO that are one kernel, or one call of a library, each."""
NO_KERNELS = "AllocateBuffer", "Sharding", "AssumeGatherIndicesInBound", "PinToDevice"
"""The targets of custom calls that launch nothing."""

COMMENT = re.compile(r"/\*.*?\*/")
BLOCK = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*?^\}", re.MULTILINE | re.DOTALL)
OPERATION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*?\)|\S+) ([\w\-]+)\((.*)$", re.MULTILINE)
CALLED = re.compile(r"(body|condition|to_apply|calls|branch_computations|true_computation|false_computation)="
                    r"(\{[^}]*\}|%?[\w.\-]+)")  # fmt: skip
COUNTED = re.compile(r"known_trip_count\W+n\W+(\d+)")
TARGETED = re.compile(r'custom_call_target="([^"]*)"')


class Place(NamedTuple):
    """One part of a program, whose kernels run together.

    Attributes:
        kind: "entry", "body" or "condition" of a loop, "branch" of a conditional, or "graph", a CUDA graph.
        name: its name in the program.
        inside: the name of the place that runs it; empty for the entry.
        kernels: the number of launches by kind of operation; "graph" is the launch of a graph.
        times: how often it runs in a run of the place around it; 0 if only the run decides.
    """

    kind: str
    name: str
    inside: str
    kernels: Counter[str]
    times: int = 1


def launches(text: str) -> list[Place]:
    """The kernels that the optimized HLO of a program launches, place by place, the entry first.

    A loop and a conditional cost their places; what is in a graph is one launch of the place around it.
    """
    blocks = {found[2]: found for found in BLOCK.finditer(COMMENT.sub("", text))}
    entry = next(name for name, found in blocks.items() if found[1])
    return [*_places(("entry", entry, "", 1), blocks)]


def _places(part: tuple[str, str, str, int], blocks: Mapping[str, re.Match[str]]) -> Iterator[Place]:
    kind, name, inside, times = part
    kernels, within = Counter[str](), list[tuple[str, str, str, int]]()
    for operation, rest in OPERATION.findall(blocks[name][0]):
        operation = operation.removesuffix("-start")
        if operation in ("while", "conditional", "call"):
            within += _parts(operation, rest, name)
            kernels["graph"] += operation == "call"
        elif operation in LAUNCHING and not any(target in NO_KERNELS for target in TARGETED.findall(rest)):
            kernels[operation] += 1
    yield Place(kind, name, inside, +kernels, times)
    for inner in within:
        yield from _places(inner, blocks)


def _parts(operation: str, rest: str, name: str) -> list[tuple[str, str, str, int]]:
    """The kind, name, place around it and number of runs of what a loop, a conditional or a call runs."""
    called = {role: [part.strip(" %") for part in names.strip("{}").split(",")] for role, names in CALLED.findall(rest)}
    if operation == "while":
        (body,), (condition,) = called["body"], called["condition"]
        # the host counts the iterations of a loop whose number it knows
        trips = COUNTED.search(rest)
        return [("body", body, name, int(trips[1])) if trips else ("body", body, name, 0),
                *([] if trips else [("condition", condition, body, 1)])]  # fmt: skip
    kind = "branch" if operation == "conditional" else "graph"
    return [(kind, part, name, 1) for parts in called.values() for part in parts]


def per_iteration(text: str) -> dict[str, int]:
    """The launches in one iteration of each loop, by the name of its body: those of the body and of the condition.

    Those of loops inside of it, and of branches, are not part of the number.
    """
    numbers = dict[str, int]()
    for place in launches(text):
        loop = {"body": place.name, "condition": place.inside}.get(place.kind)
        if loop is not None:
            numbers[loop] = numbers.get(loop, 0) + sum(place.kernels.values())
    return numbers


def total(text: str) -> int | None:
    """The launches of a whole run; None if a loop ends where only the run knows.

    Of a conditional it counts both branches but for one with a loop, which is that of rare cases.
    """
    places = launches(text)
    loops = {place.inside for place in places if place.kind == "body"}
    times, number = {"": 1}, 0
    for place in places:
        is_rare = place.kind == "branch" and place.name in loops
        # the kernels of a graph are one launch, which is that of the place around it
        times[place.name] = 0 if is_rare or place.kind == "graph" else times[place.inside] * place.times
        if place.kind == "body" and not place.times and times[place.inside]:
            return None
        number += times[place.name] * sum(place.kernels.values())
    return number
