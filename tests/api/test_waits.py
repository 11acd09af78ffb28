"""Calls return before a device has computed: the host waits for no result that nobody asked for."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution import slots
from tests.support import fake_cuda
from tests.support.generators import generator, prompts
from tests.support.networks import F, combine, mark
from tests.support.waits import recorded_waits


def step():
    network = trt.INetworkDefinition()
    s, x = (network.add_input(name, trt.float32, (4,)) for name in "sx")
    new = combine(network, s, x)
    return mark(network, new=new, y=combine(network, new, x, trt.ElementWiseOperation.PROD))


@pytest.fixture
def engine():
    return trt.compile(step())


PACKAGE = Path(trt.__file__).parent
INPUTS = {"s": F([1, 2, 3, 4]), "x": F([1, 1, 1, 2])}
WAITS = {
    "asarray": lambda x: np.asarray(x),
    "array": lambda x: np.array(x),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x),
    "device_get": lambda x: jax.device_get([x]),
    "block_until_ready": lambda x: jax.block_until_ready({"x": x}),
    "_value": lambda x: bool(x > 0),
    "item": lambda x: x.item(),
}


@pytest.mark.parametrize("name", WAITS)
def test_waits_are_noticed(monkeypatch, name):
    array = jnp.float32(1)
    waits = recorded_waits(monkeypatch)
    WAITS[name](array)

    assert waits == [name]


def test_method_of_an_array_that_waits_is_noticed(monkeypatch):
    waits = recorded_waits(monkeypatch)
    jnp.zeros(2).block_until_ready()

    assert waits == ["block_until_ready"]


@pytest.mark.parametrize("place", [None, "cpu:0"])
@pytest.mark.parametrize("make", [F, jnp.asarray])
def test_call_waits_for_nothing(monkeypatch, place, make):
    engine = trt.compile(step(), device=place)
    inputs = {name: make(array) for name, array in INPUTS.items()}
    waits = recorded_waits(monkeypatch)
    for _ in range(3):
        inputs["s"] = engine(inputs)["new"]

    assert waits == []
    assert inputs["s"].tolist() == [4, 5, 6, 10]


def test_call_with_arrays_of_the_device_runs_few_functions(engine):
    inputs = {name: jnp.asarray(array) for name, array in INPUTS.items()}
    stepper = trt.Stepper(engine, {"s": "new"})
    for _ in range(2):
        engine(inputs)
        stepper({"x": inputs["x"]})

    assert len(functions_of_netloop(lambda: engine(inputs))) <= 8
    assert len(functions_of_netloop(lambda: stepper({"x": inputs["x"]}))) <= 9


def functions_of_netloop(run):
    """The names of the functions that run: a few make a call of 3 to 5 us more than the compiled program's."""
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)
    return [code.co_name for code in calls if code.co_filename.startswith(str(PACKAGE))]


@pytest.mark.parametrize("donate", [(), ("s",)])
def test_steps_wait_for_nothing(monkeypatch, donate):
    stepper = trt.Stepper(trt.compile(step(), donate=donate), {"s": "new"})
    waits = recorded_waits(monkeypatch)
    stepper.reset({"s": INPUTS["s"]})
    for _ in range(3):
        outputs = stepper(x=jnp.asarray(INPUTS["x"]))
    states = stepper.states

    assert waits == []
    assert states["s"].tolist() == [4, 5, 6, 10]
    assert outputs["y"].tolist() == [4, 5, 6, 20]


def test_slots_wait_once_to_begin_and_once_for_each_step(monkeypatch):
    monkeypatch.setattr(slots, "completed", lambda results: results)  # which waits on CPUs only
    engine = trt.SlotEngine(generator(), slots=2)
    requests = [engine.submit(prompt) for prompt in prompts(2)]
    waits = recorded_waits(monkeypatch)
    over = engine.step()

    assert not over
    assert waits == ["_value"] * 2 + ["device_get"]
    del waits[:]
    while not over:
        over = engine.step()
        assert waits[0] == "device_get"  # the rows of all requests, and whether they go on
        assert waits[1:] == ["device_get"] * len(over)  # what follows the loop of one that is over
        del waits[:]
    assert over[0] in requests


def test_run_on_addresses_of_the_device_waits_for_nothing(monkeypatch, engine):
    cuda = fake_cuda.install(monkeypatch)
    context, stream = engine.create_execution_context(), cuda.stream()
    places = {name: cuda.put(array) for name, array in {**INPUTS, "new": F([0] * 4), "y": F([0] * 4)}.items()}
    for name, address in places.items():
        context.set_tensor_address(name, address)
    waits = recorded_waits(monkeypatch)

    assert context.execute_async_v3(stream)
    assert waits == []
    cuda.runtime.synchronize(stream)
    assert cuda.get(places["new"], np.float32, (4,)).tolist() == [2, 3, 4, 6]
