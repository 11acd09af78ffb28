"""The precision of float32 products: what programs ask for, and what devices make of it."""

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
import netloop.stablehlo
from netloop.compiler import xla_compilation
from netloop.compiler.product_precision import CALLERS, DeviceTraits, product_type
from netloop.compiler.tuning.candidates import Candidates, _what_counts
from netloop.model.plugins.jax_plugin import JaxKernel
from tests.model.layers.test_example_calls import added, is_plain
from tests.support.examples import mostly_slow
from tests.support.layer_specs import CALLS
from tests.support.networks import combine, constant, counted, last, mark

pytestmark = pytest.mark.usefixtures("default_precision")

F, NONE = np.float32, trt.MatrixOperation.NONE
PRODUCT = re.compile(r"stablehlo\.(?:dot_general|dot|convolution)\b.*")
WITH_PRODUCTS = {"add_attention", "add_attention_v2", "add_convolution_nd", "add_deconvolution_nd", "add_einsum",
                 "add_matrix_multiply", "add_moe"}  # fmt: skip


def asked(text):
    """The precisions that the products of a program ask for; of a product of integers, none."""
    lines = [line for line in PRODUCT.findall(text) if "xf32" in line]
    return {word for line in lines for word in re.findall(r"\b(?:DEFAULT|HIGHEST|HIGH)\b", line) or ["DEFAULT"]}


def program(function, inputs, platform):
    with jax.enable_x64(True):
        return jax.jit(function).trace(inputs).lower(lowering_platforms=(platform,)).as_text()


def marked(network, layer):
    return mark(network, **{f"y{number}": layer.get_output(number) for number in range(layer.num_outputs)})


def drawn(network):
    random = np.random.default_rng(0)
    return {tensor.name: random.random(tensor.shape).astype(tensor.type.dtype) for tensor in network.inputs}


@pytest.fixture(params=mostly_slow(2, ["gpu", "cpu", "tpu"]))
def platform(request, monkeypatch):
    """A platform, whose passes are chosen as if its devices were here."""
    monkeypatch.setattr(jax, "default_backend", lambda: request.param)
    return {"gpu": "cuda"}.get(request.param, request.param)


def test_every_layer_kind_asks_for_float32_without_tf32(platform):
    found = {}
    for method in CALLS:
        network, layer = added(method)
        layer = next((layer for layer in network.layers if layer.HAS_PRODUCTS), layer)
        if is_plain(layer) and layer.num_outputs and not layer.on_host:
            marked(network, layer)
            function, weights = trt.to_jax(network, tf32=False)
            inputs, decisive = drawn(network), {tensor.name for tensor in network.inputs if tensor.is_shape_tensor}
            fixed = {name: inputs.pop(name) for name in decisive}
            precisions = asked(program(lambda given: function(weights, {**fixed, **given}), inputs, platform))  # noqa: B023
            found |= {method: precisions} if precisions else {}

    assert found == {method: {"HIGHEST"} for method in WITH_PRODUCTS}


def differentiated(function):
    return jax.grad(lambda inputs: sum(jnp.sum(jnp.sin(output)) for output in function(inputs).values()))


@pytest.mark.parametrize(
    "change", [differentiated, lambda run: jax.hessian(lambda x: differentiated(run)(x)["x"].sum())]
)
@pytest.mark.parametrize("kind", ["product", "determinant", "plugin"])
def test_derivatives_ask_for_float32_without_tf32(network, kind, change):
    x = network.add_input("x", trt.float32, (4, 4))
    layers = {
        "product": lambda: network.add_matrix_multiply(x, NONE, x, NONE),
        "determinant": lambda: network.add_determinant(x),
        "plugin": lambda: network.add_plugin_v3([x], [], trt.JaxPlugin(lambda x: jnp.linalg.inv(x) @ x)),
    }
    marked(network, layers[kind]())
    function, weights = trt.to_jax(network, tf32=False)

    text = program(change(lambda inputs: function(weights, inputs)), {"x": np.eye(4, dtype=F)}, "cuda")

    assert asked(text) <= {"HIGHEST"}
    assert asked(text) or kind == "determinant"


def test_exported_program_is_of_the_asked_precision(network):
    x = network.add_input("x", trt.float32, (4, 4))
    marked(network, network.add_matrix_multiply(x, NONE, x, NONE))
    texts = [
        netloop.stablehlo.exported(network, platforms=["cuda", "tpu"], tf32=tf32).mlir_module()
        for tf32 in (True, False)
    ]

    assert [*map(asked, texts)] == [{"DEFAULT"}, {"HIGHEST"}]


# ---------------------------------------------------------------------------- engines


