"""A TensorRT script with tensors of PyTorch runs on a GPU and without one."""

import runpy
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import netloop.tensorrt
from netloop.tools.compat import torch_device
from tests.project.test_samples import SAMPLES, promised
from tests.support import fake_cuda
from tests.support.fake_torch import fake_torch
from tests.support.peers import needs_torch, torch

SAMPLE = SAMPLES / "tensorrt_pytorch.py"
ROOT = Path(__file__).parents[3]

SCRIPT = """
import torch
x = torch.ones(3, device="cuda:0")
y = torch.zeros(3).to(torch.device("cuda")).cuda()
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
first, second = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    first.record()
    y += x
    second.record(torch.cuda.current_stream())
    assert torch.cuda.current_stream() is stream
stream.wait_event(second)
stream.wait_stream(torch.cuda.default_stream())
stream.record_event().synchronize()
torch.cuda.synchronize()
assert first.elapsed_time(second) >= 0 and stream.query() and second.query()
assert torch.cuda.current_stream().cuda_stream == 0 != stream.cuda_stream
print(y.tolist(), torch.cuda.get_device_name())
"""

MORE = """
import threading
import warnings
warnings.simplefilter("error")
import numpy as np
import torch
from cuda.bindings import runtime as cudart

assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.get_device_properties(0).major == 9
assert torch.device("cuda", 0) == torch.empty(1, device="cuda").device
torch.cuda.manual_seed(3)
first = torch.randn(4, device="cuda")
torch.cuda.set_rng_state(torch.cuda.get_rng_state())
torch.manual_seed(3)
assert torch.equal(first, torch.randn(4, pin_memory=True).pin_memory())

lstm = torch.nn.LSTM(2, 3).cuda()
assert lstm(torch.ones(1, 2, device="cuda"))[0].shape == (1, 3) and lstm.weight_hh_l0.is_cuda

packed = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 1, 2, device="cuda"), torch.tensor([2]))
padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(packed)
assert padded.is_cuda and not lengths.is_cuda and not packed.batch_sizes.is_cuda

from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
with FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True):
    shapeless = torch.empty_strided((2, 3), (3, 1), dtype=torch.bool, device="cuda")
    assert shapeless.nonzero().shape[1] == 2 and len(torch.nonzero(shapeless, as_tuple=True)) == 2

created = []
thread = threading.Thread(target=lambda: created.append(torch.arange(6.0, device="cuda:0").reshape(2, 3)))
thread.start()
thread.join()
(x,) = created

@torch.library.custom_op("netloop_test::ones", mutates_args=())
def ones(like: torch.Tensor) -> torch.Tensor:
    return torch.ones(like.shape, device="cuda")

assert torch.equal(torch.ops.netloop_test.ones(x), torch.ones(2, 3))

address = x.T.contiguous().data_ptr()
torch.zeros(2, 3)
copy = np.empty(6, np.float32)
(status,) = cudart.cudaMemcpy(copy, address, copy.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost)
assert status == cudart.cudaError_t.cudaSuccess
status, block = cudart.cudaMalloc(4)
(status,) = cudart.cudaMemcpy(block, copy, copy.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice)
assert status == cudart.cudaError_t.cudaErrorInvalidValue
print(copy.tolist())
"""

PLACED = """
import copy
import io
import numpy as np
import torch
x, host = torch.ones(3, device="cuda"), torch.zeros(3)
here, there = torch.device("cuda", 0), torch.device("cpu")
assert (x.device, x.is_cuda, x.get_device(), x.device.type) == (here, True, 0, "cuda")
assert {part.device for part in (x + 1, x[0], x.half(), torch.zeros_like(x), torch.stack([host, x]))} == {here}
assert {part.device for part in (torch.topk(x, 2).values, torch.from_numpy(np.ones(2)).to("cuda"))} == {here}
assert {part.device for part in (host, x.cpu(), x.to("cpu"), torch.ones(3), x.cpu() + host)} == {there}

moved = host.cuda()  # a copy, as on a GPU
moved += 1
host.copy_(2 * x)
assert (host.tolist(), host.device, moved.tolist(), moved.device) == ([2, 2, 2], there, [1, 1, 1], here)
assert torch.as_tensor(host, device="cuda").is_cuda and not host.is_cuda

for module in (torch.nn.Linear(3, 2).cuda(), torch.nn.Linear(3, 2).to("cuda"), torch.nn.Linear(3, 2, device="cuda")):
    assert {module.weight.device, copy.deepcopy(module).weight.device, module(x).device} == {here}
    assert module.cpu().weight.device == there
file = io.BytesIO()
torch.save(torch.nn.Linear(3, 2).cuda().state_dict(), file)
for location, device in ((None, here), ("cpu", there), ("cuda", here)):
    file.seek(0)
    assert torch.load(file, weights_only=True, map_location=location)["weight"].device == device
torch.save(torch.ones(2), file := io.BytesIO())
file.seek(0)
assert torch.load(file).device == there
kept = [torch.ones(1, device="cuda") for _ in range(5000)]
del kept
assert not any(torch.ones(1).is_cuda for _ in range(100)) and x.is_cuda
assert not torch.ones(2, 2).to_sparse().is_cuda
print("placed")
"""

