"""Engines on a chosen one of eight devices: their weights, what they compute, and what moves there."""

import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.placement import Placement
from netloop.compiler.tuning import TimedPair, this_machine
from netloop.serve import Sequences, Server
from netloop.tools.cli import main
from netloop.tools.serve.triton import OPTIONS
from netloop.tools.serve.triton_model import TritonModel
from tests.support.log import Log
from tests.support.networks import F, combine, constant, counted, lstm, mark, stacked

pytestmark = pytest.mark.eight_devices
X = F([[1, 2]])
HERE, THERE = 2, 5
"""The numbers of the device of an engine, and of another one."""
GATES = ["gate_fusion"]
"""The only pass that is timed."""


def affine(rows=1):
    """y: x times weights, of more than a KiB, that are folded at load time: the sum of two constants."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (rows, 2))
    weights = network.add_constant((2, 1024), np.arange(2048, dtype=F).reshape(2, 1024))
    weights.name = "weights"
    total = combine(network, weights.get_output(0), constant(network, np.ones((2, 1024), F)))
    none = trt.MatrixOperation.NONE
    return mark(network, y=network.add_matrix_multiply(x, none, total, none).get_output(0))


def expected(x, weights=0.0):
    return x @ (np.arange(2048, dtype=F).reshape(2, 1024) * (weights == 0) + weights + 1)


def step():
    """sn: s + x; y: twice that."""
    network = trt.INetworkDefinition()
    s, x = network.add_input("s", trt.float32, (1, 2)), network.add_input("x", trt.float32, (1, 2))
    sn = combine(network, s, x)
    return mark(network, sn=sn, y=combine(network, sn, sn))


def looped():
    """rows: x, x + 1, x + 2, of which each leaves a slot as it is made."""
    network = trt.INetworkDefinition()
    loop = counted(network, 3)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (1, 2)))
    state.set_input(1, combine(network, state.get_output(0), 1))
    return mark(network, rows=stacked(loop, state.get_output(0), constant(network, 3, np.int32)))


def on_host():
    """y: the rows of the positions of what is not zero, as floats; total: x twice."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (1, 2))
    rows = network.add_cast(network.add_non_zero(x).get_output(0), trt.float32).get_output(0)
    return mark(network, y=rows, total=combine(network, x, x))


@pytest.fixture
def here():
    return jax.devices()[HERE] if jax.device_count() > HERE else None


def given(where):
    """The same input: of numpy, of JAX wherever it likes, and on devices that it has to stay on."""
    return [where(array) for array in (X, jnp.asarray(X), *(jax.device_put(X, jax.devices()[at]) for at in (HERE, 5)))]


def places(tree):
    return {device for array in jax.tree.leaves(tree) for device in array.devices()}


@pytest.mark.parametrize("device", [f"cpu:{HERE}", HERE], ids=["name", "device"])
@pytest.mark.parametrize("rows", [1, -1], ids=["fixed", "open"])
def test_engine_computes_on_its_device_wherever_its_inputs_are(here, device, rows):
    engine = trt.compile(affine(rows), device=device if isinstance(device, str) else jax.devices()[device])

    assert engine.device == here
    assert places(engine.executable.weights) == {here}
    for inputs in given(lambda array: {"x": array}):
        for _ in range(3):  # a call that is checked, and those that are not
            y = engine(inputs)["y"]
            np.testing.assert_array_equal(y, expected(X))
            assert (y.devices(), y.committed) == ({here}, True)
    assert engine.program_count == 1


def test_engine_without_a_device_stays_on_the_default_one_of_its_compilation(here):
    with jax.default_device(here):
        engine = trt.compile(affine(-1))

    for inputs in given(lambda array: {"x": array}):
        y = engine(inputs)["y"]
        assert (y.devices(), y.committed) == ({here}, False)
    assert (engine.device, engine.program_count) == (here, 1)
    assert trt.compile(affine()).device == jax.devices()[0]


def test_name_of_a_platform_may_be_the_default_device():
    with jax.default_device("cpu"):
        assert trt.compile(affine()).device == jax.devices()[0]


def test_inputs_on_several_devices_and_a_mesh_meet_on_that_of_the_engine(here):
    engine = trt.compile(step(), device=here)
    mesh = jax.make_mesh((2,), ("columns",), devices=jax.devices()[:2])
    cut = jax.device_put(X, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "columns")))
    outputs = engine(s=cut, x=jax.device_put(X, jax.devices()[THERE]))

    np.testing.assert_array_equal(outputs["y"], 4 * X)
    assert places(outputs) == {here}


def test_deleted_array_on_another_device_is_still_refused(here):
    engine, x = trt.compile(affine(), device=here), jax.device_put(X, jax.devices()[THERE])
    x.delete()

    with pytest.raises(trt.InputError, match="NL626"):
        engine(x=x)


