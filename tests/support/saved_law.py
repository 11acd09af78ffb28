"""The law of saved files: what is saved as ONNX or OpenVINO IR gives in other runtimes what it gives in netloop.

``python -m tests.support.saved_law 12 40`` reports on the networks of these numbers, ``0-100`` on a hundred of them.
Each network is saved in each format once, and called with several inputs in turn, with each of them twice, because
runtimes keep memory from call to call.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

import netloop as trt
import netloop.onnx
import netloop.openvino
from tests.support.runtime_process import Inputs, RuntimeProcess
from tests.support.saved_networks import Saved, saved_network
from tests.support.smaller_networks import smallest

Meant = list[Mapping[str, Any]]
"""The outputs of the reference for each call."""

SECONDS = 60
"""The time to make networks smaller that fail."""
MOST_SECONDS = 2
"""The time of the reference for a smaller network."""
RUNS = 2
"""How often each call is made."""


def onnx_file(network: trt.INetworkDefinition) -> bytes:
    return netloop.onnx.to_model(network).SerializeToString()


FORMATS: dict[str, Callable[[trt.INetworkDefinition], Any]] = {
    "onnxruntime": onnx_file,
    "openvino": netloop.openvino.to_model,
}
"""The functions that write the format of each runtime."""


NOT_IN_RUNTIMES = {
    "Matmul doesn't support a degenerate case when other ops are fused": "OpenVINO refuses products of no elements "
    "that it computes together with what follows",
}
"""Words of the messages of runtimes that fail by faults of their own, with the fault."""


class SavedLaw:
    """Compares networks with what other runtimes compute from their files.

    Attributes:
        process: the process with the other runtimes.
        seconds: the time that is left to make networks smaller that fail.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.process = RuntimeProcess()
        self.seconds = seconds

    def failures(self, numbers: Iterable[int], has_engine: Callable[[int], bool]) -> Iterator[str]:
        """A report on each network and runtime that differ; for some networks also on engines."""
        for number in sorted(set(numbers)):
            saved = saved_network(number)
            meant = reference(saved.network, saved.calls)
            for runtime in [*FORMATS, *(["engine"] if has_engine(number) else [])]:
                difference = self.difference(saved.network, runtime, saved.calls, meant)
                if difference and not any(words in difference for words in NOT_IN_RUNTIMES):
                    yield self.report(saved, runtime, difference)

    def difference(self, network: trt.INetworkDefinition, runtime: str, calls: list[Inputs], meant: Meant) -> str:
        """What differs first in a runtime; empty if nothing does."""
        answer = self.outputs(network, runtime, calls)
        if isinstance(answer, str):
            return answer
        for number, outputs in enumerate(answer):
            wrong = first_difference(outputs, meant[number // RUNS])
            if wrong:
                return f"differs: call {number // RUNS}, run {number % RUNS + 1}: {wrong}"
        return ""

    def outputs(self, network: trt.INetworkDefinition, runtime: str, calls: list[Inputs]) -> list[Any] | str:
        """The outputs of each run, or why there are none."""
        runs = [call for call in calls for _ in range(RUNS)]
        if runtime == "engine":
            engine = trt.compile(network)
            return [list(engine(call).values()) for call in runs]
        try:
            model = FORMATS[runtime](network)
        except trt.NetworkError as error:
            return f"is not saved: {error}"
        self.process.send(runtime, model, runs)
        return self.process.receive()

    def report(self, saved: Saved, runtime: str, difference: str) -> str:
        """The smallest network that fails in the same way, its inputs, and the difference."""
        way = kind_of(difference)

        def fails_alike(network: trt.INetworkDefinition) -> bool:
            return kind_of(self.difference_of(network, runtime, saved.calls)) == way

        began = time.monotonic()
        network = smallest(saved.network, fails_alike, self.seconds)
        self.seconds -= time.monotonic() - began
        difference = self.difference_of(network, runtime, saved.calls) or difference
        calls = [inputs_of(network, call) for call in saved.calls]
        shown = "\n".join(f"call {number}: {call}" for number, call in enumerate(calls))
        return f"network {saved.number} in {runtime}: {difference}\n{network}\n{constants(network)}\n{shown}\n"

    def difference_of(self, network: trt.INetworkDefinition, runtime: str, calls: list[Inputs]) -> str:
        """What differs in a network that may fail in every runtime, which is no difference."""
        calls = [inputs_of(network, call) for call in calls]
        try:
            with ended_after(MOST_SECONDS):
                meant = reference(network, calls)
        except (trt.NetloopError, TimeoutError):
            return ""
        return self.difference(network, runtime, calls, meant)


def kind_of(difference: str) -> str:
    """The way in which a runtime fails: the beginning of the message."""
    return difference[:40] if difference.startswith(("refused", "failed")) else difference.split(":")[0]


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after some seconds: a smaller network may be one that loops for ever."""

    def end(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)  # again, as callbacks of JAX lose an error
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def reference(network: trt.INetworkDefinition, calls: list[Inputs]) -> Meant:
    return [trt.evaluate(network, call) for call in calls]


def inputs_of(network: trt.INetworkDefinition, call: Inputs) -> Inputs:
    return {tensor.name: call[tensor.name] for tensor in network.inputs}


def first_difference(outputs: list[Any], meant: Mapping[str, Any]) -> str:
    """The first output that has another type, shape or number; empty if there is none."""
    for output, (name, expected) in zip(outputs, meant.items(), strict=True):
        array, wanted = np.asarray(output), np.asarray(expected)
        is_same = array.dtype == wanted.dtype and array.shape == wanted.shape and np.array_equal(array, wanted)
        if not is_same:
            return f"{name} is {text(array)}, not {text(wanted)}"
    return ""


def text(array: np.ndarray) -> str:
    return f"{array.dtype}{list(array.shape)} {array.tolist()}"


def constants(network: trt.INetworkDefinition) -> str:
    """The values of the constants, which the listing of a network leaves out."""
    layers = [layer for layer in network.layers if isinstance(layer, trt.IConstantLayer)]
    return "\n".join(f"{layer.get_output(0).name} = {text(np.asarray(layer.weights))}" for layer in layers)


def main() -> int:
    numbers = [number for word in sys.argv[1:] for number in numbers_in(word)]
    began, failed = time.monotonic(), 0
    law = SavedLaw()
    for failure in law.failures(numbers, lambda number: True):
        failed += 1
        print(failure, flush=True)
    law.process.stop()
    print(f"{len(numbers)} networks, {failed} failures, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


def numbers_in(word: str) -> range:
    """``12`` or ``0-100``, of which the last number is left out."""
    first, _, end = word.partition("-")
    return range(int(first), int(end) if end else int(first) + 1)


if __name__ == "__main__":
    sys.exit(main())