GRAPH = """
import numpy as np
import tensorrt as trt
import torch
network = trt.Builder(trt.Logger()).create_network()
x = network.add_input("x", trt.float32, (3,))
y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
y.name = "y"
network.mark_output(y)
builder = trt.Builder(trt.Logger())
context = builder.build_engine_with_config(network, builder.create_builder_config()).create_execution_context()
x, y = torch.ones(3, device="cuda"), torch.zeros(3, device="cuda")
for name, tensor in (("x", x), ("y", y)):
    context.set_tensor_address(name, tensor.data_ptr())
graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.graph(graph, stream=stream):
    assert torch.cuda.is_current_stream_capturing()
    x.add_(1)
    assert context.execute_async_v3(stream.cuda_stream)
    z = y * 10
assert not torch.cuda.is_current_stream_capturing()
graph.replay()
graph.replay()
print(x.tolist(), y.tolist(), z.tolist())
context.set_tensor_address("y", 0)
with torch.cuda.graph(graph):
    context.execute_async_v3(torch.cuda.current_stream().cuda_stream)
try:
    graph.replay()
except RuntimeError as error:
    print(error)
graph.reset()
graph.replay()
"""


def ran(*arguments):
    command = [sys.executable, "-m", "netloop.compat", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)


def test_sample_runs_on_a_gpu(monkeypatch, capsys):
    cuda = fake_cuda.install(monkeypatch)
    monkeypatch.setitem(sys.modules, "torch", fake_torch(cuda))
    monkeypatch.setitem(sys.modules, "tensorrt", netloop.tensorrt)
    runpy.run_path(str(SAMPLE), run_name="__main__")

    assert capsys.readouterr().out.strip() == promised(SAMPLE)


PACKAGE = {
    "__init__.py": """
import types
class Tensor:
    device = is_cuda = property(lambda tensor: "cpu")
    cpu = get_device = lambda tensor: tensor
class device(str):
    def __new__(cls, name, index=0):
        return super().__new__(cls, name)
_C = types.SimpleNamespace(_nn=types.SimpleNamespace(_parse_to=None))
serialization = types.SimpleNamespace(register_package=lambda *arguments: None)
nn, cuda = types.SimpleNamespace(Module=type("Module", (), {})), types.SimpleNamespace()
""",
    "multiprocessing/__init__.py": "",
    "multiprocessing/reductions.py": "class StorageWeakRef: pass",
    "overrides.py": """
modes = []
class TorchFunctionMode:
    def __enter__(self):
        modes.append(self)
""",
}
"""A package with what is replaced of PyTorch."""


@pytest.mark.skipif(torch is not None, reason="PyTorch itself is imported")
@pytest.mark.parametrize("asks", [False, True])
def test_pytorch_is_on_the_host_when_it_has_been_imported(monkeypatch, tmp_path, asks):
    (tmp_path / "torch" / "multiprocessing").mkdir(parents=True)
    for name, text in PACKAGE.items():
        (tmp_path / "torch" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(torch_device.DEVICE, "is_shared", False)
    torch_device.install()
    torch_device.install()
    assert sum(isinstance(finder, torch_device.TorchFinder) for finder in sys.meta_path) == 1
    if asks:
        assert find_spec("torch") is not None
    try:
        package = import_module("torch")
        seen = [
            mode.__torch_function__(lambda *given, **named: (given, named), (), ("cuda:1", 2), {"device": "cuda"})
            for mode in import_module("torch.overrides").modes
        ]
    finally:
        for name in ("torch", "torch.overrides", "torch.multiprocessing", "torch.multiprocessing.reductions"):
            sys.modules.pop(name, None)

    assert torch_device.DEVICE.is_shared
    assert package.cuda.is_available()
    assert package.cuda.current_stream().cuda_stream == 0
    assert seen == [(("cpu", 2), {"device": "cpu"})]


@needs_torch
def test_sample_runs_without_a_gpu():
    result = ran(SAMPLE)

    assert result.stdout.strip() == promised(SAMPLE), result.stderr


@needs_torch
@pytest.mark.parametrize("before", ["", "import importlib.util\nimportlib.util.find_spec('torch')\n"])
def test_device_of_pytorch_is_the_host(before, tmp_path):
    (tmp_path / "script.py").write_text(before + SCRIPT)
    result = ran(tmp_path / "script.py")

    assert result.stdout == "[1.0, 1.0, 1.0] host memory, by netloop\n", result.stderr


@needs_torch
def test_device_is_the_host_in_threads_and_operators_and_for_copies_of_cuda(tmp_path):
    (tmp_path / "script.py").write_text(MORE)
    result = ran(tmp_path / "script.py")

    assert result.stdout == "[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]\n", result.stderr


@needs_torch
def test_tensors_know_where_a_script_has_put_them(tmp_path):
    (tmp_path / "script.py").write_text(PLACED)
    result = ran(tmp_path / "script.py")

    assert result.stdout == "placed\n", result.stderr


@needs_torch
def test_graph_of_pytorch_replays_runs_and_functions(tmp_path):
    (tmp_path / "script.py").write_text(GRAPH)
    result = ran(tmp_path / "script.py")

    numbers, error = result.stdout.splitlines()
    assert numbers == "[4.0, 4.0, 4.0] [8.0, 8.0, 8.0] [80.0, 80.0, 80.0]", result.stderr
    assert error == "a run of the graph failed; the log of its engine says why"
