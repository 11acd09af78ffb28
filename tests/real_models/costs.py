"""CPU time and memory of a runtime with a model."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from netloop.compiler.host.routes import OFTEN
from tests.real_models.recipe import Inputs, Sizes

BATCH_SECONDS, BATCHES = 0.15, 2
"""The CPU time of a batch of calls, longer than the steps of the clock, and the number of batches."""
WARM_CALLS, WARM_SECONDS = OFTEN + 20, 3.0
"""The calls before that, or those of some CPU time: layers that numpy computes at first are compiled then."""
Call = Callable[[Inputs], list[Any]]
Follow = Callable[[Inputs, list[Any] | None], Inputs]
"""The inputs of a call, from those of its size and the outputs of the call before."""


def same_inputs(inputs: Inputs, _: list[Any] | None) -> Inputs:
    return inputs


def use(start: Callable[[], Call], sizes: Sizes, costs: dict[str, Any], follow: Follow = same_inputs) -> list[Any]:
    """The outputs at all sizes of a runtime that is started here.

    Args:
        start: loads the model.
        sizes: the inputs.
        costs: gets ``state``, which says how far the runtime came; ``seconds`` of CPU time to load and call it first;
            ``later``, those of its first calls at the other sizes; ``megabytes``, the peak of resident memory above
            that of the imports; and ``milliseconds`` of CPU time of further calls at the first size.
        follow: the inputs of each call.
    """
    forget_peak()
    floor, outputs = peak_memory(), []
    began = time.process_time()
    call = start()
    costs["state"] = "does not run"
    for index, inputs in enumerate(sizes):
        if index:
            began = time.process_time()
        outputs.append(call(follow(inputs, outputs[-1] if outputs else None)))
        seconds = round(time.process_time() - began, 4)
        if index:
            costs.setdefault("later", []).append(seconds)
        else:
            costs["seconds"] = seconds
    costs["megabytes"] = round((peak_memory() - floor) / 1e6, 1)
    costs["milliseconds"] = float(f"{milliseconds(partial(call, sizes[0])):.3g}")
    return outputs


def milliseconds(call: Callable[[], Any]) -> float:
    """The CPU time of a call, the smallest mean of some batches, after many calls."""
    means, end = list[float](), time.process_time() + WARM_SECONDS
    for _ in range(WARM_CALLS):
        call()
        if time.process_time() > end:
            break
    for _ in range(BATCHES):
        began, count, spent = time.process_time(), 0, 0.0
        while spent < BATCH_SECONDS:
            call()
            count += 1
            spent = time.process_time() - began
        means.append(1e3 * spent / count)
    return min(means)


def forget_peak() -> None:
    """Begin the peak of resident memory anew (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_memory() -> int:
    """The largest resident memory of this process so far, in bytes (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
