"""Launches on a GPU: the kernels of a call, and of an iteration of its loops, in programs compiled for an H100.

No GPU is needed, and no time is measured: it takes the CUDA plugin of JAX (``pip install -e ".[cuda13]"``), and
``JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1`` where there is no driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import netloop as trt
from benchmarks import h100
from benchmarks.workload import Workload
from netloop.compiler.launches import Launches


class Row(NamedTuple):
    """The launches of one way to solve a workload.

    Attributes:
        workload: its name.
        variant: netloop, netloop without a pass, or hand-written JAX.
        total: the launches of a call; None if only the run knows how often a loop runs.
        loops: the launches of one iteration of each compiled loop, which may be several of the network's.
        seconds: the time in which it was compiled.
    """

    workload: str
    variant: str
    total: int | None
    loops: list[int]
    seconds: float


HEADER = "workload", "variant", "launches of a call", "in an iteration of each compiled loop", "compiled in s"


def measured(workload: Workload) -> Iterator[Row]:
    """The launches of netloop with all passes, without each one that the workload measures, and of JAX by hand."""
    for variant, text in variants(workload).items():
        began = time.perf_counter()
        launches = Launches.joined(map(Launches.of, text()))
        assert launches is not None
        loops = [loop.launches for loop in launches.loops]
        yield Row(workload.name, variant, launches.total, loops, time.perf_counter() - began)


def variants(workload: Workload) -> Mapping[str, Callable[[], list[str]]]:
    """The optimized programs of each variant, by its name."""
    network, inputs, every = workload.network(), workload.inputs(), frozenset(trt.PASSES)
    result: dict[str, Callable[[], list[str]]] = {}
    if network is not None:
        left_out = {f"without {name}": every - {name} for name in workload.passes}
        for name, passes in ({"netloop": every} | left_out | {"without any": frozenset[str]()}).items():
            result[name] = lambda passes=passes: of_engine(network, passes, inputs)
    by_hand = {
        "expert": workload.expert(),
        "expert for GPUs": workload.gpu_expert(),
        "idiomatic": workload.idiomatic(),
    }
    for name, solution in by_hand.items():
        if solution is not None:
            function, weights = solution.function, solution.weights
            result[name] = lambda function=function, weights=weights: [
                h100.compiled(function, weights, inputs).as_text() or ""
            ]
    return result


def of_engine(network: trt.INetworkDefinition, passes: frozenset[str], inputs: Mapping[str, Any]) -> list[str]:
    """The programs of an engine's call, as they are for the card; those that only load weights are left out."""
    with h100.programs_are_compiled_for_it() as programs:
        engine = trt.compile(network, passes=passes)
        loading = len(programs)
        engine(inputs)
    texts = [program.as_text() or "" for program in programs]
    return texts[loading:] or texts[-1:]


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row of the table."""
    total = "as many as the run decides" if row.total is None else f"{row.total:,}"
    return row.workload, row.variant, total, ", ".join(map(str, row.loops)), f"{row.seconds:.1f}"
