"""Engines describe their inputs, outputs, profiles and memory."""

import numpy as np
import pytest

import netloop as trt
from tests.support import networks
from tests.support.builds import swap_engine
from tests.support.log import Log
from tests.support.networks import (
    combine,
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

    for each in (engine, loaded):
        assert each({"x": np.zeros(1, np.float32)})["y"].tolist() == [1]
    assert trt.Refitter(engine, trt.Logger()).refit_cuda_engine()
    assert engine({"x": np.zeros(1, np.float32)})["y"].tolist() == [1]
