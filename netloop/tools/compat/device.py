"""The device that there is not: its number, its attributes and its memory."""

import os
import re
from typing import Any, NoReturn

from netloop.compiler.placement import Placement
from netloop.process.forked import FORK, has_started_jax
from netloop.tools.compat.status import InvalidDevice
from netloop.values.diagnostics import Finding, NetloopError, reason

ATTRIBUTES = {1: 1024, 8: 49152, 10: 32, 13: 1_000_000, 16: 1, 75: 9, 76: 0, 115: 1}
"""Attributes by their numbers in CUDA. With a compute capability of 9.0, scripts use all element types."""


def check_device(number: int) -> None:
    """Check the number of a device.

    Raises:
        InvalidDevice: it is not 0.
    """
    if int(number):
        raise InvalidDevice(f"there is no device {int(number)}, only device 0")


def free_and_total() -> tuple[int, int]:
    """The free and the total memory in bytes: of JAX's default device, as far as JAX may use it, once it is in use.

    Before that, and on a CPU, of the host; a gigabyte each where the system does not say.
    """
    stats = (Placement.default().device.memory_stats() if has_started_jax() and not FORK.lost_jax else None) or {}
    if "bytes_limit" in stats:
        return max(stats["bytes_limit"] - stats.get("bytes_in_use", 0), 0), stats["bytes_limit"]
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 30, 1 << 30


def refuse_source(*arguments: Any, **named: Any) -> NoReturn:
    """Refuse the source of a kernel.

    Raises:
        NetloopError: always: there is no GPU that could run it.
    """
    what = "the source of a CUDA kernel cannot be compiled, because there is no GPU to run it"
    fix = "run the script where there is a GPU, or compute with numpy or JAX in the plugin's enqueue"
    raise NetloopError(Finding("NL690", what, why=reason("NL690"), fix=fix))


TYPES = re.compile(r"CU[a-z]\w*|cuda\w*(_t|Mode|Flags|Params|Attribute)")
"""The names of CUDA's types, which code mentions in annotations and does not need to run."""


class UnavailableType(type):
    """The type of a type of CUDA that the stand-in lacks: it can be mentioned, and has neither members nor objects."""

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{cls.__doc__} of which {name} is one", name=name)

    def __call__(cls, *arguments: Any, **named: Any) -> NoReturn:
        raise TypeError(f"{cls.__doc__} of which there are objects")


def unavailable(module: str, name: str) -> Any:
    """Say that a name of a module of CUDA is not there; it becomes the module's ``__getattr__``.

    A type is there as a name.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    what = f"netloop's stand-in for {module} has no {name}"
    if TYPES.fullmatch(name):
        return UnavailableType(name, (), {"__doc__": what, "__module__": module})
    raise AttributeError(f"{what}: it has memory, streams and events on the host, and runs no kernels", name=name)
