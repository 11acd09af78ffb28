"""Engines describe their inputs, outputs, profiles and memory, and go to other processes."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from unittest.mock import patch

import numpy as np
import pytest

import netloop as trt
from tests.support import networks
from tests.support.builds import swap_engine
from tests.support.examples import mostly_slow
from tests.support.log import Log
from tests.support.networks import (
    combine,
    counted,
    last,
    lstm,
    mark,
)


def test_engine_describes_its_tensors(engine):
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]

    assert names == ["x", "y"] == [engine[0], engine[1]]
    assert engine.name == "doubling"
    assert engine.get_tensor_mode("x") is trt.TensorIOMode.INPUT
    assert engine.get_tensor_mode("y") is trt.TensorIOMode.OUTPUT
    assert engine.get_tensor_mode("z") is trt.TensorIOMode.NONE
    assert engine.get_tensor_dtype("y") is trt.float32
    assert engine.get_tensor_shape("y") == (-1, 3)
    assert engine.get_tensor_location("x") is trt.TensorLocation.DEVICE
    assert engine.get_tensor_format_desc("x") == "Row major linear FP32 format (kLINEAR)"


def test_profiles_are_in_the_plan(engine):
    assert engine.num_optimization_profiles == 1
    assert engine.get_tensor_profile_shape("x", 0) == [(1, 3), (2, 3), (4, 3)]


def test_engine_keeps_its_profiles_whatever_becomes_of_them(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (-1,))).get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (1,), (2,), (3,))
    config.add_optimization_profile(profile)
    engine = builder.build_engine_with_config(network, config)
    profile.set_shape("x", (4,), (5,), (6,))

    assert engine.get_tensor_profile_shape("x", 0) == [(1,), (2,), (3,)]


def test_engine_describes_its_inputs_and_outputs():
    network = lstm()
    network.name = "lstm"
    engine = trt.compile(network)

    assert (engine.name, engine.num_io_tensors, engine.num_layers) == ("lstm", 6, network.num_layers)
    assert [engine[index] for index in range(6)] == ["x", "h0", "c0", "y", "c", "hs"]
    assert engine.get_tensor_mode("x") is trt.TensorIOMode.INPUT
    assert engine.get_tensor_mode("y") is trt.TensorIOMode.OUTPUT
    assert engine.get_tensor_mode("z") is trt.TensorIOMode.NONE
    assert engine.get_tensor_shape("hs") == (-1, -1, 5)
    assert engine.get_tensor_dtype("hs") is trt.float32


def test_weights_are_not_streamed():
    made = swap_engine(log := Log())
    made.weight_streaming_budget_v2 = 1 << 20

    assert made.weight_streaming_budget_v2 == 1 << 20
    assert (made.streamable_weights_size, made.get_weight_streaming_automatic_budget()) == (0, 0)
    assert made.weight_streaming_scratch_memory_size == 0
    assert "weight_streaming_budget_v2" in log.infos()[0]
    with pytest.raises(ValueError, match="at least 0"):
        made.weight_streaming_budget_v2 = -1


def test_tactic_sources_are_kept_in_the_plan():
    builder = trt.Builder(Log())
    config = builder.create_builder_config()
    config.set_tactic_sources(1 << int(trt.TacticSource.JIT_CONVOLUTIONS))
    plan = builder.build_serialized_network(networks.swap(), config)

    assert swap_engine().tactic_sources == 3
    assert trt.Runtime(Log()).deserialize_cuda_engine(plan).tactic_sources == 2


def test_memory_is_what_xla_reports_for_the_latest_program():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 64))
    plain, transposed = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
    product = network.add_matrix_multiply(x, transposed, x, plain).get_output(0)
    network.mark_output(network.add_matrix_multiply(product, plain, product, plain).get_output(0))
    made = trt.compile(network)
    before = made.device_memory_size_v2
    made({"x": np.ones((8, 64), np.float32)})
    between_the_products = 64 * 64 * 4

    assert before == 0
    assert made.device_memory_size_v2 >= between_the_products
    assert made.get_device_memory_size_for_profile_v2(0) == made.device_memory_size_v2
    assert made.create_execution_context().update_device_memory_size_for_shapes() == made.device_memory_size_v2


@pytest.mark.parametrize("kind", ["on the host", "interruptible"])
def test_memory_of_steps_on_the_host_is_that_of_their_largest_piece(network, kind):
    x = network.add_input("x", trt.float32, (64, 64))
    product = x
    for _ in range(3):
        product = network.add_matrix_multiply(
            product, trt.MatrixOperation.NONE, x, trt.MatrixOperation.TRANSPOSE
        ).get_output(0)
    if kind == "on the host":
        mark(network, y=product, rows=network.add_non_zero(x).get_output(0))
    else:
        loop = counted(network, network.add_input("n", trt.int32, ()))
        state = loop.add_recurrence(product)
        state.set_input(1, combine(network, state.get_output(0), x))
        mark(network, y=last(loop, state.get_output(0)))
    engine = trt.compile(network, interruptible=kind == "interruptible")
    given = {tensor.name: np.ones(tensor.shape, trt.nptype(tensor.dtype)) for tensor in network.inputs}
    engine(given)

    assert engine.executable.latest.compiled is None
    assert engine.device_memory_size_v2 >= 64 * 64 * 4  # between the products


def test_engine_has_weights_of_its_own(network):
    weights = np.ones(5000, np.float32)
    x = network.add_input("x", trt.float32, (-1,))
    held = network.add_constant((5000,), weights)
    held.name = "held"
    highest = network.add_reduce(held.get_output(0), trt.ReduceOperation.MAX, 1, True).get_output(0)
    mark(network, y=combine(network, x, highest))
    engine = trt.compile(network)
    weights[:] = 100
    loaded = trt.Runtime(trt.Logger()).deserialize_cuda_engine(engine.serialize())

    for other in (engine, loaded):
        assert other({"x": np.zeros(1, np.float32)})["y"].tolist() == [1]
    assert trt.Refitter(engine, trt.Logger()).refit_cuda_engine()
    assert engine({"x": np.zeros(1, np.float32)})["y"].tolist() == [1]


# ---------------------------------------------------------------------------- what tools expect


def test_engine_without_an_argument_is_the_engine(engine):
    assert engine() is engine
    np.testing.assert_array_equal(engine({"x": np.ones((1, 3), np.float32)})["y"], [[2, 2, 2]])


def test_engine_without_inputs_runs_with_an_empty_dict():
    network = trt.INetworkDefinition()
    mark(network, y=network.add_constant((2,), np.float32([1, 2])).get_output(0))

    np.testing.assert_array_equal(trt.compile(network)({})["y"], [1, 2])


def with_profiles(log, make, *ranges):
    """The engine of what ``make`` returns for a network, with the values of "shape" in profiles."""
    builder = trt.Builder(log)
    network, config = builder.create_network(), builder.create_builder_config()
    mark(network, y=make(network))
    for range_ in ranges:
        profile = builder.create_optimization_profile()
        profile.set_shape_input("shape", *range_)
        config.add_optimization_profile(profile)
    return builder.build_engine_with_config(network, config)


def shuffled(network):
    layer = network.add_shuffle(network.add_input("x", trt.float32, (1, 3, 4, 5)))
    layer.set_input(1, network.add_input("shape", trt.int32, (4,)))
    return network.add_activation(layer.get_output(0), trt.ActivationType.RELU).get_output(0)


def sliced(network):
    layer = network.add_slice(network.add_input("x", trt.float32, (1, 3, 4, 5)), [0] * 4, [0] * 4, [1] * 4)
    layer.set_input(2, network.add_input("shape", trt.int64, (4,)))
    return layer.get_output(0)


def filled(network):
    layer = network.add_fill((), trt.FillOperation.RANDOM_UNIFORM)
    layer.set_input(0, network.add_input("shape", trt.int32, (4,)))
    return layer.get_output(0)


FIXED_FIRST = [1, 1, 1, 1], [1, 2, 3, 4], [1, 3, 4, 5]


@pytest.mark.parametrize("make", [shuffled, sliced, filled])
def test_length_that_all_profiles_fix_is_known(log, make):
    """As in logs of runs on a GPU: (1, -1, -1, -1) for a shuffle and for a slice."""
    assert with_profiles(log, make, FIXED_FIRST).get_tensor_shape("y") == (1, -1, -1, -1)
    assert with_profiles(log, make, FIXED_FIRST, ([1, 2, 2, 2],) * 3).get_tensor_shape("y") == (1, -1, -1, -1)
    assert with_profiles(log, make, FIXED_FIRST, ([1] * 4, [2] * 4, [3] * 4)).get_tensor_shape("y") == (-1,) * 4
    assert with_profiles(log, make).get_tensor_shape("y") == (-1,) * 4


def test_lengths_of_a_reshape_that_copy_or_are_inferred_stay_unknown(log):
    engine = with_profiles(log, shuffled, ([0, -1, 2, 2],) * 3)

    assert engine.get_tensor_shape("y") == (-1, -1, 2, 2)


def test_unknown_name_of_a_tensor_is_logged_and_has_the_answers_of_tensorrt(log):
    engine = with_profiles(log, sliced, FIXED_FIRST)

    assert (engine.get_tensor_shape("shapes"), engine.get_tensor_dtype("shapes")) == ((-1,), trt.float32)
    assert engine.get_tensor_location("shapes") is trt.TensorLocation.DEVICE
    assert engine.get_tensor_format("shapes") is trt.TensorFormat.LINEAR
    assert (engine.get_tensor_format_desc("shapes"), engine.get_tensor_vectorized_dim("shapes")) == ("", -1)
    assert not engine.is_shape_inference_io("shapes")
    assert engine.get_aliased_input_tensor("shapes") is None
    assert engine.get_tensor_profile_shape("shapes", 0) == [(-1,)] * 3
    assert "the engine has no input or output 'shapes'; it has" in log.errors()[-1]


def test_indices_that_there_are_not_say_how_many_there_are(engine):
    with pytest.raises(IndexError, match="there is no input or output 2: the engine has 2, counted from 0"):
        engine.get_tensor_name(2)
    with pytest.raises(IndexError, match="there is no optimization profile 1: the engine has 1, counted from 0"):
        engine.get_tensor_profile_shape("x", 1)


def test_profile_values_take_both_orders(log):
    engine = with_profiles(log, sliced, FIXED_FIRST)

    assert engine.get_tensor_profile_values(0, "shape") == [list(entry) for entry in FIXED_FIRST]
    assert engine.get_tensor_profile_values("shape", 0) == engine.get_tensor_profile_values(0, "shape")
    assert engine.get_tensor_profile_values(profile_index=0, name="shape") == engine.get_tensor_profile_values(
        0, "shape"
    )
    assert engine.get_tensor_profile_values(0, "shapes") == []
    with pytest.raises(TypeError, match="name must be str"):
        engine.get_tensor_profile_values(0, 0)


def test_cache_is_reported_as_the_input_that_the_output_aliases():
    network = trt.INetworkDefinition()
    cache, update = (network.add_input(name, trt.float32, (1, 2, n, 4)) for name, n in (("cache", 8), ("update", 1)))
    place = network.add_input("place", trt.int32, (1,))
    made = network.add_kv_cache_update(cache, update, place, trt.KVCacheMode.LINEAR).get_output(0)
    copied = network.add_identity(cache).get_output(0)
    inner = network.add_kv_cache_update(copied, update, place, trt.KVCacheMode.LINEAR).get_output(0)
    mark(network, made=made, inner=inner)
    engine = trt.compile(network)

    assert engine.get_aliased_input_tensor("made") == "cache"
    assert [engine.get_aliased_input_tensor(name) for name in ("inner", "cache", "place")] == [None] * 3


# ---------------------------------------------------------------------------- other processes


def call(engine, x):
    """What a worker does with an engine and the network of another one."""
    return np.asarray(engine({"x": x})["y"])


def pickled(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [pickled, copy.copy, copy.deepcopy])
def test_copy_of_an_engine_has_its_options_and_weights(copied):
    network = networks.swap()
    network.name = "swap"
    original = trt.compile(network, max_trips=7, passes=["loop_fission"], donate=["x"])
    made = copied(original)

    assert type(made) is trt.ICudaEngine
    assert made is not original
    assert (made.name, made.max_trips, made.passes, made.donated) == ("swap", 7, {"loop_fission"}, {"x"})
    assert made({"x": np.float32([1, 2]), "z": np.float32([3, 4])})["a"].tolist() == [3, 4]


def test_copy_of_an_engine_has_its_refitted_weights(network):
    weights = network.add_constant((2,), np.float32([1, 2]))
    weights.name = "w"
    network.mark_output(weights.get_output(0))
    engine = trt.compile(network)
    refitter = trt.Refitter(engine, trt.Logger())
    refitter.set_weights("w", trt.WeightsRole.CONSTANT, np.float32([3, 4]))
    assert refitter.refit_cuda_engine()

    (made,) = pickled(engine)({}).values()
    assert made.tolist() == [3, 4]


def test_engine_of_thousands_of_layers_is_pickled():
    network = networks.chain(4000, length=-1)
    engine = pickled(trt.compile(network))

    assert engine.num_layers == 4000
    assert engine.program_count == 0


@pytest.mark.parametrize("method", mostly_slow(1, ["forkserver", "spawn"]))
def test_worker_takes_an_engine_as_its_argument(method):
    network = networks.running_sum()
    with ProcessPoolExecutor(1, get_context(method)) as pool:
        of_engine, of_network = pool.submit(call, trt.compile(network), networks.X), pool.submit(trt.compile, network)

        np.testing.assert_array_equal(of_engine.result(), [9, 12, 15])
        np.testing.assert_array_equal(of_network.result()({"x": networks.X})["y"], [9, 12, 15])


# ---------------------------------------------------------------------------- calls by name, and files


def sum_of(*names):
    network = trt.INetworkDefinition()
    inputs = [network.add_input(name, trt.float32, (2,)) for name in names]
    mark(network, y=combine(network, *inputs))
    return trt.compile(network, max_trips=7)


ONE, TWO = np.float32([1, 1]), np.float32([2, 2])


def test_inputs_are_given_by_name():
    assert sum_of("x", "h")(x=ONE, h=TWO)["y"].tolist() == [3, 3]


def test_input_may_be_called_inputs():
    assert sum_of("inputs", "x")(inputs=ONE, x=TWO)["y"].tolist() == [3, 3]


def test_dict_may_be_given_by_the_name_of_the_parameter():
    assert sum_of("x", "h")(inputs={"x": ONE, "h": TWO})["y"].tolist() == [3, 3]


def test_dict_and_names_are_not_mixed():
    with pytest.raises(TypeError, match="a dict of arrays, or the arrays by name, and not both"):
        sum_of("x", "h")({"x": ONE}, h=TWO)


def test_misspelt_name_of_an_input_has_a_hint():
    with pytest.raises(trt.InputError, match=r"no input 'H'; it has 'h', 'x'\n  fix: did you mean 'h'\?"):
        sum_of("x", "h")(x=ONE, H=TWO)


def test_saved_engine_is_loaded_with_its_options(tmp_path):
    path = tmp_path / "sum.plan"

    sum_of("x", "h").save(path)

    engine = trt.load(path)
    assert engine(x=ONE, h=TWO)["y"].tolist() == [3, 3]
    assert engine.max_trips == 7


def test_plan_of_a_network_is_loaded_as_an_engine(tmp_path):
    trt.plan.save(sum_of("x", "h").network, tmp_path / "network.plan")

    assert trt.load(tmp_path / "network.plan")(x=ONE, h=TWO)["y"].tolist() == [3, 3]


def test_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "sum.plan"
    path.write_bytes(b"old")
    with (
        patch("os.fsync", side_effect=OSError(28, "No space left on device")),
        pytest.raises(OSError, match="sum"),
    ):
        sum_of("x", "h").save(path)

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"PK", b"no plan at all" * 100])
def test_file_that_is_no_plan_is_named(tmp_path, content):
    path = tmp_path / "engine.trt"
    path.write_bytes(content)

    with pytest.raises(trt.FileFormatError, match=f"at {path}"):
        trt.load(path)


def test_truncated_plan_is_refused(tmp_path):
    path = tmp_path / "sum.plan"
    sum_of("x", "h").save(path)
    path.write_bytes(path.read_bytes()[:-10])

    with pytest.raises(trt.FileFormatError, match=f"at {path}"):
        trt.load(path)


@pytest.mark.parametrize(("name", "reader"), [("m.onnx", "netloop.onnx.load"), ("m.XML", "netloop.openvino.load")])
def test_model_is_no_plan_and_the_error_says_what_reads_it(tmp_path, name, reader):
    (tmp_path / name).write_bytes(b"a model")

    with pytest.raises(trt.FileFormatError, match=f"fix: {reader} reads models of this format"):
        trt.load(tmp_path / name)
