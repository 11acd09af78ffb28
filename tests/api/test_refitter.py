"""Weights: their names, which of them can be replaced, and plans without them."""

import gc
import threading

import jax
import numpy as np
import pytest

import netloop as trt
from netloop import plan
from netloop.api import refitter as refitter_module
from tests.support import plan_forge as forge
from tests.support.log import Log
from tests.support.networks import mark


def scaling_engine(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (2,))
    scale = network.add_constant((2,), np.array([2, 3], np.float32))
    scale.name = "scale"
    y = network.add_elementwise(x, scale.get_output(0), trt.ElementWiseOperation.PROD).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return builder.build_engine_with_config(network, builder.create_builder_config())


def test_refitted_engine_has_new_weights_and_the_same_program(log):
    engine = scaling_engine(log)
    before = engine.program_count
    refitter = trt.Refitter(engine, log)
    x = {"x": np.ones(2, np.float32)}

    assert refitter.get_all_weights() == ["scale"]
    assert refitter.set_named_weights("scale", np.array([5, 7], np.float32))
    np.testing.assert_array_equal(engine(x)["y"], [2, 3])
    assert refitter.refit_cuda_engine()
    np.testing.assert_array_equal(engine(x)["y"], [5, 7])
    assert engine.program_count == before == 1


def test_programs_that_are_not_called_after_a_refit_keep_no_old_weights(network, log):
    x, table = network.add_input("x", trt.float32, (-1, 64)), network.add_constant((64, 64), np.ones((64, 64), "f"))
    table.name, none = "table", trt.MatrixOperation.NONE
    mark(network, y=network.add_matrix_multiply(x, none, table.get_output(0), none).get_output(0))
    # a network that passes rewrite has the weights with which it was rewritten
    engine = trt.compile(network, passes=trt.PASSES.keys() - {"bucketing", "product_kernels"})
    refitter = trt.Refitter(engine, log)

    def arrays():
        gc.collect()
        return sum(array.shape == (64, 64) for array in jax.live_arrays())

    before = arrays()
    for length in range(1, 6):
        engine({"x": np.ones((length, 64), np.float32)})
        refitter.set_named_weights("table", np.full((64, 64), length, np.float32))
        assert refitter.refit_cuda_engine()
    assert arrays() - before <= 2


def test_weights_on_the_device_are_read_by_each_refit(log):
    engine, memory = scaling_engine(log), np.array([5, 7], np.float32)
    refitter = trt.Refitter(engine, log)
    on_device = trt.Weights(trt.float32, memory.ctypes.data, memory.size)
    x = {"x": np.ones(2, np.float32)}

    assert refitter.set_named_weights("scale", on_device, trt.TensorLocation.DEVICE)
    assert refitter.get_weights_location("scale") is trt.TensorLocation.DEVICE
    for numbers in ([5, 7], [1, 4]):
        memory[:] = numbers
        assert refitter.refit_cuda_engine()
        np.testing.assert_array_equal(engine(x)["y"], numbers)
    memory[:] = 0
    np.testing.assert_array_equal(engine(x)["y"], [1, 4])
    assert refitter.unset_named_weights("scale")
    assert refitter.get_weights_location("scale") is trt.TensorLocation.HOST
    assert refitter.refit_cuda_engine()
    np.testing.assert_array_equal(engine(x)["y"], [1, 4])


@pytest.mark.parametrize(
    ("name", "weights", "said"),
    [
        ("scales", np.ones(2, np.float32), "no weights 'scales'"),
        ("scale", np.ones(3, np.float32), "2 of float32, and were given 3 of float32"),
        ("scale", np.ones(2, np.float64), "given 2 of float64"),
    ],
)
def test_weights_that_do_not_fit_are_refused(log, name, weights, said):
    assert not trt.Refitter(scaling_engine(log), log).set_named_weights(name, weights)
    assert said in log.errors()[-1]


