"""Arrays as other libraries have them: classes with the protocols for memory, which record what they are asked."""

from typing import Any

import jax.numpy as jnp

HOST, CUDA, METAL = (1, 0), (2, 0), (8, 0)
"""Types and numbers of devices, as DLPack has them."""


class HostTensor:
    """An array with ``__dlpack__`` and nothing else.

    Attributes:
        array: its elements, of numpy or JAX.
        device: the answers about its device, of which the last one is repeated.
        asked: the names of the methods that were called.
    """

    def __init__(self, array: Any, *device: Any) -> None:
        self.array, self.device, self.asked = array, [*(device or [HOST])], list[str]()

    def __dlpack_device__(self) -> Any:
        self.asked.append("device")
        return self.device.pop(0) if len(self.device) > 1 else self.device[0]

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append("dlpack")
        return self.array.__dlpack__(**options)


class CudaTensor(HostTensor):
    """A tensor as PyTorch's on a GPU: numpy cannot read it, and it has a copy on the host.

    Args:
        visible: whether its memory can be read, as JAX would that of a GPU: it answers JAX that it is on the CPU.
    """

    requires_grad = False

    def __init__(self, array: Any, visible: bool = True) -> None:
        super().__init__(array, CUDA, *([HOST] if visible else []))

    def __array__(self, *options: Any, **named: Any) -> Any:
        self.asked.append("array")
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    def clone(self) -> Any:
        """A copy."""
        self.asked.append("clone")
        return CopiedTensor(self.array.copy())

    def cpu(self) -> Any:
        """A copy on the host."""
        return self.array


class CopiedTensor(HostTensor):
    """A copy of a tensor."""

    def contiguous(self) -> Any:
        """Itself if it has no gaps."""
        return self


class CudaArray:
    """An array as CuPy's: it has the interface of CUDA arrays, which JAX turns to one of its own here."""

    def __init__(self, array: Any) -> None:
        self.array, self.asked = array, list[str]()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.asked.append("interface")
        return dict(self.array.__array_interface__)

    def __jax_array__(self) -> Any:
        self.asked.append("jax")
        if not self.array.flags.c_contiguous:
            raise RuntimeError("strides")
        return jnp.asarray(self.array)

    def __array__(self, *options: Any, **named: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def copy(self) -> "CudaArray":
        """A copy without gaps."""
        return CudaArray(self.array.copy())

    def get(self) -> Any:
        """A copy on the host."""
        return self.array