def test_new_weights_and_copies_of_weights_stay_on_the_device(here):
    engine = trt.compile(affine(), device=here)
    refitter = trt.Refitter(engine, Log())
    assert refitter.set_named_weights("weights", np.full((2, 1024), 7, F))
    assert refitter.refit_cuda_engine()
    y = engine(x=X)["y"]

    np.testing.assert_array_equal(y, expected(X, 7))
    assert places([y, engine.executable.weights]) == {here}
    engine.executable.move_weights()
    assert places(engine.executable.weights) == {here}


def test_donated_memory_is_that_of_the_device(here):
    engine = trt.compile(step(), device=here, donate=["s"])
    own, other = jax.device_put(X, here), jax.device_put(X, jax.devices()[THERE])
    for state in (own, other):
        assert places(engine(s=state, x=X)) == {here}

    assert (own.is_deleted(), other.is_deleted()) == (True, False)  # what is moved is a copy


def test_engines_on_all_devices_at_once():
    engines = [trt.compile(affine(), device=device) for device in jax.devices()]
    with ThreadPoolExecutor(8) as pool:
        results = [*pool.map(lambda engine: [engine(x=X)["y"] for _ in range(20)], engines)]

    for engine, ys in zip(engines, results, strict=True):
        assert places(ys) == {engine.device}
        np.testing.assert_array_equal(ys[-1], expected(X))
    assert len({engine.device for engine in engines}) == 8


def test_engine_that_runs_on_the_host_returns_arrays_on_its_device(here):
    engine = trt.compile(on_host(), device=here)
    for inputs in given(lambda array: {"x": array}):
        outputs = engine(inputs)
        np.testing.assert_array_equal(outputs["total"], 2 * X)
        assert places(outputs) == {here}
        assert all(array.committed for array in outputs.values())


def test_values_inside_are_computed_on_the_device(here):
    engine = trt.compile(affine(), device=here)
    outputs = engine.watch({"x": jax.device_put(X, jax.devices()[THERE])}, [], lambda *_: None)

    assert places(outputs) == {here}
    assert trt.compare(affine(), {"x": jax.device_put(X, jax.devices()[THERE])}, engine).agrees


def test_plan_has_no_device(here, tmp_path):
    engine = trt.compile(affine(), device=here)
    engine.save(tmp_path / "plan")

    assert trt.load(tmp_path / "plan").device == jax.devices()[0]
    assert trt.load(tmp_path / "plan", device=here).device == here
    assert pickle.loads(pickle.dumps(engine)).device == jax.devices()[0]
    with jax.default_device(here):
        assert trt.Runtime(Log()).deserialize_cuda_engine(engine.serialize()).device == here


