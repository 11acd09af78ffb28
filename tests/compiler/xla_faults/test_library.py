"""Programs in which XLA's CPU computes wrong numbers are found by their text, and compiled anew."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from netloop.compiler import xla_compilation
from netloop.compiler.lower import program as lowered_programs
from netloop.compiler.xla_compilation import XlaFunction
from netloop.compiler.xla_faults import options_without_faults
from netloop.compiler.xla_faults.library import LOSES_NARROW_PRODUCTS, has_library_fault
from netloop.serve import Sequences
from tests.support import networks, uniform_products
from tests.support.devices import only_on_cpus
from tests.support.examples import mostly_slow
from tests.support.uniform_products import F32, MAKERS

pytestmark = only_on_cpus("they are faults of XLA's CPU")

X = np.random.default_rng(0).standard_normal((256, 64)).astype(F32)
W = np.random.default_rng(1).standard_normal((64, 64)).astype(F32)
KERNEL = np.random.default_rng(2).standard_normal((8, 4, 3, 3)).astype(F32)

FUSION = """%fused (first: f32[256,64], second: f32[{shape}]) -> f32[64] {{
  %first = f32[256,64]{{1,0}} parameter(0)
{right}
  %product = f32[256,64]{{1,0}} dot(%first, %right), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracted}}}
  %zero = f32[] constant(0)
  ROOT %sums = f32[64]{{0}} reduce(%product, %zero), dimensions={{0}}, to_apply=%add
}}

ENTRY %main (x: f32[256,64]) -> f32[64] {{
  %limit = f32[] constant({limit})
  ROOT %fusion = f32[64]{{0}} fusion(%x, %limit), kind=kCustom, calls=%fused, backend_config={{"kind":"{kind}"}}
}}
"""
NUMBER = "  %c = f32[] constant(0.01)\n"
ELEMENT = "  %c = f32[1,1]{1,0} parameter(1)\n  %s = f32[] reshape(%c)\n"


def fusion(right, contracted=0, kind="__ynn_fusion", shape="1,1", limit="0"):
    return FUSION.format(right=right, contracted=contracted, kind=kind, shape=shape, limit=limit)


@pytest.mark.parametrize(
    "text",
    [
        fusion(NUMBER + "  %right = f32[64,64]{1,0} broadcast(%c), dimensions={}"),
        fusion(NUMBER + "  %right = f32[64,64]{1,0} broadcast(%c), dimensions={}", contracted=1),
        fusion(ELEMENT + "  %right = f32[64,64]{1,0} broadcast(%s), dimensions={}"),
        fusion(ELEMENT + "  %b = f32[64,64]{1,0} broadcast(%s), dimensions={}\n  %right = f32[64,64]{1,0} exp(%b)"),
        fusion(NUMBER + "  %b = f32[8,64] broadcast(%c), dimensions={}\n  %right = f32[64,8]{1,0} transpose(%b)"),
    ],
    ids=["constant", "transposed operand", "element of a parameter", "computed", "transposed fill"],
)
def test_a_product_by_one_number_that_is_reduced_is_a_fault(text: str):
    assert has_library_fault(text)
    assert not has_library_fault(text.replace("__ynn_fusion", "kLoop"))
    assert not has_library_fault(text.replace(" reduce(", " negate("))


@pytest.mark.parametrize(
    "right",
    [
        "  %right = f32[64,64]{1,0} parameter(1)",
        "  %right = f32[64,64]{1,0} iota(), iota_dimension=0",
        "  %v = f32[64]{0} parameter(1)\n  %right = f32[64,64]{1,0} broadcast(%v), dimensions={1}",
        "  %right = f32[64,64]{1,0} constant({...})",
    ],
)
def test_other_products_are_none(right: str):
    assert not has_library_fault(fusion(right, shape="64,64"))


BATCHES = """%fused (first: f32[8,256,64], second: f32[{shape}]) -> f32[8,32] {{
  %first = f32[8,256,64]{{2,1,0}} parameter(0)
  %second = f32[{shape}] parameter(1)
  %moved = f32[{moved}] bitcast(%second)
  %right = f32[8,64,32]{{2,1,0}} broadcast(%moved), dimensions={{{axes}}}
  %product = f32[8,256,32]{{2,1,0}} dot(%first, %right), rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}
  %zero = f32[] constant(0)
  ROOT %sums = f32[8,32]{{1,0}} reduce(%product, %zero), dimensions={{1}}, to_apply=%add
}}