def test_refitted_engine_serializes_its_new_weights(log):
    engine = scaling_engine(log)
    refitter = trt.Refitter(engine, log)
    refitter.set_named_weights("scale", np.array([5, 7], np.float32))
    refitter.refit_cuda_engine()
    loaded = trt.Runtime(log).deserialize_cuda_engine(engine.serialize())

    np.testing.assert_array_equal(loaded({"x": np.ones(2, np.float32)})["y"], [5, 7])


def test_wrong_names_bring_the_nearest_ones():
    log = Log()
    network = trt.INetworkDefinition()
    weights = network.add_constant((2,), np.ones(2, np.float32))
    weights.name = "scales"
    x = network.add_input("tokens", trt.float32, (2,))
    product = network.add_elementwise(x, weights.get_output(0), trt.ElementWiseOperation.PROD).get_output(0)
    product.name = "scaled"
    network.mark_output(product)
    engine = trt.Builder(log).build_engine_with_config(network, trt.Builder(log).create_builder_config())
    context, refitter = engine.create_execution_context(), trt.Refitter(engine, log)

    assert not context.set_input_shape("token", (2,))
    assert not context.set_tensor_address("scale", 0)
    assert not refitter.set_named_weights("scale", np.ones(2, np.float32))
    assert refitter.get_weights_prototype("scale").size == 0
    assert [error.rpartition("; ")[2] for error in log.errors()] == [
        "did you mean 'tokens'?",
        "did you mean 'scaled'?",
        "did you mean 'scales'?",
        "did you mean 'scales'?",
    ]


SIZE = 300  # float32 numbers, more than 1 KiB


A, B = np.full(SIZE, 2, np.float32), np.full(SIZE, 3, np.float32)


X = np.ones(SIZE, np.float32)