@pytest.mark.parametrize("module", ["cuda.bindings.runtime", "cuda.cudart", "torch"])
def test_plan_is_loaded_and_built_on_the_current_gpu_of_cuda(here, monkeypatch, module):
    by_torch = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: HERE)
    current = {"cudaGetDevice": lambda: (0, HERE), "cuda": by_torch}
    for name in ("cuda.bindings.runtime", "cuda.cudart", "torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**current))
    runtime, plan = trt.Runtime(Log()), trt.compile(affine()).serialize()
    assert runtime.deserialize_cuda_engine(plan).device == jax.devices()[0]  # JAX has no GPU

    monkeypatch.setattr("netloop.api.current_gpu.PLATFORM", "cpu")
    builder = trt.Builder(Log())
    assert runtime.deserialize_cuda_engine(plan).device == here
    assert builder.build_engine_with_config(affine(), builder.create_builder_config()).device == here
    monkeypatch.setitem(sys.modules, module, SimpleNamespace())
    assert runtime.deserialize_cuda_engine(plan).device == jax.devices()[0]


class Watch:
    """Stands for the stopwatch, and notes where engines compute."""

    places = frozenset()

    def __init__(self, inputs, calls):
        self.inputs = inputs

    def __call__(self, candidate, incumbent):
        for engine in (candidate, incumbent):
            engine.move_weights()
            engine.run_to_end(self.inputs)
            Watch.places |= {engine.device}
        return TimedPair(1.0, 2.0, [0.5] * 7)


def test_tuned_engine_is_timed_and_stays_on_the_device(here, monkeypatch, tmp_path):
    monkeypatch.setattr("netloop.compiler.tuning.candidates.Stopwatch", Watch)
    inputs = {tensor.name: np.ones(tensor.shape, F) for tensor in lstm(1, 3).inputs}
    engine = trt.compile(lstm(1, 3), passes=GATES, device=here, tune=True, timing_cache=tmp_path / "times")
    slots = trt.SlotEngine(lstm(1, 3), slots=2, passes=GATES, device=here, tune=inputs)

    assert Watch.places == {here}
    assert {engine.device, slots.device} | places(engine(inputs)) == {here}
    assert engine.forms
    assert slots.forms
    assert this_machine(here) == this_machine()  # times of equal devices count for each other


def test_states_of_steps_are_on_the_device(here):
    stepper = trt.Stepper(trt.compile(step(), device=here), {"s": "sn"})
    for count, inputs in enumerate(given(lambda array: {"x": array}), 1):
        y = stepper(inputs)["y"]
        np.testing.assert_array_equal(y, 2 * count * X)
        assert places([y, stepper.states]) == {here}
    stepper.reset({"s": jax.device_put(X, jax.devices()[THERE])})
    assert places(stepper.states) == {stepper.device} == {here}


def test_slots_are_on_the_device(here):
    engine = trt.SlotEngine(looped(), slots=2, device=here)
    requests = [engine.submit(inputs) for inputs in given(lambda array: {"x": array})]
    group = next(iter(engine._programs._programs._programs))
    engine.step()

    assert places([engine._programs.weights, group._slots]) == {engine.device} == {here}
    for request in requests:
        np.testing.assert_array_equal(request.result()["rows"], [X, X + 1, X + 2])
    assert engine.program_count == 1


def test_slots_are_on_the_device_of_their_engine_or_their_own(here):
    engine = trt.compile(looped(), device=here)

    assert trt.SlotEngine(engine, slots=2).device == here
    assert trt.SlotEngine(engine, slots=2, device=f"cpu:{THERE}").device == jax.devices()[THERE]


def test_services_compute_on_the_device_of_their_engine(here):
    there = jax.device_put(X, jax.devices()[THERE])
    with Sequences(trt.compile(step(), device=here), {"s": "sn"}, sizes=[1]) as sequences:
        for x in (X, there):
            np.testing.assert_array_equal(sequences.step(0, {"x": x}, start=True)["y"], 2 * X)
        assert places(sequences._states) == {sequences.device} == {here}
    with Server(trt.compile(affine(-1), device=here)) as server:
        for x in (X, there):
            np.testing.assert_array_equal(server(x=x)["y"], expected(X))
        program = server._batches.engine.executable.latest
        assert program.compiled.runtime_executable().local_devices() == [here]


def test_written_models_are_served_on_the_device(here, tmp_path):
    plan, name = tmp_path / "model.plan", f"cpu:{HERE}"
    trt.compile(affine(-1)).save(plan)
    words = ["--device", name, "--sizes", "1", "--triton", str(tmp_path / "triton")]
    assert main(["serve", str(plan), *words]) == 0

    options = {"states": {}, "shapes": {}, "sizes": [1], "device": name}
    assert f'\\"device\\": \\"{name}\\"' in (tmp_path / "triton" / "model" / "config.pbtxt").read_text(encoding="utf-8")
    config = json.dumps({"parameters": {OPTIONS: {"string_value": json.dumps(options)}}})
    model = TritonModel()
    place = {"model_config": config, "model_repository": str(tmp_path / "triton" / "model"), "model_version": "1"}
    model.initialize(place)
    assert model._model.service._batches.engine.device == here
    model.finalize()


def test_commands_compute_on_the_device(here, tmp_path, monkeypatch, capsys):
    devices, settings = set(), Placement.settings
    monkeypatch.setattr(Placement, "settings", lambda self: devices.add(self.device) or settings(self))
    trt.compile(looped()).save(tmp_path / "model.plan")
    devices.clear()

    for words in ("run", "run --compare reference", "debug", "bench --duration 0.01 --warmUp 0", "inspect --passes"):
        command, *options = words.split()
        assert main([command, str(tmp_path / "model.plan"), *options, "--device", f"cpu:{HERE}"]) == 0
    assert devices == {here}
    assert main(["run", str(tmp_path / "model.plan"), "--device", "cpu:8"]) == 2
    assert "NL656: there is no device 'cpu:8'; JAX has 'cpu:0', 'cpu:1'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "why", "fix"),
    [
        ("cuda:1", "an engine computes on one of the devices", "install JAX for NVIDIA's GPUs"),
        ("gpu", "an engine computes on one of the devices", "install JAX for NVIDIA's GPUs"),
        ("cpu:8", "JAX has 8 of this platform here", "pass one of these"),
        ("Cpu:3", "an engine computes on one of the devices", "did you mean 'cpu:3'"),
        ("", "an engine computes on one of the devices", "pass one of these"),
    ],
)
def test_device_that_is_not_there_is_refused_with_those_that_are(name, why, fix):
    with pytest.raises(trt.InputError) as caught:
        trt.compile(affine(), device=name)

    (finding,) = caught.value.findings
    assert (finding.code, finding.what) == (
        "NL656",
        f"there is no device {name!r}; JAX has {', '.join(repr(f'cpu:{number}') for number in range(8))}",
    )
    assert finding.why.startswith(why)
    assert finding.fix.startswith(fix)


def test_what_is_no_device_is_a_type_error():
    with pytest.raises(TypeError, match=r"device must be a jax\.Device or a name such as 'cpu' or 'cuda:1', not int"):
        trt.SlotEngine(looped(), device=1)
