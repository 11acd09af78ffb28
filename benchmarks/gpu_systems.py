"""The systems that are compared on a GPU.

Where JAX runs on the CPU (``JAX_PLATFORMS=cpu``), all of them do, as stand-ins for a GPU: what needs CUDA then says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from onnx import ModelProto

from benchmarks.systems import ERRORS, InJax, Made, OnnxRuntime, System, Torch
from benchmarks.workload import Arrays, Call, Jax, Workload


def device() -> str:
    """The device as PyTorch and onnxruntime call it: that of JAX."""
    return "cpu" if os.environ.get("JAX_PLATFORMS", "").startswith("cpu") else "cuda"


class JaxOnGpu(InJax):
    """netloop and hand-written JAX, also as it is best on GPUs."""

    def by_hand(self, workload: Workload) -> Mapping[str, Jax | None]:
        return {**super().by_hand(workload), "expert for GPUs": workload.gpu_expert()}


class OnnxRuntimeOnGpu(OnnxRuntime):
    """onnxruntime on its CUDA provider, with inputs and outputs on the device."""

    def session(self, model: ModelProto) -> Call:
        module = import_module(self.package)
        provider = {"cuda": "CUDAExecutionProvider", "cpu": "CPUExecutionProvider"}[device()]
        if provider not in module.get_available_providers():
            raise RuntimeError(f"this onnxruntime has no {provider}; onnxruntime-gpu has")
        options = module.SessionOptions()
        options.log_severity_level = ERRORS
        session = module.InferenceSession(model.SerializeToString(), options, providers=[provider])
        names = [output.name for output in model.graph.output]

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            binding = session.io_binding()
            for name, value in inputs.items():
                binding.bind_ortvalue_input(name, value)
            for name in names:
                binding.bind_output(name, device())
            session.run_with_iobinding(binding)  # waits for the device
            return dict(zip(names, binding.get_outputs(), strict=True))

        return call

    def take(self, arrays: Arrays) -> Mapping[str, Any]:
        of_numpy = import_module(self.package).OrtValue.ortvalue_from_numpy
        return {name: of_numpy(np.ascontiguousarray(array), device(), 0) for name, array in arrays.items()}

    def results(self, outputs: Mapping[str, Any]) -> Arrays:
        return {
            name: np.array([part.numpy() for part in value] if isinstance(value, list) else value.numpy())
            for name, value in outputs.items()
        }


class TorchOnDevice:
    """The module of PyTorch, where arrays of numpy become tensors on the device too."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)

    def from_numpy(self, array: np.ndarray) -> Any:
        """The tensor of an array."""
        return self._torch.from_numpy(array).to(device())


class TorchOnGpu(Torch):
    """PyTorch as it is called: cuDNN for its LSTM and GRU, its fused modules, and kernels one by one.

    Attributes:
        variant: the name of the way in which it runs.
    """

    variant: ClassVar[str] = "torch"

    def variants(self, workload: Workload) -> Mapping[str, Callable[[], Call]]:
        torch = import_module(self.package)
        torch.set_default_device(device())
        torch.set_float32_matmul_precision("high")  # TensorFloat-32, as netloop and JAX have it by default
        call = workload.torch(TorchOnDevice(torch))
        return {} if call is None else {self.variant: lambda: torch.inference_mode()(self.prepared(call))}

    def prepared(self, call: Call) -> Call:
        """The call in the form in which it runs."""
        return call

    def take(self, arrays: Arrays) -> Mapping[str, Any]:
        return {name: tensor.to(device()) for name, tensor in super().take(arrays).items()}

    def wait(self, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if device() == "cuda":
            import_module(self.package).cuda.synchronize()
        return outputs

    def results(self, outputs: Mapping[str, Any]) -> Arrays:
        on_host = {
            name: [part.cpu() for part in value] if isinstance(value, list) else value.cpu()
            for name, value in outputs.items()
        }
        return super().results(on_host)


class TorchGraph(TorchOnGpu):
    """PyTorch as one CUDA graph, which has all calls that solve the problem."""

    variant = "torch graph"

    def make(self, workload: Workload, variant: str) -> Made:
        torch, solve = import_module(self.package), super().make(workload, variant)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries choose kernels and take memory, which a capture cannot have
            for _ in range(3):
                solve()
        torch.cuda.current_stream().wait_stream(stream)
        call, inputs = self.variants(workload)[variant](), self.take(workload.inputs())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = workload.drive(call, inputs)

        def replay() -> Mapping[str, Any]:
            graph.replay()
            return self.wait(outputs)

        return replay


class TorchCompiled(TorchOnGpu):
    """PyTorch with ``torch.compile``."""

    variant = "torch compile"
    limit = 15.0  # a loop in Python is one program with all iterations, whose compilation may take minutes

    def prepared(self, call: Call) -> Call:
        return import_module(self.package).compile(call, dynamic=False)


GPU_SYSTEMS: list[type[System]] = [JaxOnGpu, TorchOnGpu, TorchGraph, OnnxRuntimeOnGpu, TorchCompiled]
