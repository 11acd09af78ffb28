"""Plugins that are JAX functions, compared with numpy and torch."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.plugin import IPluginV3Layer
from netloop.model.plugins.jax_plugin import JaxPlugin, JaxPluginCreator, jax_plugin
from netloop.values import diagnostics
from netloop.values.types import TensorType
from tests.support.laws import Case, check_laws, refuses
from tests.support.networks import LAST, WHILE, Op, combine, constant, counted, counter, last, mark
from tests.support.peers import needs_torch, torch
from tests.support.plugin_examples import circular_pad

F32 = np.dtype(np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)
PADS = ((1, 2), (3, 1))


def plugin(function, *shape_inputs, **named):
    return IPluginV3Layer(plugin=JaxPlugin(function, **named), num_shape_inputs=len(shape_inputs))


def padded():
    return torch.nn.functional.pad(torch.tensor(X)[None, None], (3, 1, 1, 2), mode="circular")[0, 0].numpy()


CASES = [
    Case("circular padding, by numpy", IPluginV3Layer(plugin=circular_pad(pads=PADS)), (X,), np.pad(X, PADS, "wrap")),
    Case("the second of two inputs is stretched", plugin(lambda a, b: a / b), (X, X[:1] + 1), X / (X[:1] + 1)),
    Case("two outputs", plugin(lambda x: (x.sum(0), x > 2), num_outputs=2), (X,), (X.sum(0), X > 2)),
    Case("a list of outputs", plugin(lambda x: [x, x.T], num_outputs=2), (X,), (X, X.T)),
    Case("no input", plugin(lambda: jnp.arange(3, dtype=jnp.int32)), (), np.int32([0, 1, 2])),
    Case("a number", plugin(lambda x: 7), (X,), np.int64(7)),
    Case("64 bits", plugin(lambda x: x * 2**40), (np.int64([3]),), np.int64([3 << 40])),
    Case("halves", plugin(lambda x: x + 1), (X.astype(jnp.bfloat16),), (X + 1).astype(jnp.bfloat16)),
    Case("empty", plugin(lambda x: x.sum(1)), (X[:0],), X[:0, 0]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_plugin_obeys_the_laws(case):
    check_laws(case)


@needs_torch
def test_circular_padding_is_that_of_torch():
    layer = IPluginV3Layer(plugin=circular_pad(pads=PADS))

    np.testing.assert_array_equal(layer.evaluate(X)[0], padded())


# ---------------------------------------------------------------------------- types


def types(function, *inputs, **named):
    return plugin(function, **named).infer(*(TensorType(F32, tensor) for tensor in inputs))


def test_known_lengths_stay_known_beside_unknown_ones():
    (found,) = types(lambda x: jnp.concatenate([x, x], 1).T, (-1, 3))

    assert found == TensorType(F32, (6, -1))


def test_unknown_lengths_may_have_to_be_equal():
    (found,) = types(lambda a, b: a + b, (-1, 3), (-1, 3))

    assert found == TensorType(F32, (-1, -1))


def test_length_that_follows_from_an_unknown_one_is_unknown():
    (found,) = types(lambda x: x[: min(x.shape[0], 4)], (-1,))

    assert found == TensorType(F32, (-1,))


def test_promised_types_are_taken_while_lengths_are_unknown():
    (found,) = types(lambda x: x[1:], (-1, 3), output_types=lambda x: x.with_shape((-1, 3)))

    assert found == TensorType(F32, (-1, 3))


def test_promise_is_filled_in_when_lengths_are_known():
    (found,) = types(lambda x: x[1:], (4, 3), output_types=lambda x: x.with_shape((-1, 3)))

    assert found == TensorType(F32, (3, 3))


def test_function_is_traced_once_for_the_same_types():
    traces = []
    layer = plugin(lambda x: traces.append(x) or x)

    for _ in range(3):
        layer.infer(TensorType(F32, (2,)))

    assert len(traces) == 1


def test_shape_input_decides_a_shape():
    network = trt.INetworkDefinition()
    n = network.add_input("n", trt.int32, (2,))
    made = network.add_plugin_v3([], [n], JaxPlugin(lambda n: jnp.ones(tuple(n.tolist()), jnp.float32))).get_output(0)
    mark(network, y=made)

    assert made.shape == (-1, -1)
    assert n.is_shape_tensor
    for run in (trt.compile(network), functools.partial(trt.evaluate, network)):
        np.testing.assert_array_equal(run({"n": np.int32([2, 3])})["y"], np.ones((2, 3)))


REFUSED = {
    "two outputs for one": (lambda x: (x, x), {}, "returned 2 outputs, and num_outputs is 1"),
    "one output for two": (lambda x: x, {"num_outputs": 2}, "returned 1 outputs, and num_outputs is 2"),
    "no array": (lambda x: {"x": x}, {}, "returned dict, not an array"),
    "nothing": (lambda x: None, {}, "returned NoneType, not an array"),
    "complex numbers": (lambda x: x * 1j, {}, "returned complex64 elements"),
    "another rank than promised": (lambda x: x[0], {"output_types": lambda x: x}, "is float32[3], and output_types"),
    "another type than promised": (lambda x: x > 0, {"output_types": lambda x: x}, "is bool[2,3], and output_types"),
    "no types promised": (lambda x: x, {"output_types": lambda x: None}, "must return 1 TensorType"),
    "a promise that fails": (lambda x: x, {"output_types": lambda x: 1 // 0}, "output_types of <lambda> raised Zero"),
    "an exception": (lambda x: x.reshape(5), {}, "raised TypeError: cannot reshape array of shape (2, 3)"),
    "a decision by value": (lambda x: x if x[0, 0] else -x, {}, "raised TracerBoolConversionError"),
    "too few parameters": (lambda: jnp.zeros(1), {}, "takes 0 positional arguments but 1 was given"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_function_that_breaks_the_protocol_is_refused(name):
    function, named, match = REFUSED[name]

    refuses(plugin(function, **named), X, match=match)


def test_function_that_takes_no_probe_is_told_to_declare_types():
    def only_15(x):
        if x.shape[0] != 15:
            raise ValueError("15 elements")
        return x

    with pytest.raises(diagnostics.LayerError, match="only_15 raised ValueError: 15 elements") as caught:
        types(only_15, (-1,))

    assert caught.value.fix == "pass output_types, since the function accepts only certain lengths"


def test_exception_of_the_function_is_the_cause():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    layer = network.add_plugin_v3([x], [], JaxPlugin(lambda x: {}[3]))
    layer.name = "mine"
    mark(network, y=layer.get_output(0))

    with pytest.raises(trt.NetworkError) as caught:
        trt.compile(network)

    (found,) = caught.value.findings
    assert found.code == "NL411"
    assert found.at is layer
    assert f"{__file__}:{layer.source_location.line}, IPluginV3Layer 'mine'" in found.where
    assert isinstance(caught.value.__cause__, KeyError)


def test_impure_function_that_fails_in_the_program_is_told():
    calls = []

    def failing(x):
        calls.append(x)
        if len(calls) > 1:
            raise RuntimeError("once only")
        return x

    network = trt.INetworkDefinition()
    mark(
        network,
        y=network.add_plugin_v3([network.add_input("x", trt.float32, (2,))], [], JaxPlugin(failing)).get_output(0),
    )

    with pytest.raises(trt.NetworkError, match="once only") as caught:
        trt.to_jax(network)[0]({}, {"x": X[0, :2]})

    assert isinstance(caught.value.__cause__, RuntimeError)


# ---------------------------------------------------------------------------- in networks


@needs_torch
def test_plugin_in_a_loop_is_part_of_the_program():
    network = trt.INetworkDefinition()
    loop = counted(network, 5)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (3,)))
    state.set_input(1, network.add_plugin_v3([state.get_output(0)], [], JaxPlugin(jnp.sin)).get_output(0))
    mark(network, y=last(loop, state.get_output(0)))
    x = np.float32([0.1, 1.0, 2.0])

    engine = trt.compile(network)

    wanted = functools.reduce(lambda y, _: torch.sin(y), range(5), torch.tensor(x)).numpy()
    np.testing.assert_allclose(engine({"x": x})["y"], wanted, rtol=1e-5)
    np.testing.assert_allclose(trt.evaluate(network, {"x": x})["y"], wanted, rtol=1e-5)


def test_plugin_decides_a_while():
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    number = counter(network, loop)
    square = network.add_plugin_v3(
        [number, network.add_input("most", trt.int32, ())], [], JaxPlugin(lambda n, m: n * n < m)
    )
    loop.add_trip_limit(square.get_output(0), WHILE)
    mark(network, y=loop.add_loop_output(number, LAST).get_output(0))

    for run in (trt.compile(network), functools.partial(trt.evaluate, network)):
        assert run({"most": np.int32(50)})["y"] == 8


@needs_torch
def test_plugin_in_a_branch():
    network = trt.INetworkDefinition()
    x, c = network.add_input("x", trt.float32, (3,)), network.add_input("c", trt.bool, ())
    branch = network.add_if_conditional()
    branch.set_condition(c)
    logs = network.add_plugin_v3([branch.add_input(x).get_output(0)], [], JaxPlugin(jnp.log1p)).get_output(0)
    mark(network, y=branch.add_output(logs, x).get_output(0))
    engine, row = trt.compile(network), np.float32([0, 1, 2])

    np.testing.assert_allclose(engine({"x": row, "c": np.bool_(True)})["y"], torch.log1p(torch.tensor(row)), rtol=1e-6)
    np.testing.assert_array_equal(engine({"x": row, "c": np.bool_(False)})["y"], row)


def test_plugin_of_a_shape_that_only_the_run_tells():
    network = trt.INetworkDefinition()
    places = network.add_non_zero(network.add_input("x", trt.float32, (2, 3)), trt.int32).get_output(0)
    mark(network, y=network.add_plugin_v3([places], [], JaxPlugin(lambda p: p.max(1))).get_output(0))

    for run in (trt.compile(network), functools.partial(trt.evaluate, network)):
        assert run({"x": X})["y"].tolist() == [1, 2]


@pytest.fixture
def cubed():
    """y: the sum of x cubed, twice over in a loop."""
    network = trt.INetworkDefinition()
    loop = counted(network, 2)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (3,)))
    state.set_input(1, network.add_plugin_v3([state.get_output(0)], [], JaxPlugin(lambda x: x**3)).get_output(0))
    total = network.add_reduce(last(loop, state.get_output(0)), trt.ReduceOperation.SUM, 1, False).get_output(0)
    return trt.to_jax(mark(network, y=total))


@needs_torch
def test_gradient_through_a_plugin_is_that_of_torch(cubed):
    function, weights = cubed
    x = np.float32([0.5, -1.5, 1.25])

    found = jax.grad(lambda x: function(weights, {"x": x})["y"])(x)

    there = torch.tensor(x, requires_grad=True)
    ((there**3) ** 3).sum().backward()
    np.testing.assert_allclose(found, there.grad, rtol=1e-5)


def test_plugin_is_mapped_over_a_batch(cubed):
    function, weights = cubed
    x = np.float32([[1, 2, 0], [0, 1, 1]])

    found = jax.vmap(lambda x: function(weights, {"x": x})["y"])(x)

    np.testing.assert_allclose(found, [513, 2])


def test_input_known_while_building_is_an_array_for_the_function_all_the_same():
    network = trt.INetworkDefinition()
    number = constant(network, np.int32([3, 4]))
    made = network.add_plugin_v3([number], [], JaxPlugin(lambda n: n.at[0].set(9)))
    mark(network, y=combine(network, made.get_output(0), number, Op.SUM))

    assert made.get_output(0).type.value is None
    assert trt.compile(network)({})["y"].tolist() == [12, 8]


# ---------------------------------------------------------------------------- what fails later


def compiled(function):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2, 3))
    return trt.compile(mark(network, y=network.add_plugin_v3([x], [], JaxPlugin(function)).get_output(0)))


def test_what_the_compiler_cannot_do_is_told_as_a_failure():
    def unknown(x):
        return jax.ffi.ffi_call("tests.nobody_wrote_this", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    with pytest.raises(trt.ExecutionError, match=r"NL608: the device gave up: (?s:.*)nobody_wrote_this"):
        compiled(unknown)


def test_what_the_device_cannot_do_is_told_as_a_failure():
    def falls(x):
        return jax.pure_callback(lambda _: 1 / 0, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(trt.ExecutionError, match=r"NL608: the device gave up: (?s:.*)ZeroDivisionError"):
        compiled(falls)({"x": X})


# ---------------------------------------------------------------------------- making and registering


BAD = {
    "no function": (lambda: JaxPlugin(3), "function must be a function, not 3"),
    "no outputs": (lambda: JaxPlugin(jnp.sin, num_outputs=0), "num_outputs must be an int of 1 or more, not 0"),
    "outputs of a word": (lambda: JaxPlugin(jnp.sin, num_outputs="1"), "num_outputs must be an int of 1 or more"),
    "no promise": (lambda: JaxPlugin(jnp.sin, output_types=3), "output_types must be a function, not 3"),
    "unknown attribute": (lambda: circular_pad(pad=3), "circular_pad does not take the attribute 'pad'"),
    "array": (lambda: circular_pad(pads=np.zeros(2)), "pass arrays as inputs, made with add_constant"),
    "object within": (lambda: circular_pad(pads=[[object()]]), "the attribute 'pads' is object"),
    "no name": (lambda: jax_plugin(3)(jnp.sin), "name of JaxPluginCreator must be a str, not 3"),
    "decorator without a name": (lambda: jax_plugin(jnp.sin)(jnp.sin), "name of JaxPluginCreator must be a str"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_argument_is_refused(name):
    call, match = BAD[name]

    with pytest.raises(TypeError, match=match):
        call()


def test_plugin_does_not_change():
    plugin = circular_pad(pads=1)

    with pytest.raises(AttributeError):
        plugin.function = jnp.sin
    with pytest.raises(TypeError):
        plugin.attributes["pads"] = 2


def test_attributes_are_kept_as_tuples():
    assert circular_pad(pads=[[1, np.int64(2)], [3, 4]]).attributes == {"pads": ((1, 2), (3, 4))}
    assert circular_pad(pads=trt.Dims((1, 2))).attributes == {"pads": (1, 2)}


def test_fields_of_a_script_are_attributes():
    creator = trt.jax_plugin("with fields", namespace="tests")(lambda x, *, a=1, b=(), c="", d=0.0: x)
    kinds = trt.PluginFieldType
    fields = [
        trt.PluginField("a", np.int32([3]), kinds.INT32),
        trt.PluginField("b", np.int64([4, 5]), kinds.INT64),
        trt.PluginField("c", "text", kinds.CHAR),
        trt.PluginField("d", np.float32([0.5]), kinds.FLOAT32),
    ]

    plugin = creator.create_plugin("name", trt.PluginFieldCollection_(fields))
    assert plugin.attributes == {"a": 3, "b": (4, 5), "c": "text", "d": 0.5}
    with pytest.raises(TypeError, match="does not take the attribute 'e'"):
        creator.create_plugin("name", trt.PluginFieldCollection_([trt.PluginField("e", np.int32([3]), kinds.INT32)]))


def test_function_keeps_its_name_and_its_docstring():
    assert isinstance(circular_pad, JaxPluginCreator)
    assert circular_pad.__name__ == "circular_pad"
    assert circular_pad.__doc__ == "x with circular padding."
    np.testing.assert_array_equal(circular_pad.function(X, pads=PADS), np.pad(X, PADS, "wrap"))


def register(function):
    return jax_plugin("again", namespace="tests")(function)


def test_function_that_is_defined_anew_takes_the_place_of_the_old():
    def again(x):
        return x

    first, second = register(again), register(again)
    try:
        assert first is not second
        assert trt.get_plugin_registry().get_creator("again", "1", "tests") is second
        with pytest.raises(ValueError, match="another plugin 'again' of version '1' is registered in 'tests'"):
            register(jnp.cos)
    finally:
        trt.get_plugin_registry().deregister_creator(second)


def test_promise_is_given_the_attributes():
    made = JaxPluginCreator(
        lambda x, *, n: jnp.tile(x, n), "tile", output_types=lambda x, *, n: x.with_shape((x.shape[0] * n,))
    )

    assert IPluginV3Layer(plugin=made(n=3)).infer(TensorType(F32, (2,))) == (TensorType(F32, (6,)),)
