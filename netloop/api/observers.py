"""What a user derives from to be told of errors, times, outputs and debug tensors."""

from __future__ import annotations

from typing import Any

from netloop.api.enums import ErrorCodeTRT
from netloop.dims import Dims
from netloop.enums import DataType, TensorLocation


class IErrorRecorder:
    """What is told of errors; derive from it and override all methods."""

    MAX_DESC_LENGTH = 127

    def clear(self) -> None:
        """Forget all errors."""

    def num_errors(self) -> int:
        """The number of errors."""
        return 0

    def get_error_code(self, arg0: int) -> ErrorCodeTRT:
        """The kind of error number ``arg0``."""
        raise IndexError(arg0)

    def get_error_desc(self, arg0: int) -> str:
        """The text of error number ``arg0``."""
        raise IndexError(arg0)

    def has_overflowed(self) -> bool:
        """Whether there were more errors than could be kept."""
        return False

    def report_error(self, arg0: ErrorCodeTRT, arg1: str) -> bool:
        """Take an error; whether it is fatal."""
        return False


class IProfiler:
    """What is told of times; derive from it and override ``report_layer_time``."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Take the time of a layer, in milliseconds. XLA fuses layers: the whole network is reported as one."""


class Profiler(IProfiler):
    """Prints times."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Print a time."""
        print(f"{layer_name}: {ms:.3f} ms")


class IOutputAllocator:
    """What gives memory to an output when its size is known; derive from it and override its methods."""

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        """The address of ``size`` bytes for an output; ``memory`` is its present address, or 0."""
        raise NotImplementedError(f"{type(self).__name__} overrides neither reallocate_output nor its async form")

    def reallocate_output_async(self, tensor_name: str, memory: int, size: int, alignment: int, stream: int) -> int:
        """The same, in the order of a stream."""
        return self.reallocate_output(tensor_name, memory, size, alignment)

    def notify_shape(self, tensor_name: str, shape: Dims) -> None:
        """Take the shape of an output."""


class IDebugListener:
    """What is told of debug tensors; derive from it and override ``process_debug_tensor``."""

    def process_debug_tensor(
        self, addr: Any, location: TensorLocation, type: DataType, shape: Dims, name: str, stream: int
    ) -> bool:
        """Take a tensor at a host address; whether to go on."""
        return True
