"""``cuda.bindings.nvrtc`` of CUDA's Python package: its statuses, and no compiler (NL690)."""

from enum import IntEnum
from functools import partial

from netloop.tools.compat.device import refuse_source, unavailable

__getattr__ = partial(unavailable, "cuda.bindings.nvrtc")


nvrtcCreateProgram = refuse_source


class nvrtcResult(IntEnum):
    """The statuses of CUDA's compiler."""

    NVRTC_SUCCESS = 0
    NVRTC_ERROR_COMPILATION = 6


def nvrtcGetErrorString(result: nvrtcResult) -> tuple[nvrtcResult, bytes]:
    return nvrtcResult.NVRTC_SUCCESS, nvrtcResult(result).name.encode()