def scaled(a=A, b=B):
    """y = x a + b, with the constants a and b named ``first`` and ``second``."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (SIZE,))
    first, second = (network.add_constant((SIZE,), array) for array in (a, b))
    first.name, second.name = "first", "second"
    y = network.add_elementwise(x, first.get_output(0), trt.ElementWiseOperation.PROD).get_output(0)
    y = network.add_elementwise(y, second.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def built(network, *flags):
    builder = trt.Builder(Log())
    config = builder.create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    return builder.build_engine_with_config(network, config)


def result(engine):
    return float(np.asarray(engine({"x": X})["y"])[0])


def test_weights_are_refitted_by_the_name_that_they_were_given():
    network = scaled()
    assert network.set_weights_name(A, "scale")
    engine = built(network)
    refitter = trt.Refitter(engine, Log())

    assert refitter.get_all_weights() == ["scale", "second"]
    assert refitter.set_named_weights("scale", 5 * X)
    assert refitter.refit_cuda_engine()
    assert result(engine) == 8


def test_name_goes_to_all_constants_of_an_array():
    network = scaled(A, A)
    assert network.set_weights_name(A, "both")
    engine = built(network)
    refitter = trt.Refitter(engine, Log())

    assert refitter.get_all() == (["first", "second"], [trt.WeightsRole.CONSTANT] * 2)
    assert refitter.set_weights("second", trt.WeightsRole.CONSTANT, 5 * X)
    assert refitter.refit_cuda_engine()
    assert result(engine) == 10


@pytest.mark.parametrize(
    ("weights", "name"), [(A.copy(), "scale"), (A[:100], "scale"), (A.view(np.int32), "scale"), (A, "second")]
)
def test_name_is_refused_for_other_arrays_and_if_it_is_taken(weights, name):
    network = scaled()

    assert not network.set_weights_name(weights, name)
    assert network.weights_name(network.get_layer(0)) == "first"


def test_name_can_be_taken_away():
    network = scaled()
    network.set_weights_name(trt.Weights(A), "scale")

    assert network.set_weights_name(A, None)
    assert trt.Refitter(built(network), Log()).get_all_weights() == ["first", "second"]


def test_name_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="name must be a str"):
        scaled().set_weights_name(A, 3)


def loaded(data):
    return trt.Runtime(Log()).deserialize_cuda_engine(data)


def test_individual_refit_replaces_what_is_marked_and_nothing_else():
    network = scaled()
    assert network.mark_weights_refittable("second")
    engine = loaded(built(network, trt.BuilderFlag.REFIT_INDIVIDUAL).serialize())
    refitter = trt.Refitter(engine, log := Log())

    assert engine.refittable
    assert refitter.get_all_weights() == ["second"]
    assert not refitter.set_named_weights("first", X)
    assert log.errors() == ["the engine has no weights 'first' that can be replaced"]


def test_individual_refit_without_marks_replaces_nothing():
    assert not built(scaled(), trt.BuilderFlag.REFIT_INDIVIDUAL).refittable


@pytest.mark.parametrize("flags", [(), (trt.BuilderFlag.REFIT,)])
def test_marks_change_nothing_otherwise(flags):
    network = scaled()
    network.mark_weights_refittable("second")

    assert trt.Refitter(built(network, *flags), Log()).get_all_weights() == ["first", "second"]


def test_mark_of_weights_can_be_taken_back():
    network = scaled()

    assert not network.mark_weights_refittable("third")
    assert network.mark_weights_refittable("first")
    assert network.are_weights_marked_refittable("first")
    assert network.unmark_weights_refittable("first")
    assert not network.unmark_weights_refittable("first")
    assert not network.are_weights_marked_refittable("first")


def test_host_execution_uses_new_weights():
    network = scaled()
    indices = network.add_non_zero(network.get_output(0)).get_output(0)
    indices.name = "indices"
    network.mark_output(indices)
    engine = built(network)
    before = result(engine)
    refitter = trt.Refitter(engine, Log())
    refitter.set_named_weights("first", 7 * X)
    refitter.refit_cuda_engine()

    assert (before, result(engine)) == (5, 10)


def test_refitter_reports_to_its_error_recorder():
    class Recorder(trt.IErrorRecorder):
        def report_error(self, arg0, arg1):
            reported.append((arg0, arg1))
            return False

    reported = []
    refitter = trt.Refitter(built(scaled()), Log())
    refitter.error_recorder = Recorder()

    assert not refitter.set_named_weights("frist", X)
    assert reported == [(trt.ErrorCodeTRT.INVALID_ARGUMENT, reported[0][1])]
    assert "did you mean 'first'?" in reported[0][1]
    assert len(refitter.get_weights_prototype("frist")) == 0


def without_weights(engine):
    config = engine.create_serialization_config()
    assert config.set_flag(trt.SerializationFlag.EXCLUDE_WEIGHTS)
    return engine.serialize_with_config(config)


def test_plan_without_weights_is_smaller_by_them():
    engine = built(scaled())

    assert len(engine.serialize()) - len(without_weights(engine)) > A.nbytes + B.nbytes
    assert engine.get_engine_stat() == A.nbytes + B.nbytes
    assert engine.get_engine_stat(trt.EngineStat.STRIPPED_WEIGHTS_SIZE) == 0


def test_engine_without_weights_does_not_run():
    engine = loaded(without_weights(built(scaled())))

    with pytest.raises(trt.InputError, match="NL621: the plan had no weights for 'first'") as caught:
        engine({"x": X})
    assert len(caught.value.findings) == 2


def test_engine_without_weights_runs_once_it_has_them():
    engine = loaded(without_weights(built(scaled())))
    refitter = trt.Refitter(engine, log := Log())
    assert refitter.get_missing() == (["first", "second"], [trt.WeightsRole.CONSTANT] * 2)
    refitter.set_named_weights("first", A)
    assert refitter.get_missing_weights() == ["second"]
    assert not refitter.refit_cuda_engine()
    assert "the weights 'second' are missing" in log.errors()[0]
    refitter.set_named_weights("second", B)

    assert refitter.refit_cuda_engine()
    assert result(engine) == 5
    assert result(loaded(engine.serialize())) == 5


@pytest.mark.parametrize(
    ("error", "raised"), [(KeyboardInterrupt, KeyboardInterrupt), (MemoryError, trt.ExecutionError)]
)
def test_refit_that_fails_changes_nothing(monkeypatch, error, raised):
    def fails(*_):
        raise error

    whole = built(scaled())
    for engine in (whole, loaded(without_weights(whole))):
        refitter = trt.Refitter(engine, Log())
        refitter.set_named_weights("first", 2 * A)
        refitter.set_named_weights("second", 2 * B)
        absent, plan = set(engine.absent), bytes(engine.serialize())
        with monkeypatch.context() as patch:
            patch.setattr("jax.device_put", fails)
            with pytest.raises(raised):
                refitter.refit_cuda_engine()
        assert (engine.absent, bytes(engine.serialize())) == (absent, plan)

        assert refitter.refit_cuda_engine()
        assert result(engine) == 10


def test_engine_that_waits_for_weights_writes_none():
    stripped = without_weights(built(scaled()))

    assert loaded(stripped).serialize() == stripped


def test_siterationped_plan_of_a_build_is_that_of_its_engine():
    builder = trt.Builder(Log())
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.STRIP_PLAN)

    assert builder.build_serialized_network(scaled(), config) == without_weights(built(scaled()))


def test_small_weights_stay_as_a_type_may_depend_on_them():
    network = trt.INetworkDefinition()
    x, two = network.add_input("x", trt.float32, (1,)), network.add_constant((1,), np.array([2], np.float32))
    network.mark_output(network.add_elementwise(x, two.get_output(0), trt.ElementWiseOperation.SUM).get_output(0))
    engine = built(network)

    assert without_weights(engine) == engine.serialize()


def test_weights_that_may_not_be_replaced_stay():
    network = scaled()
    network.mark_weights_refittable("first")
    engine = loaded(without_weights(built(network, trt.BuilderFlag.REFIT_INDIVIDUAL)))

    assert trt.Refitter(engine, Log()).get_missing_weights() == ["first"]


def test_plan_without_weights_is_no_network():
    with pytest.raises(trt.FileFormatError, match="NL716: the plan has no weights for 'first', 'second'"):
        plan.loads(without_weights(built(scaled())))


def test_serialization_config_keeps_flags():
    config = built(scaled()).create_serialization_config()
    flag = trt.SerializationFlag.INCLUDE_REFIT

    assert config.set_flag(flag)
    assert (config.get_flag(flag), config.flags) == (True, 4)
    assert config.clear_flag(flag)
    assert (config.get_flag(flag), config.flags) == (False, 0)


def test_plan_that_says_that_huge_weights_are_left_out_takes_no_memory():
    huge = 10**11
    document, files = forge.taken_apart(without_weights(built(scaled(A, 2 * A))))
    document["inputs"][0]["shape"] = [-1]
    for layer, array in zip(document["layers"], document["arrays"], strict=False):
        layer["attributes"]["shape"] = array["shape"] = [huge]
    engine = loaded(forge.put_together(document, files))

    assert engine.get_engine_stat() == 8 * huge
    assert trt.Refitter(engine, Log()).get_missing_weights() == ["first", "second"]


ROLES = trt.WeightsRole


def convolved(*flags):
    """y = (3 x + 1) * 2 + 5, by a convolution and a scale."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (1, 1, 2, 2))
    three, one, two, five = (np.float32([number]) for number in (3, 1, 2, 5))
    convolution = network.add_convolution_nd(x, 1, (1, 1), three, one)
    scale = network.add_scale(convolution.get_output(0), trt.ScaleMode.UNIFORM, five, two)
    convolution.name, scale.name = "conv", "scale"
    scale.get_output(0).name = "y"
    network.mark_output(scale.get_output(0))
    return built(network, *flags)


