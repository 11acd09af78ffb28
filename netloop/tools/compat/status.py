"""The statuses that CUDA's functions return, and functions that return them instead of exceptions."""

from collections.abc import Callable
from enum import IntEnum
from functools import wraps
from typing import Any

from netloop.tools.compat.memory import InvalidAddress


class cudaError_t(IntEnum):
    """The statuses of CUDA's runtime."""

    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInvalidDevice = 101
    cudaErrorInvalidResourceHandle = 400
    cudaErrorIllegalState = 401
    cudaErrorNotReady = 600
    cudaErrorLaunchFailure = 719
    cudaErrorNotSupported = 801
    cudaErrorStreamCaptureUnsupported = 900


class CUresult(IntEnum):
    """The statuses of CUDA's driver."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_ILLEGAL_STATE = 401
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_NOT_SUPPORTED = 801
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900


class InvalidHandle(Exception):
    """A stream or event that was not created, or that was destroyed."""


class InvalidDevice(Exception):
    """A device with another number than 0."""


class IllegalState(Exception):
    """A capture that was begun already, or that was not begun."""


class LaunchFailure(Exception):
    """Work on a stream that failed."""


class CaptureUnsupported(Exception):
    """Something that a stream cannot do while its work is captured."""


# fmt: off
NUMBERS: dict[type[Exception], int] = {
    InvalidAddress: 1, ValueError: 1, TypeError: 1, MemoryError: 2, InvalidDevice: 101, InvalidHandle: 400,
    IllegalState: 401, LaunchFailure: 719, CaptureUnsupported: 900,
}
# fmt: on
"""The number of the status for each exception."""

_reasons: dict[int, str] = {}


def reason_of(status: IntEnum) -> str:
    """The meaning of a status: its name, and the message of the last error that had it."""
    last = _reasons.get(int(status))
    return status.name if last is None else f"{status.name}: {last}"


def returning(kind: type[IntEnum], results: int = 0) -> Callable[[Callable[..., Any]], Callable[..., tuple[Any, ...]]]:
    """Make a function return a status and ``results`` results, which are None after an error."""

    def decorate(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
        @wraps(function)
        def call(*arguments: Any, **named: Any) -> tuple[Any, ...]:
            try:
                result = function(*arguments, **named)
            except tuple(NUMBERS) as error:
                number = next(number for cls, number in NUMBERS.items() if isinstance(error, cls))
                _reasons[number] = f"{function.__name__}: {error}"
                return (kind(number), *[None] * results)
            outcome = result if results > 1 else (result,) * results
            return (kind(0), *outcome)

        return call

    return decorate
