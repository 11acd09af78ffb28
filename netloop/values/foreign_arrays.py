"""Arrays of other libraries, such as PyTorch, CuPy and TensorFlow, by the protocols for their memory.

The protocols are those of DLPack, https://dmlc.github.io/dlpack/latest/python_spec.html, and of CUDA arrays,
https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

DLPACK, CUDA_ARRAY = "__dlpack_device__", "__cuda_array_interface__"
HOST, CUDA = 1, 2
"""The numbers of the CPU and of NVIDIA's GPUs among DLPack's types of devices."""
OF_THE_HOST = frozenset({HOST, 3, 11})
"""Those with memory that the host reads: its own, and what it has pinned for CUDA or ROCm."""
PLATFORMS = {CUDA: "cuda", 13: "cuda", 10: "rocm"}
"""JAX's platforms for the others; 13 is memory that CUDA moves between the host and the device."""
UNKNOWN = 0
PLACES = {UNKNOWN: "a device that it does not name", **dict.fromkeys(OF_THE_HOST, "the host")}
ALIGNMENT = 16
"""The alignment in bytes of the arguments of XLA's programs on GPUs, which refuse others."""
OTHERWISE = "pass a numpy array of its numbers"


class UnreadableArrayError(ValueError):
    """An array of another library that cannot be read here.

    Attributes:
        what: the array, in words: ``a Tensor on cuda:0``.
        why: the reason.
        fix: what to pass instead.
    """

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why, fix)
        self.what, self.why, self.fix = what, why, fix

    def __str__(self) -> str:
        return f"{self.what} cannot be read here, because {self.why}; {self.fix}"


def array_of(value: Any) -> Any:
    """A value as an array: of JAX if its memory is a device's, else of numpy; without a copy, if the library allows.

    An array of JAX that is not the value itself has the memory of the value, whose owner may write to it.

    Raises:
        UnreadableArrayError: it is an array of another library that neither JAX nor numpy can read.
        ValueError: it is no array, and numpy makes none of it.
    """
    if isinstance(value, np.ndarray | jax.Array):
        return value
    # of the class: an instance may raise any error of its library
    if not any(hasattr(type(value), name) for name in (DLPACK, CUDA_ARRAY)):
        return _by_numpy(value)
    kind, number = _device(value)
    errors: list[Exception] = []
    for way in _ways(value, kind):
        try:
            return way(value)
        except Exception as error:  # of any library
            errors.append(error)
    raise _unreadable(value, kind, number, errors[0])


def is_borrowed(array: Any, value: Any) -> bool:
    """Whether the array of a value has memory that the owner of the value may write to at any time."""
    return isinstance(array, jax.Array) and array is not value


def _device(value: Any) -> tuple[int, int]:
    """The type and the number of the device of an array; no type if it does not say."""
    if not hasattr(type(value), DLPACK):
        return CUDA, 0  # its number is that of its address, which JAX looks up
    try:
        kind, number = getattr(value, DLPACK)()
        return int(kind), int(number)
    except Exception:  # of any library
        return UNKNOWN, 0


def _ways(value: Any, kind: int) -> Iterator[Callable[[Any], Any]]:
    """The ways to read an array, the best one first."""
    if kind in OF_THE_HOST:
        # numpy does not know all element types: JAX does
        yield from (_by_numpy, np.from_dlpack, _by_jax, lambda value: _by_jax(_compact(value)))
        return
    if _has_platform(PLATFORMS.get(kind, "")):
        if hasattr(type(value), DLPACK):
            yield from (_by_dlpack, lambda value: _by_dlpack(_compact(value)))
        if hasattr(type(value), CUDA_ARRAY):
            yield from (_by_cuda_array, lambda value: _by_cuda_array(_compact(value)))
    yield _by_numpy  # some libraries copy to the host


def _by_numpy(value: Any) -> Any:
    try:
        array = np.asarray(value)
    except ValueError:
        raise
    except Exception as error:  # of the library of the value, or of an element
        raise ValueError(str(error)) from error
    if array.dtype == object and hasattr(type(value), DLPACK):
        raise ValueError(f"numpy takes a {type(value).__name__} for an object")
    return array


def _by_jax(value: Any) -> Any:
    return np.asarray(_by_dlpack(value))


def _by_dlpack(value: Any) -> jax.Array:
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        return _aligned(jax.dlpack.from_dlpack(value))


def _by_cuda_array(value: Any) -> jax.Array:
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        return _aligned(jnp.asarray(value))


def _aligned(array: jax.Array) -> jax.Array:
    if array.unsafe_buffer_pointer() % ALIGNMENT:
        raise ValueError(f"its address is no multiple of {ALIGNMENT}, as XLA demands")
    return array


def _compact(value: Any) -> Any:
    """A copy, which is aligned and has no gaps between its elements, as JAX demands: by PyTorch, or by CuPy."""
    return value.clone().contiguous() if hasattr(value, "clone") else value.copy()


def _has_platform(name: str) -> bool:
    try:
        return bool(name and jax.local_devices(backend=name))
    except RuntimeError:
        return False


def _unreadable(value: Any, kind: int, number: int, error: Exception) -> UnreadableArrayError:
    """The error of a value that no way has read: the first way's, unless JAX lacks its device."""
    platform = PLATFORMS.get(kind, "")
    place = f"{platform}:{number}" if platform else PLACES.get(kind, f"a device of the type {kind} of DLPack")
    what, why, fix = f"a {type(value).__name__} on {place}", str(error) or type(error).__name__, OTHERWISE
    if kind not in OF_THE_HOST:
        copies = (f"value.{name}()" for name in ("cpu", "get") if callable(_attribute(value, name)))
        copied = next(copies, "")
        fix = f"pass {copied}" if copied else OTHERWISE
    if _attribute(value, "requires_grad"):
        fix = "pass value.detach(): an engine computes no gradients"
    elif platform and not _has_platform(platform):
        why = f"JAX has no such device here, only {jax.default_backend()}"
        fix += ", or install JAX for its device: pip install 'netloop[cuda13]'" if platform == "cuda" else ""
    return UnreadableArrayError(what, why, fix)


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # of any library
        return None