def test_kernels_and_scales_are_found_by_their_roles():
    refitter = trt.Refitter(convolved(), Log())

    assert refitter.get_all() == (
        ["conv", "conv", "scale", "scale"],
        [ROLES.KERNEL, ROLES.BIAS, ROLES.SHIFT, ROLES.SCALE],
    )
    assert refitter.get_missing() == ([], [])


IMAGE = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)


@pytest.mark.parametrize(
    ("layer", "role", "wanted"),
    [
        ("conv", ROLES.KERNEL, (10 * IMAGE + 1) * 2 + 5),
        ("conv", ROLES.BIAS, (3 * IMAGE + 10) * 2 + 5),
        ("scale", ROLES.SHIFT, (3 * IMAGE + 1) * 2 + 10),
        ("scale", ROLES.SCALE, (3 * IMAGE + 1) * 10 + 5),
    ],
)
def test_weights_that_are_no_constants_are_replaced_by_role(layer, role, wanted):
    engine = convolved()
    engine({"x": IMAGE})
    refitter = trt.Refitter(engine, Log())

    assert refitter.set_weights(layer, role, np.float32([10]))
    np.testing.assert_array_equal(engine({"x": IMAGE})["y"], (3 * IMAGE + 1) * 2 + 5)
    assert refitter.refit_cuda_engine()
    np.testing.assert_array_equal(engine({"x": IMAGE})["y"], wanted)


