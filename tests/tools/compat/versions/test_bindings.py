"""Engines and contexts with numbered bindings, as scripts for TensorRT 7 and 8 have them."""

import numpy as np
import pytest

from netloop.tools.compat.versions import module_of
from tests.support.log import Log

trt = module_of(8)
EXPLICIT = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)


def engine_of(fill, ranges=(), log=None):
    """The engine of a network that ``fill`` builds, with a profile for each range of shapes of "x"."""
    builder = trt.Builder(log or Log())
    network, config = builder.create_network(EXPLICIT), builder.create_builder_config()
    for name, tensor in fill(network).items():
        tensor.name = name
        network.mark_output(tensor)
    for range_ in ranges:
        profile = builder.create_optimization_profile()
        profile.set_shape("x", *range_)
        config.add_optimization_profile(profile)
    return builder.build_engine(network, config)


def doubled(network):
    x = network.add_input("x", trt.float32, (-1, 2))
    return {"y": network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)}


RANGES = [((1, 2), (2, 2), (3, 2)), ((4, 2), (5, 2), (6, 2))]


def test_bindings_have_numbers_names_shapes_and_types():
    engine = engine_of(doubled)

    assert [engine.num_bindings, len(engine), [*engine]] == [2, 2, ["x", "y"]]
    assert [engine["y"], engine[1], engine[-1], engine.get_binding_index("z")] == [1, "y", "y", -1]
    assert [engine.get_binding_name(0), engine.get_binding_shape(0), engine.get_binding_shape("y")] == [
        "x",
        (-1, 2),
        (-1, 2),
    ]
    assert [engine.binding_is_input(0), engine.binding_is_input("y")] == [True, False]
    assert [engine.get_binding_dtype(1), engine.get_binding_format(0)] == [trt.float32, trt.TensorFormat.LINEAR]
    assert [engine.is_shape_binding(0), engine.is_execution_binding(0)] == [False, True]
    assert engine.get_location("x") is trt.TensorLocation.DEVICE
    assert [engine.max_batch_size, engine.has_implicit_batch_dimension] == [1, False]
    with pytest.raises(IndexError, match="has 2 bindings, and no number 2"):
        engine.__getitem__(2)


def test_binding_that_is_not_there_is_logged():
    log = Log()
    engine = engine_of(doubled, log=log)

    assert [engine.get_binding_name(7), engine.get_binding_shape(7), engine.binding_is_input("z")] == [None, (), False]
    assert log.errors() == ["the engine has 2 bindings, and no 7", "the engine has 2 bindings, and no 'z'"]


def test_each_profile_has_bindings_of_its_own():
    engine = engine_of(doubled, RANGES)

    assert engine.num_bindings == 4
    assert [*engine] == ["x", "y", "x [profile 1]", "y [profile 1]"]
    assert [engine.get_binding_index("x [profile 1]"), engine.binding_is_input(2)] == [2, True]
    assert engine.get_profile_shape(1, 2) == [(4, 2), (5, 2), (6, 2)]
    assert engine.get_profile_shape(0, "x") == [(1, 2), (2, 2), (3, 2)]


def test_run_takes_the_addresses_of_the_active_profile():
    context = engine_of(doubled, RANGES).create_execution_context()
    x, y = np.arange(8, dtype=np.float32).reshape(4, 2), np.zeros((4, 2), np.float32)

    context.active_optimization_profile = 1
    assert context.active_optimization_profile == 1
    assert not context.set_binding_shape(0, (1, 2))
    assert context.set_binding_shape(2, x.shape)
    assert [context.get_binding_shape(3), context.get_strides(2)] == [(4, 2), (2, 1)]
    assert context.execute_v2([0, 0, x.ctypes.data, y.ctypes.data])
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize("method", ["execute_v2", "execute_async_v2", "execute", "execute_async"])
def test_every_way_to_run_gives_the_outputs(method):
    context = engine_of(doubled).create_execution_context()
    x, y = np.float32([[1, 2]]), np.zeros((1, 2), np.float32)
    addresses = [x.ctypes.data, y.ctypes.data]
    batch = {} if method.endswith("v2") else {"batch_size": 3}  # which means nothing where the batch is in the shape
    stream = {"stream_handle": 0} if "async" in method else {}

    assert context.set_binding_shape(0, x.shape)
    assert getattr(context, method)(bindings=addresses, **batch, **stream)
    np.testing.assert_array_equal(y, [[2, 4]])


def test_run_with_too_few_addresses_is_refused():
    log = Log()
    context = engine_of(doubled, log=log).create_execution_context()

    assert not context.execute_async_v2([0], 0)
    assert log.errors() == ["the engine has 2 inputs and outputs, and was given 1 addresses"]


def reshaped(network):
    layer = network.add_shuffle(network.add_input("x", trt.float32, (6,)))
    layer.set_input(1, network.add_input("shape", trt.int32, (2,)))
    return {"y": layer.get_output(0)}


def test_values_of_a_shape_input_are_kept_and_the_address_is_not_read():
    engine = engine_of(reshaped)
    context = engine.create_execution_context()
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)

    assert [engine.is_shape_binding(1), engine.get_binding_dtype(1)] == [True, trt.int32]
    assert context.set_shape_input(1, [2, 3])
    assert [context.get_shape(1), context.get_binding_shape(2)] == [[2, 3], (2, 3)]
    assert context.execute_v2([x.ctypes.data, 0, y.ctypes.data])
    np.testing.assert_array_equal(y, x)
    assert not context.set_shape_input(1, [2])
    assert not context.set_shape_input(2, [2, 3])
    with pytest.raises(RuntimeError, match="binding 0 has no values"):
        context.get_shape(0)


def test_engine_of_a_plan_has_bindings():
    plan = engine_of(doubled).serialize()

    assert trt.Runtime(Log()).deserialize_cuda_engine(plan).num_bindings == 2
    assert trt.Runtime(Log()).deserialize_cuda_engine(b"no plan") is None


def test_shape_of_a_tensor_is_int32():
    def lengths(network):
        x = network.add_input("x", trt.float32, (-1, 2))
        ones = network.add_constant((2,), np.ones(2, np.int32)).get_output(0)
        shape = network.add_shape(x).get_output(0)
        return {"y": network.add_elementwise(shape, ones, trt.ElementWiseOperation.SUM).get_output(0)}

    engine = engine_of(lengths)

    assert engine.get_binding_dtype(1) is trt.int32
    np.testing.assert_array_equal(engine({"x": np.zeros((3, 2), np.float32)})["y"], [4, 3])


def test_length_that_only_a_run_knows_is_bounded_before_and_known_after_it():
    engine = engine_of(
        lambda network: {"y": network.add_non_zero(network.add_input("x", trt.float32, (2, 3))).get_output(0)}
    )
    context = engine.create_execution_context()
    x, y = np.float32([[0, 1, 0], [2, 3, 0]]), np.zeros(12, np.int32)

    assert [context.get_binding_shape(1), context.get_max_output_size("y")] == [(2, -1), y.nbytes]
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    assert context.get_binding_shape(1) == (2, 3)
    np.testing.assert_array_equal(y[:6], [0, 1, 1, 1, 0, 1])