ENTRY %main (x: f32[8,256,64], y: f32[{shape}]) -> f32[8,32] {{
  ROOT %fusion = f32[8,32]{{1,0}} fusion(%x, %y), kind=kCustom, calls=%fused, backend_config={{"kind":"__ynn_fusion"}}
}}
"""


@pytest.mark.parametrize(
    ("shape", "moved", "axes", "is_fault"),
    [("8,1,1", "8", "0", True), ("8,64,1", "8,64", "0,1", False), ("1,1,32", "32", "2", False)],
    ids=["a number for each batch", "rows", "columns"],
)
def test_a_product_by_one_number_in_each_batch_is_a_fault(shape: str, moved: str, axes: str, is_fault: bool):
    assert has_library_fault(BATCHES.format(shape=shape, moved=moved, axes=axes)) == is_fault


def test_products_of_three_numbers_are_a_fault_of_old_versions():
    assert has_library_fault(fusion("  %right = f32[40000,3]{1,0} parameter(1)", contracted=1)) == LOSES_NARROW_PRODUCTS
    assert not has_library_fault(fusion("  %right = f32[3,40000]{1,0} parameter(1)", contracted=0))
    assert not has_library_fault(fusion("  %right = f32[40000,64]{1,0} parameter(1)", contracted=1))


@pytest.mark.parametrize(
    ("operands", "is_fault"),
    [("%first, %second", True), ("%first, %b", True), ("%b, %first", False), ("%n, %first", True)],
)
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_an_extreme_loses_the_nan_of_a_first_operand_that_is_no_number(op: str, operands: str, is_fault: bool):
    extreme = (
        f"{NUMBER}  %b = f32[256,64]{{1,0}} broadcast(%c), dimensions={{}}\n"
        "  %nan = f32[] constant(nan)\n  %n = f32[256,64]{1,0} broadcast(%nan), dimensions={}\n"
        "  %second = f32[256,64]{1,0} negate(%first)\n"
        f"  %right = f32[256,64]{{1,0}} {op}({operands})"
    )
    assert has_library_fault(fusion(extreme)) == is_fault
    assert not has_library_fault(fusion(extreme).replace("f32", "s32"))


def test_a_minimum_of_a_maximum_loses_nan():
    """The library makes one clamp of both."""
    limits = f"{NUMBER}  %b = f32[256,64]{{1,0}} broadcast(%c), dimensions={{}}\n"
    extremes = "  %inner = f32[256,64]{{1,0}} {}(%b, %first)\n  %right = f32[256,64]{{1,0}} {}(%b, %inner)"
    assert has_library_fault(fusion(limits + extremes.format("maximum", "minimum")))
    assert not has_library_fault(fusion(limits + extremes.format("minimum", "maximum")))


@pytest.mark.parametrize(("dtype", "is_fault"), [("s8", True), ("u8", True), ("s16", False), ("f32", False)])
def test_arithmetic_of_8_bits_does_not_wrap(dtype: str, is_fault: bool):
    right = f"  %right = {dtype}[256,64]{{1,0}} multiply(%first, %first)"
    assert has_library_fault(fusion(right)) == is_fault


@pytest.mark.parametrize(("limit", "is_fault"), [("0", False), ("nan", True)])
def test_a_number_may_be_a_constant_outside_of_the_fusion(limit: str, is_fault: bool):
    text = fusion("  %c = f32[] parameter(1)\n  %b = f32[256,64]{1,0} broadcast(%c), dimensions={}\n"
                  "  %right = f32[256,64]{1,0} maximum(%b, %first)", limit=limit)  # fmt: skip
    assert has_library_fault(text) == is_fault


# ---------------------------------------------------------------------------- programs of XLA


ORDINARY = {
    "dense": lambda x: x @ W + 1,
    "sum of a product": lambda x: (x @ W).sum(0),
    "activation": lambda x: jnp.tanh(x @ W).mean(0),
    "attention": lambda x: jax.nn.softmax(x @ x.T) @ x,
    "scan": lambda x: lax.scan(lambda h, row: (jnp.tanh(row + h @ W), h), jnp.zeros(64), x)[0],
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_programs_have_no_fault(name: str):
    assert options_without_faults(jax.jit(ORDINARY[name]).lower(X).compile().as_text()) == {}


def relu_network():
    """A dense layer, an activation and a mean; a convolution, an activation and poolings."""
    network = trt.INetworkDefinition()
    x, image = network.add_input("x", trt.float32, X.shape), network.add_input("image", trt.float32, (1, 4, 64, 64))
    none = trt.MatrixOperation.NONE
    dense = network.add_matrix_multiply(x, none, networks.constant(network, W), none).get_output(0)
    relu = network.add_activation(dense, trt.ActivationType.RELU).get_output(0)
    mean = network.add_reduce(relu, trt.ReduceOperation.AVG, 1, False).get_output(0)
    maps = network.add_convolution_nd(image, 8, (3, 3), KERNEL).get_output(0)
    clipped = network.add_activation(maps, trt.ActivationType.CLIP)
    clipped.alpha, clipped.beta = 0, 6
    pooled = network.add_pooling_nd(clipped.get_output(0), trt.PoolingType.MAX, (2, 2))
    pooled.stride_nd = 2, 2
    means = network.add_reduce(pooled.get_output(0), trt.ReduceOperation.AVG, 12, False).get_output(0)
    return networks.mark(network, mean=mean, means=means)


@pytest.mark.parametrize("make", [relu_network, networks.lstm])
def test_ordinary_engines_are_compiled_once(make, monkeypatch: pytest.MonkeyPatch):
    faults = recorded_faults(monkeypatch)
    network = make()
    trt.compile(network)(zeros(network))
    assert faults == [False] * len(faults)
    assert faults


@pytest.mark.parametrize("name", mostly_slow(3, MAKERS))
def test_the_forms_of_products_by_one_number_have_no_fault(name: str, monkeypatch: pytest.MonkeyPatch):
    faults = recorded_faults(monkeypatch)
    network = uniform_products.matrix_network(MAKERS[name])
    trt.compile(network)(zeros(network))
    assert not any(faults)


def recorded_faults(monkeypatch):
    """Whether each program that is compiled from now on has a fault."""
    faults: list[bool] = []

    def recorded(text):
        options = options_without_faults(text)
        faults.append(bool(options))
        return options

    monkeypatch.setattr(xla_compilation, "options_without_faults", recorded)
    return faults


def zeros(network):
    return {t.name: np.zeros([8 if d < 0 else d for d in t.shape], t.type.dtype) for t in network.inputs}


# ---------------------------------------------------------------------------- without the forms that avoid them


def engine(network, feeds):
    return trt.compile(network)(feeds)


def engine_without_passes(network, feeds):
    return trt.compile(network, passes=())(feeds)


def host_engine(network, feeds):
    """The product is in a piece, as the places of the numbers are known only in a run."""
    networks.mark(network, places=network.add_non_zero(network.inputs[0]).get_output(0))
    return trt.compile(network)(feeds)


def sharded(network, feeds):
    return trt.shard(network, jax.make_mesh((1,), ("rows",), devices=jax.devices()[:1]))(feeds)


def debugged(network, feeds):
    """The values of the engine's own tensors, as a comparison with the reference reads them."""
    assert trt.compare(network, feeds, rtol=1e-3, atol=1e-3).difference is None
    return trt.evaluate(network, feeds)