@pytest.fixture
def texts(monkeypatch):
    """The texts of the programs that are compiled."""
    result, compile_lowered = [], xla_compilation.compile_lowered
    monkeypatch.setattr(
        xla_compilation,
        "compile_lowered",
        lambda lowered, options: (result.append(lowered.as_text()), compile_lowered(lowered, options))[1],
    )
    return result


def cells(network, trips=3):
    """A product and a convolution in a loop, after a product of weights."""
    x = network.add_input("x", trt.float32, (1, 64))
    one, other = (constant(network, np.full((64, 64), value, F)) for value in (0.25, 0.5))
    weights = network.add_matrix_multiply(one, NONE, other, NONE).get_output(0)
    loop = counted(network, trips)
    state = loop.add_recurrence(x)
    product = network.add_matrix_multiply(state.get_output(0), NONE, weights, NONE).get_output(0)
    image = network.add_shuffle(product)
    image.reshape_dims = (1, 1, 8, 8)
    convolution = network.add_convolution_nd(image.get_output(0), 1, (3, 3), np.ones(9, F))
    convolution.padding_nd = (1, 1)
    row = network.add_shuffle(convolution.get_output(0))
    row.reshape_dims = (1, 64)
    tanh = network.add_activation(row.get_output(0), trt.ActivationType.TANH).get_output(0)
    state.set_input(1, tanh)
    return mark(network, y=last(loop, state.get_output(0)))


def on_the_host(network):
    """The same with a length that only a run knows, which makes it one of partitions."""
    cells(network)
    rows = network.add_non_zero(network.inputs[0]).get_output(0)
    total = network.add_cast(network.add_reduce(rows, trt.ReduceOperation.SUM, 0b11, False).get_output(0), trt.float32)
    return mark(network, total=total.get_output(0))


X = {"x": np.ones((1, 64), F)}
WAYS = {
    "one program": lambda network, tf32: trt.compile(cells(network), tf32=tf32)(X),
    "without passes": lambda network, tf32: trt.compile(cells(network), passes=(), tf32=tf32)(X),
    "partitions": lambda network, tf32: trt.compile(on_the_host(network), tf32=tf32)(X),
    "chunks": lambda network, tf32: trt.compile(cells(network, 20_000), interruptible=True, tf32=tf32)(X),
    "watched": lambda network, tf32: trt.compile(cells(network), tf32=tf32).watch(X, [], lambda *_: None),
    "compared": lambda network, tf32: trt.compare(cells(network), X, trt.compile(network, tf32=tf32)),
}


@pytest.mark.parametrize("way", WAYS)
def test_engine_asks_for_the_precision_in_all_of_its_programs(network, way, texts):
    WAYS[way](network, tf32=False)

    assert set().union(*map(asked, texts)) == {"HIGHEST"}


def test_weights_are_folded_in_float32_though_calls_are_not(network, texts):
    trt.compile(cells(network))

    assert [*map(asked, texts)] == [{"HIGHEST"}, {"DEFAULT"}]


def test_padded_partition_asks_for_the_precision(network, texts):
    x = network.add_input("x", trt.float32, (-1, 4))
    kept = network.add_non_zero(x).get_output(0)
    rows = network.add_cast(kept, trt.float32).get_output(0)
    marked(network, network.add_matrix_multiply(constant(network, np.ones((8, 2), F)), NONE, rows, NONE))
    engine = trt.compile(network, tf32=False)
    for count in (2, 3, 5):
        engine({"x": np.ones((count, 4), F)})

    assert set().union(*map(asked, texts)) == {"HIGHEST"}


def open_product(network):
    x = network.add_input("x", trt.float32, (-1, 4))
    return marked(network, network.add_matrix_multiply(x, NONE, constant(network, np.eye(4, dtype=F)), NONE))


@pytest.mark.parametrize(("setting", "asks"), [(None, "DEFAULT"), ("highest", "HIGHEST"), ("tensorfloat32", "HIGH")])
def test_precision_is_the_one_that_jax_was_set_to_when_the_engine_was_made(network, texts, setting, asks):
    with jax.default_matmul_precision(setting):
        engine = trt.compile(open_product(network))
    for other in ("bfloat16", "highest", setting):
        with jax.default_matmul_precision(other):
            engine({"x": np.ones((len(texts) + 1, 4), F)})

    assert [*map(asked, texts)] == [{asks}] * 3


def test_pure_function_has_the_precision_that_jax_is_set_to_when_it_traces(network):
    function, weights = trt.to_jax(open_product(network))
    inputs, found = {"x": np.ones((2, 4), F)}, []
    for setting in (None, "highest", None, "tensorfloat32"):
        with jax.default_matmul_precision(setting):
            found.append(asked(program(lambda inputs: function(weights, inputs), inputs, "cuda")))

    assert found == [{"DEFAULT"}, {"HIGHEST"}, {"DEFAULT"}, {"HIGH"}]


