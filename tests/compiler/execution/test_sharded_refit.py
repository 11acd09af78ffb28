"""New weights for engines on a mesh of eight devices, and what such engines share with others."""

import threading

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import netloop as trt
from netloop.compiler import xla_compilation
from tests.compiler.execution.test_sharded_engine import BY_COLUMN, FIRST, ROWS, gates, mesh, writer
from tests.support.networks import F, asserted, combine, count_is_an_input, mark

pytestmark = pytest.mark.eight_devices


@pytest.fixture
def compiles(monkeypatch):
    """The programs that XLA compiles from now on."""
    made, compile_lowered = [], xla_compilation.compile_lowered

    def counted(*arguments):
        made.append(arguments)
        return compile_lowered(*arguments)

    monkeypatch.setattr(xla_compilation, "compile_lowered", counted)
    return made


def refit(engine, weights):
    refitter = trt.Refitter(engine, trt.Logger(trt.Logger.ERROR))
    for name, array in weights.items():
        assert refitter.set_named_weights(name, array)
    assert refitter.refit_cuda_engine()


def with_weights(network, weights):
    for layer in network.layers:
        if layer.name in weights:
            layer.weights = weights[layer.name]
    return network


def drawn(network, names):
    draw = np.random.default_rng(5)
    layers = [layer for layer in network.layers if isinstance(layer, trt.IConstantLayer) and layer.name in names]
    return {constant.name: draw.standard_normal(constant.get_output(0).shape).astype(F) for constant in layers}


def test_new_weights_for_rows_compile_nothing(compiles):
    inputs, network = {"first": FIRST}, writer()
    engine = trt.shard(network, mesh())
    before = engine(inputs)["said"]
    weights = drawn(network, ("embedding", "recurrent", "head"))
    refit(engine, weights)
    made = engine(inputs)

    assert len(compiles) == 1
    assert not np.array_equal(made["said"], before)
    for name, wanted in trt.shard(with_weights(writer(), weights), mesh())(inputs).items():
        np.testing.assert_array_equal(made[name], wanted)


def test_new_weights_in_parts_compile_nothing_and_stay_in_parts(compiles):
    engine = trt.shard(gates(), mesh("model"), in_specs=BY_COLUMN)
    engine(ROWS)
    weights = drawn(gates(), [f"{kind}{number}" for kind in "WR" for number in range(4)])
    refit(engine, weights)
    made = engine(ROWS)["y"]

    assert len(compiles) == 1
    np.testing.assert_array_equal(
        made, trt.shard(with_weights(gates(), weights), mesh("model"), in_specs=BY_COLUMN)(ROWS)["y"]
    )
    parts = [array for array in engine._latest.loaded(engine.weights) if array.shape == (32, 32)]
    assert parts
    assert all(part.addressable_shards[0].data.shape == (32, 4) for part in parts)


def test_new_weights_reach_the_programs_of_all_shapes(network):
    scale = network.add_constant((1,), F([2]))
    scale.name = "scale"
    x = network.add_input("x", trt.float32, (-1,))
    engine = trt.shard(mark(network, y=combine(network, x, scale.get_output(0), trt.ElementWiseOperation.PROD)), mesh())
    ones = [np.ones(number, F) for number in (8, 16)]
    before = [engine(x=one)["y"][0] for one in ones]
    refit(engine, {"scale": F([3])})

    assert before == [2, 2]
    assert [engine(x=one)["y"][0] for one in ones] == [3, 3]
    assert engine.program_count == 2


def test_new_kernels_are_compiled_into_the_next_program(network):
    x = network.add_input("x", trt.float32, (-1, 1, 4, 4))
    convolution = network.add_convolution_nd(x, 1, (1, 1), F([2]))
    convolution.name = "conv"
    engine = trt.shard(mark(network, y=convolution.get_output(0)), mesh())
    x = np.ones((8, 1, 4, 4), F)
    assert engine(x=x)["y"][0, 0, 0, 0] == 2

    refitter = trt.Refitter(engine, trt.Logger(trt.Logger.ERROR))
    assert refitter.set_weights("conv", trt.WeightsRole.KERNEL, F([5]))
    assert refitter.refit_cuda_engine()
    assert engine(x=x)["y"][7, 0, 3, 3] == 5


@pytest.mark.slow
def test_calls_during_refits_have_old_or_new_weights(network):
    """All rows of a call see one refit: no call has weights of two."""
    parts = []
    x = network.add_input("x", trt.float32, (-1,))
    for name in ("a", "b"):
        parts.append(network.add_constant((1,), F([0])))
        parts[-1].name = name
    total = combine(network, combine(network, x, parts[0].get_output(0)), parts[1].get_output(0))
    engine, found = trt.shard(mark(network, y=total), mesh()), []
    engine(x=np.zeros(8, F))

    def calls():
        found.extend(engine(x=np.zeros(8, F))["y"].tolist() for _ in range(50))

    caller = threading.Thread(target=calls)
    caller.start()
    value = 0
    while caller.is_alive():
        value += 1
        refit(engine, {"a": F([value]), "b": F([-value + 1])})
    caller.join()

    assert len(found) == 50
    assert {*map(tuple, found)} <= {(0.0,) * 8, (1.0,) * 8}


def test_weights_of_another_size_are_refused(network):
    engine = trt.shard(writer(), mesh())
    refitter = trt.Refitter(engine, trt.Logger(trt.Logger.INTERNAL_ERROR))

    assert not refitter.set_named_weights("head", F([1]))
    assert set(refitter.get_all_weights()) >= {"embedding", "recurrent", "head"}
    assert refitter.get_missing_weights() == []


@pytest.mark.parametrize("row", [0, 15])
def test_a_loop_of_a_row_makes_at_most_max_trips(row):
    engine = trt.shard(count_is_an_input(), mesh(), max_trips=5)
    n = np.full(16, 5, np.int32)
    assert engine.max_trips == 5
    assert engine(n=n)["y"].tolist() == [32] * 16

    n[row] = 6
    with pytest.raises(trt.ExecutionError, match="max_trips"):
        engine(n=n)


def test_max_trips_is_a_number(network):
    with pytest.raises(ValueError, match="max_trips"):
        trt.shard(count_is_an_input(), mesh(), max_trips=-1)


def test_inputs_are_a_dict_or_named():
    engine = trt.shard(asserted(3), mesh())
    n = np.ones(8, np.int32)

    assert engine(n=n)["y"].tolist() == engine({"n": n})["y"].tolist()
    with pytest.raises(TypeError, match="and not both"):
        engine({"n": n}, n=n)
    assert repr(engine).endswith("on rows 8, 1 compiled>")
    assert jax.device_count() == 8
    assert P("rows") == engine(n=n)["y"].sharding.spec
