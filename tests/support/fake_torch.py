"""The few names of PyTorch that a TensorRT script needs, with tensors in the memory of the fake CUDA runtime."""

import math
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np


class Tensor:
    """A tensor in device memory; functions that make one work on the present stream."""

    def __init__(self, cuda, address, dtype, shape):
        self.cuda, self.address, self.dtype, self.shape = cuda, address, np.dtype(dtype), tuple(shape)

    def data_ptr(self):
        return self.address

    def element_size(self):
        return self.dtype.itemsize

    def reshape(self, *shape):
        wanted = shape[0] if isinstance(shape[0], tuple) else shape
        return Tensor(self.cuda, self.address, self.dtype, wanted)

    def view(self, dtype):
        size = math.prod(self.shape) * self.element_size()
        return Tensor(self.cuda, self.address, dtype, (size // np.dtype(dtype).itemsize,))

    def __getitem__(self, part):
        return Tensor(self.cuda, self.address, self.dtype, (len(range(*part.indices(self.shape[0]))),))

    def cpu(self):
        return self.cuda.get(self.address, self.dtype, self.shape)


def fake_torch(cuda):
    """The module, on a fake runtime."""
    torch = ModuleType("torch")
    present = [1]

    class Stream:
        def __init__(self):
            self.cuda_stream = cuda.stream()

        def synchronize(self):
            cuda.advance(self.cuda_stream)

    @contextmanager
    def stream(wanted):
        present.append(wanted.cuda_stream)
        yield
        present.pop()

    def empty(shape, dtype, device="cpu"):
        shape = (shape,) if isinstance(shape, int) else shape
        return Tensor(cuda, cuda.allocate(math.prod(shape) * np.dtype(dtype).itemsize), dtype, shape)

    def arange(end, dtype, device):
        result = empty(end, dtype)
        cuda.fill(present[-1], result.address, np.arange(end, dtype=dtype))
        return result

    torch.float32, torch.int64, torch.uint8, torch.dtype = np.float32, np.int64, np.uint8, type
    torch.Tensor, torch.empty, torch.arange = Tensor, empty, arange
    torch.cuda = SimpleNamespace(Stream=Stream, stream=stream)
    return torch