@pytest.mark.parametrize(("dtype", "value"), [(trt.int32, 257), (trt.float64, 1 + 2.0**-40)])
def test_algorithm_of_jax_is_for_float32_and_leaves_other_types(network, dtype, value):
    x = network.add_input("x", dtype, (4, 4))
    marked(network, network.add_matrix_multiply(x, NONE, x, NONE))
    with jax.default_matmul_precision("BF16_BF16_F32"):
        engine = trt.compile(network)
    x = np.full((4, 4), value, trt.nptype(dtype))

    np.testing.assert_array_equal(engine({"x": x})["y0"], 4 * x * x)


def test_reference_of_a_plugin_is_of_float32():
    seen = []
    kernel = JaxKernel(trt.JaxPlugin(lambda x: (seen.append(jax.config.jax_default_matmul_precision), x @ x)[1]))
    kernel.evaluate([np.eye(2, dtype=F)], [])

    assert seen == ["highest"]


def test_sums_become_products_on_cpus_only(network, platform):
    loop = counted(network, 3)
    x = network.add_input("x", trt.float32, (8, 16))
    state = loop.add_recurrence(network.add_input("s", trt.float32, (1, 16)))
    scaled = combine(network, x, state.get_output(0), trt.ElementWiseOperation.PROD)
    total = network.add_reduce(scaled, trt.ReduceOperation.SUM, 0b10, True).get_output(0)
    state.set_input(1, combine(network, state.get_output(0), network.add_reduce(
        total, trt.ReduceOperation.SUM, 0b01, True).get_output(0)))  # fmt: skip
    function, weights = trt.to_jax(mark(network, y=last(loop, state.get_output(0))), passes=trt.PASSES)

    assert bool(asked(program(lambda inputs: function(weights, inputs), drawn(network), platform))) == (
        platform == "cpu"
    )


# ---------------------------------------------------------------------------- devices

H100, V100, MI300, TPU, CPU = (
    DeviceTraits("gpu", "9.0"),
    DeviceTraits("gpu", "7.0"),
    DeviceTraits("gpu", "gfx942"),
    DeviceTraits("tpu"),
    DeviceTraits("cpu"),
)


@pytest.mark.parametrize(
    ("precision", "types"),
    [
        (None, ["tensorfloat32", "float32", "float32", "bfloat16", "float32"]),
        (CALLERS, ["tensorfloat32", "float32", "float32", "bfloat16", "float32"]),
        ("default", ["tensorfloat32", "float32", "float32", "bfloat16", "float32"]),
        ("bfloat16", ["tensorfloat32", "float32", "float32", "bfloat16", "float32"]),
        ("tensorfloat32", ["tensorfloat32", "float32", "float32", "float32", "float32"]),
        ("high", ["tensorfloat32", "float32", "float32", "float32", "float32"]),
        ("highest", ["float32"] * 5),
        ("float32", ["float32"] * 5),
        ("BF16_BF16_F32", ["bfloat16"] * 5),
        ("BF16_BF16_F32_X3", ["float32"] * 5),
        ("TF32_TF32_F32", ["tensorfloat32"] * 5),
    ],
)
def test_device_rounds_the_operands_to(precision, types, monkeypatch):
    monkeypatch.setattr("netloop.compiler.product_precision._set_now", lambda: None)

    assert [product_type(precision, device).name for device in (H100, V100, MI300, TPU, CPU)] == types


@pytest.mark.parametrize(
    ("capability", "has"), [("7.5", False), ("8.0", True), ("8.9", True), ("10.0", True), ("", False)]
)
def test_gpus_have_tensorfloat32_from_ampere_on(capability, has):
    assert DeviceTraits("gpu", capability).has_tf32 == has


def test_rounding_counts_for_timing_caches_where_it_happens(network, monkeypatch):
    engine, exact = trt.compile(open_product(network)), trt.compile(network, tf32=False)
    of = [Candidates(lambda recipe: None, network, compiled.recipe, "options") for compiled in (engine, exact)]

    assert [*map(_what_counts, of)] == ["options", "options"]
    monkeypatch.setattr(DeviceTraits, "of", lambda device: H100)
    assert [*map(_what_counts, of)] == [("options", "tensorfloat32"), "options"]
    assert (engine.product_precision, exact.product_precision) == ("tensorfloat32", "float32")
    reports = [
        compiled.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
        for compiled in (engine, exact)
    ]
    assert [json.loads(report)["Products"] for report in reports] == ["tensorfloat32", "float32"]


def test_tensorfloat32_has_the_epsilon_that_rounding_shows():
    """The operands, rounded to 10 bits by XLA's own rule for such types."""
    step = float(lax.reduce_precision(F(1 + 2**-10 * 0.75), exponent_bits=8, mantissa_bits=10)) - 1

    assert step == product_type(None, H100).epsilon