WAYS = [engine, engine_without_passes, host_engine, sharded, debugged]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_engine_compiles_programs_with_a_fault_anew(way, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lowered_programs, "varied", lambda x: x)
    for make in (uniform_products.of_constant, uniform_products.of_input):
        network = uniform_products.matrix_network(make, followers=["sum of rows"])
        feeds = uniform_products.feeds_of(network)
        assert_close(way(network, feeds), trt.evaluate(network, feeds))


def test_slots_compile_programs_with_a_fault_anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lowered_programs, "varied", lambda x: x)
    network = uniform_products.loop_network(uniform_products.of_input)
    feeds = uniform_products.feeds_of(network)
    made = trt.SlotEngine(network, slots=2).submit(feeds).result()
    assert_close(made, trt.evaluate(network, feeds))


def test_sequences_compile_programs_with_a_fault_anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lowered_programs, "varied", lambda x: x)
    network = trt.INetworkDefinition()
    h, x = network.add_input("h", trt.float32, (64,)), network.add_input("x", trt.float32, (256, 64))
    operand, none = uniform_products.of_constant(network, (64, 64)), trt.MatrixOperation.NONE
    product = network.add_matrix_multiply(x, none, operand, none).get_output(0)
    sums = network.add_reduce(product, trt.ReduceOperation.SUM, 1, False).get_output(0)
    networks.mark(network, hn=networks.combine(network, h, sums), y=sums)
    with Sequences(network, {"h": "hn"}) as sequences:
        made = sequences.submit(1, {"x": X}, start=True, end=True).result(60)["y"]
    np.testing.assert_allclose(made, (X.astype(np.float64) @ np.full((64, 64), 0.01)).sum(0), rtol=1e-3, atol=1e-3)


def test_functions_whose_types_stay_the_same_compile_programs_with_a_fault_anew():
    function = XlaFunction(lambda x: (x @ jnp.full((64, 64), 0.01, F32)).sum(0))
    for _ in range(2):
        wanted = (X.astype(np.float64) @ np.full((64, 64), 0.01)).sum(0)
        np.testing.assert_allclose(function(X), wanted, rtol=1e-3, atol=1e-3)


def test_products_of_three_numbers_are_right_at_40000_columns():
    network = trt.INetworkDefinition()
    points = network.add_input("points", trt.float32, (40_000, 3))
    turn = np.random.default_rng(0).standard_normal((3, 3)).astype(F32)
    plain, transposed = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
    turned = network.add_matrix_multiply(networks.constant(network, turn), plain, points, transposed).get_output(0)
    squares = networks.combine(network, turned, turned, trt.ElementWiseOperation.PROD)
    norms = network.add_reduce(squares, trt.ReduceOperation.SUM, 1, False).get_output(0)
    networks.mark(network, norms=norms)
    feeds = uniform_products.feeds_of(network)
    wanted = ((feeds["points"].astype(np.float64) @ turn.T.astype(np.float64)) ** 2).sum(1)
    np.testing.assert_allclose(trt.compile(network)(feeds)["norms"], wanted, rtol=1e-4)


def assert_close(made, wanted):
    assert list(made) == list(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(made[name], value, rtol=1e-3, atol=1e-3, err_msg=name)
