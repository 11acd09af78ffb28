"""Other runtimes in a process of their own, which may end while they run a model."""

import multiprocessing
import resource
import signal
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

Inputs = dict[str, np.ndarray]
Outputs = list[np.ndarray]
Run = Callable[[Inputs], Outputs]

MEMORY = 8 << 30
"""The address space of the process in bytes."""
PATIENCE = 60
"""The most seconds for one model."""


def onnxruntime_session(model: bytes) -> Run:
    """An ONNX model in onnxruntime."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    return lambda inputs: session.run(None, {name: inputs[name] for name in names})


def openvino_request(model: tuple[bytes, bytes]) -> Run:
    """A document and its weights in OpenVINO's CPU plugin, in one request that all calls use again."""
    ov = import_module("openvino")
    read = ov.Core().read_model(*model)
    names = [port.any_name for port in read.inputs]
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    request = ov.Core().compile_model(read, "CPU", options).create_infer_request()

    def run(inputs: Inputs) -> Outputs:
        for place, name in enumerate(names):
            array = np.asarray(inputs[name])
            request.set_input_tensor(place, ov.Tensor(np.ascontiguousarray(array).reshape(array.shape)))
        request.start_async()  # the synchronous call ignores errors
        request.wait()
        return [np.array(request.get_output_tensor(place).data) for place in range(len(read.outputs))]

    return run


RUNTIMES: dict[str, Callable[[Any], Run]] = {"onnxruntime": onnxruntime_session, "openvino": openvino_request}


def serve(connection: Any) -> None:
    """Answer each model with the outputs of its calls, or with the error."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        connection.send(answer(*connection.recv()))


def answer(runtime: str, model: Any, calls: list[Inputs]) -> list[Outputs] | str:
    """The outputs of some calls, one after the other; or the error."""
    try:
        run = RUNTIMES[runtime](model)
    except Exception as error:  # runtimes have kinds of their own
        return f"refused: {error}"
    try:
        return [run(call) for call in calls]
    except Exception as error:
        return f"failed: {error}"


class RuntimeProcess:
    """A process that runs models, started again after it ended."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Any = None

    def send(self, runtime: str, model: Any, calls: list[Inputs]) -> None:
        """Let a runtime run a model, on some inputs after each other."""
        if self._process is None:
            self._start()
        self._connection.send((runtime, model, calls))

    def receive(self) -> list[Outputs] | str:
        """The outputs of each call of the model that was sent first, or why there are none."""
        try:
            if self._connection.poll(PATIENCE):
                return self._connection.recv()
            ending = f"took more than {PATIENCE} seconds"
        except (EOFError, ConnectionError):
            self._process.join(PATIENCE)
            ending = f"ended the process, with {self._process.exitcode}"
        self.stop()
        return ending

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # JAX forbids forks
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other,), daemon=True)
        self._process.start()
        other.close()
