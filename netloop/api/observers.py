"""Base classes of a user's observers (error recorders, profilers, debug listeners) and of the objects they observe."""

from typing import Any

from netloop.api.enums import ErrorCodeTRT
from netloop.api.logger import ILogger
from netloop.model.graph.attributes import check_instance
from netloop.values.checked_attributes import CheckedAttributes, none_or, whole
from netloop.values.dims import Dims
from netloop.values.enums import DataType, TensorLocation
from netloop.values.unpicklable import Unpicklable


class IErrorRecorder:
    """A recorder of errors; derive from it and override all methods."""

    MAX_DESC_LENGTH = 127

    def clear(self) -> None:
        """Forget all errors."""

    def num_errors(self) -> int:
        """The number of errors."""
        return 0

    def get_error_code(self, arg0: int) -> ErrorCodeTRT:
        """The code of error number ``arg0``."""
        raise IndexError(arg0)

    def get_error_desc(self, arg0: int) -> str:
        """The text of error number ``arg0``."""
        raise IndexError(arg0)

    def has_overflowed(self) -> bool:
        """Whether there were more errors than the recorder can keep."""
        return False

    def report_error(self, arg0: ErrorCodeTRT, arg1: str) -> bool:
        """Record an error; whether it is fatal."""
        return False


def report_error(logger: ILogger | None, recorder: IErrorRecorder | None, code: ErrorCodeTRT, what: str) -> bool:
    """Log an error and pass it to an error recorder; return False, the result of a method that failed."""
    if logger is not None:
        logger.log(ILogger.ERROR, what)
    if recorder is not None:
        recorder.report_error(code, what)
    return False


class LoggedObject(Unpicklable, CheckedAttributes):
    """An object that sends its messages to a logger: a builder, a runtime or a refitter.

    Attributes:
        error_recorder: receives errors; None for no recorder.
        max_threads: recorded without effect.
    """

    error_recorder: IErrorRecorder | None = None
    max_threads: int = 1

    CHECKS = {"error_recorder": none_or(IErrorRecorder), "max_threads": whole(1)}

    def __init__(self, logger: ILogger) -> None:
        self._logger: ILogger = check_instance("logger", logger, ILogger)

    @property
    def logger(self) -> ILogger:
        """The logger that receives its messages."""
        return self._logger

    def _log_error(self, code: ErrorCodeTRT, what: str) -> bool:
        return report_error(self._logger, self.error_recorder, code, what)


class IProfiler:
    """A receiver of run times; derive from it and override ``report_layer_time``."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Receive a time in milliseconds. XLA fuses layers, so the whole network is reported as one layer."""


class Profiler(IProfiler):
    """A profiler that prints times."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Print a time."""
        print(f"{layer_name}: {ms:.3f} ms")


class IDebugListener:
    """A receiver of debug tensors; derive from it and override ``process_debug_tensor``."""

    def process_debug_tensor(
        self, addr: Any, location: TensorLocation, type: DataType, shape: Dims, name: str, stream: int
    ) -> bool | None:
        """Receive a tensor at an address of the host or of a GPU, as the location says; whether the run continues."""
        return True
