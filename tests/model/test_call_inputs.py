"""Arrays of other libraries as inputs of everything that takes inputs."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.serve import Sequences, Server
from netloop.values import foreign_arrays
from tests.support.foreign_arrays import CudaTensor, HostTensor
from tests.support.networks import F, combine, counted, mark, run, stacked

X = np.array([[1, 2]], F)


def doubling(rows=1):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (rows, 2))
    return mark(network, y=combine(network, x, x))


def adding():
    network = trt.INetworkDefinition()
    s, x = network.add_input("s", trt.float32, (1, 2)), network.add_input("x", trt.float32, (1, 2))
    return mark(network, sn=combine(network, s, x), y=combine(network, x, x))


def looping():
    network = trt.INetworkDefinition()
    loop = counted(network, 1)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (1, 2)))
    total = combine(network, state.get_output(0), state.get_output(0))
    state.set_input(1, total)
    length = network.add_constant((), np.array(1, np.int32)).get_output(0)
    return mark(network, y=stacked(loop, total, length))


def by_server(x):
    with Server(trt.compile(doubling(-1)), (1,)) as server:
        return server(x=x)["y"]


def by_sequences(x):
    with Sequences(adding(), {"s": "sn"}, sizes=[1]) as sequences:
        return sequences.step(0, {"x": x}, start=True)["y"]


CONSUMERS = {
    "engine": lambda x: trt.compile(doubling())(x=x)["y"],
    "engine of any rows": lambda x: trt.compile(doubling(-1))(x=x)["y"],
    "reference": lambda x: trt.evaluate(doubling(), {"x": x})["y"],
    "to_jax": lambda x: run("to_jax", doubling(), {"x": x})["y"],
    "comparison": lambda x: trt.compare(doubling(), {"x": x}).agrees * 2 * X,
    "Stepper": lambda x: trt.Stepper(trt.compile(adding()), {"s": "sn"})(x=x)["y"],
    "SlotEngine": lambda x: trt.SlotEngine(looping(), slots=1).submit({"x": x}).result()["y"][0],
    "Batches": lambda x: trt.Batches(trt.compile(doubling(-1)), (1,))({"x": x})["y"],
    "Server": by_server,
    "Sequences": by_sequences,
    "shard": lambda x: trt.shard(doubling(), jax.make_mesh((1,), ("rows",)))({"x": x})["y"],
}


@pytest.fixture(params=CONSUMERS)
def call(request):
    return CONSUMERS[request.param]


def test_tensor_on_the_host_is_taken(call):
    np.testing.assert_array_equal(call(HostTensor(X)), 2 * X)


def test_tensor_on_a_device_is_taken(call, monkeypatch):
    monkeypatch.setattr(foreign_arrays, "_has_platform", lambda name: name == "cuda")
    tensor = CudaTensor(X)

    np.testing.assert_array_equal(call(tensor), 2 * X)
    assert "dlpack" in tensor.asked


def test_tensor_that_cannot_be_read_is_an_error_that_names_its_input(call):
    with pytest.raises(trt.InputError, match=r"NL657: the value of 'x' .* a CudaTensor on cuda:0") as caught:
        call(CudaTensor(X))

    (finding,) = caught.value.findings
    assert finding.fix == "pass value.cpu(), or install JAX for its device: pip install 'netloop[cuda13]'"


def test_errors_of_several_inputs_are_told_together():
    with pytest.raises(trt.InputError) as caught:
        trt.compile(adding())(s=CudaTensor(X), x=np.zeros(3, F))

    assert [finding.code for finding in caught.value.findings] == ["NL657", "NL603"]


def test_tensors_in_a_sequence_are_read(network):
    sequence = network.add_sequence_input("x", trt.float32, (2,))
    zero = network.add_constant((), np.array(1, np.int64)).get_output(0)
    mark(network, y=network.add_sequence_at(sequence, zero).get_output(0))

    y = trt.compile(network)({"x": [HostTensor(X[0]), HostTensor(3 * X[0])]})["y"]
    np.testing.assert_array_equal(y, 3 * X[0])


def test_memory_of_a_tensor_is_not_donated(monkeypatch):
    monkeypatch.setattr(foreign_arrays, "_has_platform", lambda name: name == "cuda")
    engine, donated = trt.compile(adding(), donate=["s"]), []
    programs = engine.executable._programs
    find = programs.find

    def noted(given):
        donated.extend(value.unsafe_buffer_pointer() for value in given.values() if isinstance(value, jax.Array))
        return find(given)

    monkeypatch.setattr(programs, "find", noted)
    memory = np.zeros(192, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + 8].view(F).reshape(1, 2)
    engine(s=CudaTensor(array), x=X)

    assert len(donated) == 1
    assert donated != [array.ctypes.data]


def test_tensor_of_a_waiting_request_may_be_written_to(monkeypatch):
    monkeypatch.setattr(foreign_arrays, "_has_platform", lambda name: name == "cuda")
    memory = np.zeros(192, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + 8].view(F).reshape(1, 2)
    array[:] = X
    request = trt.SlotEngine(looping(), slots=1).submit({"x": CudaTensor(array)})
    array[:] = 0

    np.testing.assert_array_equal(request.result()["y"][0], 2 * X)


def test_outputs_are_read_by_other_libraries_without_a_copy():
    y = trt.compile(doubling())(x=X)["y"]

    assert y.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(y).ctypes.data == y.unsafe_buffer_pointer()