def test_plan_has_the_kernel_that_was_replaced():
    engine = convolved()
    refitter = trt.Refitter(engine, Log())
    refitter.set_weights("conv", ROLES.KERNEL, np.float32([10]))
    refitter.refit_cuda_engine()

    np.testing.assert_array_equal(loaded(engine.serialize())({"x": IMAGE})["y"], (10 * IMAGE + 1) * 2 + 5)


@pytest.mark.parametrize(
    ("layer", "role", "weights", "message"),
    [
        ("conv", ROLES.KERNEL, np.ones(2, np.float32), "the weights of 'conv' are 1 of float32, and were given 2 of f"),
        ("conv", ROLES.BIAS, np.ones(1), "the weights of 'conv' are 1 of float32, and were given 1 of float64"),
        ("conv", ROLES.SCALE, np.float32([1]), "the weights of 'conv' have the role KERNEL or BIAS, not SCALE"),
        ("conf", ROLES.KERNEL, np.float32([1]), "the engine has no weights 'conf' that can be replaced"),
    ],
)
def test_weights_that_do_not_fit_a_role_are_refused(layer, role, weights, message):
    refitter = trt.Refitter(convolved(), log := Log())

    assert not refitter.set_weights(layer, role, weights)
    assert message in log.errors()[0]


def test_individual_refit_replaces_nothing_without_a_name():
    assert trt.Refitter(convolved(trt.BuilderFlag.REFIT_INDIVIDUAL), Log()).get_all() == ([], [])


def test_call_that_begins_during_a_refit_has_no_mixture_of_weights(monkeypatch):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (1, 1, 1, -1))
    network.add_convolution_nd(x, 1, (1, 1), np.float32([2]), np.float32([2])).name = "conv"
    network[0].get_output(0).name = "y"
    network.mark_output(network[0].get_output(0))
    engine, got = trt.compile(network), []
    given = {"x": np.ones((1, 1, 1, 3), np.float32)}
    caller = threading.Thread(target=lambda: got.append(engine(given)["y"]), daemon=True)

    def replace_one_and_call(layer, name, array):
        setattr(layer, name, array)
        if caller.ident is None:
            caller.start()
            caller.join(1)

    monkeypatch.setattr(refitter_module, "setattr", replace_one_and_call, raising=False)
    refitter = trt.Refitter(engine, Log())
    for role in (ROLES.KERNEL, ROLES.BIAS):
        assert refitter.set_weights("conv", role, np.float32([3]))

    assert refitter.refit_cuda_engine()
    caller.join(100)
    assert np.unique(got) in ([4], [6])
