"""Execution contexts, which run an engine on the shapes and addresses that a script sets."""

import time
from collections.abc import Sequence
from functools import partial
from threading import Lock, get_ident
from typing import Any

import numpy as np

from netloop.api.context_tensors import ContextTensors, E, checked_address
from netloop.api.debug_tensors import DebugTensors
from netloop.api.engine_config import IRuntimeConfig
from netloop.api.enums import ProfilingVerbosity
from netloop.api.logger import ILogger
from netloop.api.observers import IDebugListener, IErrorRecorder, IProfiler
from netloop.api.transfers import HostTransfers, transfers
from netloop.model.device_errors import DEVICE_ERRORS, device_finding
from netloop.process.stream_captures import CAPTURES, enqueue
from netloop.values.checked_attributes import none_or
from netloop.values.diagnostics import Finding, NetloopError, plain, reason
from netloop.values.dims import Dims


class IExecutionContext(ContextTensors[E]):
    """The shapes and addresses of the inputs and outputs of an engine, for a run on them.

    Each address may be one of host memory, such as ``array.ctypes.data`` of a numpy array, or of memory of a GPU, such
    as ``tensor.data_ptr()``, pinned or managed memory: CUDA knows which. All inputs are read before the first
    output is written, so an input and an output may share memory. A method that fails logs an error and returns False;
    an address without memory is such an error.

    A program on a GPU reads inputs in its memory where they are, from addresses that are multiples of 16, and outputs
    are copied once, on the stream of the run. Other inputs are copied on that stream first. Pageable memory of the host
    is read and written by the host, which waits for the stream before.
    """

    name: str = ""
    debug_sync: bool = False
    device_memory: int = 0
    enqueue_emits_profile: bool = True
    error_recorder: IErrorRecorder | None = None
    nvtx_verbosity: ProfilingVerbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
    persistent_cache_limit: int = 0
    profiler: IProfiler | None = None
    temporary_allocator: Any = None
    unfused_tensors_debug_state: bool = False

    CHECKS = {"error_recorder": none_or(IErrorRecorder), "profiler": none_or(IProfiler)}

    def __init__(self, engine: E, config: IRuntimeConfig | None = None) -> None:
        super().__init__(engine)
        self._config = config or IRuntimeConfig()
        self._debug_tensors = DebugTensors(engine.network.marks.debug)
        self._consumed = 0
        self._is_running = Lock()
        if engine.error_recorder is not None:
            self.error_recorder = engine.error_recorder

    def __repr__(self) -> str:
        shapes = ", ".join(f"{plain(name)} {tuple(shape)}" for name, shape in self._shapes.items())
        return f"<IExecutionContext of {self._engine!r}{shapes and f', with {shapes}'}>"

    def get_runtime_config(self) -> IRuntimeConfig:
        """The settings that the context was created with."""
        return self._config

    # ------------------------------------------------------------------ running

    def execute_v2(self, bindings: Sequence[int]) -> bool:
        """Run on these addresses, in the order of the engine's inputs and outputs, and wait for the end of the run.

        Returns:
            Whether the run succeeded. On a GPU it comes after the work of the default stream.
        """
        names = self._engine.tensor_names
        if len(bindings) != len(names):
            return self._refuse(
                f"the engine has {len(names)} inputs and outputs, and was given {len(bindings)} addresses"
            )
        self._addresses.update(zip(names, map(checked_address, bindings), strict=True))
        return self._run(0, waits=True)

    def execute_async_v3(self, stream_handle: int) -> bool:
        """Run on the addresses that were set, in the order of a CUDA stream.

        On a GPU, the program starts after the work that is on the stream, and what is enqueued next starts after its
        outputs are at their addresses. The host waits only until XLA has enqueued the program. That takes as long as
        the run where the host decides how it goes on: loops of unknown length and conditionals, assertions,
        data-dependent shapes, shape inputs, plugins, enabled debug tensors, a profiler, and addresses in pageable
        memory of the host. Inputs, outputs and weights must stay until the stream has passed the run, as in TensorRT.
        A run cannot be captured in a CUDA graph.

        Without a GPU, the run has ended when the method returns, and the stream has no effect; a stand-in of
        ``netloop.compat`` for a CUDA graph captures the run.

        Args:
            stream_handle: the handle of the stream, such as ``torch.cuda.current_stream().cuda_stream``; 0 for the
                default stream.

        Returns:
            Whether the run, or all of it that the host waited for, succeeded.

        Raises:
            TypeError: the handle is no int, and does not convert to one.
        """
        stream = _checked_stream(stream_handle)
        if stream not in CAPTURES:
            return self._run(stream)
        return enqueue(stream, partial(self._run_captured, dict(self._addresses), dict(self._shapes)))

    def _run_captured(self, addresses: dict[str, int], shapes: dict[str, Dims], stream: int) -> bool:
        """Run on the addresses, and with the shapes of inputs, that were set when the run was captured."""
        now = self._addresses, self._shapes
        self._addresses, self._shapes = dict(addresses), dict(shapes)
        try:
            return self._run(stream)
        finally:
            self._addresses, self._shapes = now

    def _run(self, stream: int, waits: bool = False) -> bool:
        if not self._is_running.acquire(blocking=False):
            return self._refuse_thread("runs already")
        self._runner = get_ident()
        try:
            return self._run_alone(stream, waits)
        finally:
            self._runner = None
            self._is_running.release()

    def _run_alone(self, stream: int, waits: bool) -> bool:
        begin = time.perf_counter()
        try:
            with self._transfers(stream) as run:
                outputs = self._outputs(run, stream)
                arrays = run.computed(outputs, self._as_at_address)
                if self._consumed:
                    run.record(self._consumed)
                for name, array in arrays.items():
                    self._write(run, name, array, np.shape(outputs[name]), stream)
            if waits or self.profiler is not None:
                run.synchronize()
        except (NetloopError, MemoryError) as error:
            return self._refuse(str(error))
        except DEVICE_ERRORS as error:
            return self._refuse(str(device_finding(error)))
        if self.profiler is not None:
            self.profiler.report_layer_time(self._engine.name, (time.perf_counter() - begin) * 1e3)
        return True

    def _transfers(self, stream: int) -> HostTransfers:
        return transfers(stream, self._engine)

    def _outputs(self, run: HostTransfers, stream: int) -> dict[str, Any]:
        tensors = list(self._debug_tensors.enabled)
        if self.unfused_tensors_debug_state and self._engine.network.marks.unfused:
            tensors += self._engine.unfused_tensors
        if not tensors or self._debug_tensors.listener is None:
            return self._engine.executable(self._arrays(run))
        return self._engine.watch(
            self._arrays(run), tensors, lambda tensor, _, value: self._debug_tensors.report(tensor, value, stream, run)
        )

    def report_to_profiler(self) -> bool:
        """Whether there is a profiler; every run is reported to it when it ends."""
        return self.profiler is not None

    def _arrays(self, run: HostTransfers) -> dict[str, Any]:
        self._check_values()
        donated = self._engine.executable.donated
        return {tensor.name: self._read(run, tensor, tensor.name in donated) for tensor in self._engine.network.inputs}

    # ------------------------------------------------------------------ debug tensors

    def set_debug_listener(self, listener: IDebugListener) -> bool:
        """Set the listener that receives the values of enabled debug tensors; True.

        Without a listener, debug tensors do not slow a run down. With one, every loop around an enabled debug tensor
        runs one iteration at a time.
        """
        none_or(IDebugListener)("listener", listener)
        self._debug_tensors.listener = listener
        return True

    def get_debug_listener(self) -> IDebugListener | None:
        """The listener that receives debug tensors, or None."""
        return self._debug_tensors.listener

    def set_tensor_debug_state(self, name: str, flag: bool) -> bool:
        """Enable or disable a debug tensor; False, with an error in the log, if no tensor of the name was marked."""
        return self._debug_tensors.set(name, flag) or self._refuse(f"there is no debug tensor {name!r}")

    def set_all_tensors_debug_state(self, flag: bool) -> bool:
        """Enable or disable all debug tensors; True."""
        self._debug_tensors.set_all(flag)
        return True

    def get_debug_state(self, name: str) -> bool:
        """Whether a debug tensor is enabled."""
        return self._debug_tensors.get(name)

    # ------------------------------------------------------------------ streams and device memory, without effect

    def set_aux_streams(self, aux_streams: Sequence[int]) -> None:
        """Do nothing: there are no streams."""

    def set_device_memory(self, memory: int, size: int) -> None:
        """Do nothing: XLA manages memory."""

    def update_device_memory_size_for_shapes(self) -> int:
        """The memory in bytes that the engine's latest program needs; XLA allocates it."""
        return self._engine.scratch_size

    def set_communicator(self, communicator: Any) -> bool:
        """True for a network of one rank, which needs no communicator; False, with an error, for one of several.

        JAX communicates itself: ``netloop.shard`` runs such a network on a mesh of devices.
        """
        ranks = max((layer.num_ranks for layer in self._engine.network.layers), default=1)
        if communicator is not None and ranks > 1:
            what = f"the network has layers of {ranks} ranks, which a communicator does not join here"
            fix = f"call netloop.shard(network, mesh) with a mesh of {ranks} devices"
            return self._refuse(str(Finding("NL616", what, "", reason("NL616"), fix)))
        self._engine.log(ILogger.INFO, "no effect in netloop, because the network has one rank: set_communicator")
        return True

    def set_input_consumed_event(self, event: int) -> bool:
        """Set the CUDA event that a run records on its stream after the inputs have been read; 0 for none. True.

        Without a GPU, the inputs have been read when the run returns, and nothing is recorded.
        """
        self._consumed = int(event or 0)
        return True

    def get_input_consumed_event(self) -> int:
        """The event that was set; 0 if there is none."""
        return self._consumed


def _checked_stream(handle: Any) -> int:
    try:
        return int(handle)  # the streams of CUDA's packages convert
    except (TypeError, ValueError):
        examples = "such as stream.cuda_stream of PyTorch or stream.handle of PyCUDA, or 0 for the default stream"
        what = f"stream_handle is the int of a stream, {examples}, not {type(handle).__name__}"
        raise TypeError(what) from None
