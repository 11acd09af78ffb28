"""A TensorRT script of the usual kind: tensors of PyTorch on the GPU, their addresses, a stream, an output allocator.

Its imports are those of TensorRT. With the first command it runs on netloop: on a GPU with PyTorch's tensors there, and
without one on the host. With the second one TensorRT itself runs it.

    python -m netloop.compat samples/tensorrt_pytorch.py
    python samples/tensorrt_pytorch.py

A loop adds up the rows of x, and the positions of the sums above 5 are as many as there are:

    (2, 3) -> sums (2, 3), above 5: [[1, 2]]
    (4, 3) -> sums (4, 3), above 5: [[1, 2], [2, 0], [2, 1], [2, 2], [3, 0], [3, 1], [3, 2]]
"""

import numpy as np
import tensorrt as trt
import torch

LOGGER = trt.Logger(trt.Logger.WARNING)
TYPES = {trt.float32: torch.float32, trt.int64: torch.int64}


def build() -> trt.IHostMemory:
    """Build the plan of a network from x to sums and above."""
    builder = trt.Builder(LOGGER)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    x = network.add_input("x", trt.float32, (-1, 3))
    zero = network.add_constant((), np.array(0, np.int32)).get_output(0)
    length = network.add_gather(network.add_shape(x).get_output(0), zero, 0).get_output(0)
    loop = network.add_loop()
    loop.add_trip_limit(network.add_cast(length, trt.int32).get_output(0), trt.TripLimit.COUNT)
    state = loop.add_recurrence(network.add_constant((3,), np.zeros(3, np.float32)).get_output(0))
    row = loop.add_iterator(x).get_output(0)
    total = network.add_elementwise(state.get_output(0), row, trt.ElementWiseOperation.SUM).get_output(0)
    state.set_input(1, total)
    rows = loop.add_loop_output(total, trt.LoopOutput.CONCATENATE, 0)
    rows.set_input(1, network.add_cast(length, trt.int32).get_output(0))
    five = network.add_constant((1, 1), np.array([[5]], np.float32)).get_output(0)
    is_above = network.add_elementwise(rows.get_output(0), five, trt.ElementWiseOperation.GREATER).get_output(0)
    above = network.add_non_zero(is_above, trt.int64).get_output(0)
    for name, tensor in {"sums": rows.get_output(0), "above": above}.items():
        tensor.name = name
        network.mark_output(tensor)
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 3), (4, 3), (16, 3))
    config.add_optimization_profile(profile)
    return builder.build_serialized_network(network, config)


class Allocator(trt.IOutputAllocator):
    """Memory of PyTorch for an output whose size only the run knows."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def reallocate_output_async(self, tensor_name: str, memory: int, size: int, alignment: int, stream: int) -> int:
        """The address of enough memory; TensorRT may ask for that of an empty output, too."""
        self.memory = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
        return self.memory.data_ptr()

    def notify_shape(self, tensor_name: str, shape: trt.Dims) -> None:
        """Receive the shape, which is known when the run ends."""
        self.shape = tuple(shape)

    def tensor(self) -> torch.Tensor:
        """The output."""
        size = int(np.prod(self.shape)) * torch.empty((), dtype=self.dtype).element_size()
        return self.memory[:size].view(self.dtype).reshape(self.shape)


def main() -> None:
    """Run the plan on tensors of two shapes."""
    engine = trt.Runtime(LOGGER).deserialize_cuda_engine(build())
    context, stream = engine.create_execution_context(), torch.cuda.Stream()
    allocator = Allocator(TYPES[engine.get_tensor_dtype("above")])
    context.set_output_allocator("above", allocator)
    for rows in (2, 4):
        with torch.cuda.stream(stream):
            x = torch.arange(rows * 3, dtype=torch.float32, device="cuda").reshape(rows, 3)
            context.set_input_shape("x", tuple(x.shape))
            sums = torch.empty(tuple(context.get_tensor_shape("sums")), dtype=torch.float32, device="cuda")
            context.set_tensor_address("x", x.data_ptr())
            context.set_tensor_address("sums", sums.data_ptr())
            if not context.execute_async_v3(stream.cuda_stream):
                raise SystemExit("the run failed")
        stream.synchronize()
        above = allocator.tensor().cpu().T.tolist()
        print(f"{tuple(x.shape)} -> sums {tuple(sums.shape)}, above 5: {above}")


if __name__ == "__main__":
    main()
