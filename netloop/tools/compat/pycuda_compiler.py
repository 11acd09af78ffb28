"""``pycuda.compiler``, whose functions compile kernels: an error says that there is no GPU for them (NL690)."""

from functools import partial
from typing import Any

from netloop.tools.compat.device import refuse_source, unavailable

__getattr__ = partial(unavailable, "pycuda.compiler")

compile = compile_plain = refuse_source
DEFAULT_NVCC_FLAGS: list[str] = []


class SourceModule:
    """A module with kernels, which is refused."""

    def __init__(self, source: Any, *arguments: Any, **options: Any) -> None:
        refuse_source()


DynamicSourceModule = SourceModule
