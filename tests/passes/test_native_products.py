"""Weights of products in loops are packed for machine code of netloop's own, in engines and nowhere else."""

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.native import packed_product, panel_width
from netloop.passes import PASSES
from netloop.passes.native_products import PackedProductLayer
from tests.support.cells import PLAIN, TRANSPOSE, VECTOR, gru, lstm, weights
from tests.support.networks import Op, combine, constant, counted, last, mark
from tests.support.pass_checks import assert_close, count, improved, inputs_of

OTHERS = sorted(set(PASSES) - {"native_products"})


@pytest.fixture
def packs(monkeypatch):
    """Any matrix is packed."""
    pytest.importorskip("llvmlite")
    if panel_width() is None:
        pytest.skip("there is no machine code for this processor")
    monkeypatch.setattr("netloop.passes.native_products.MIN_ELEMENTS", 1)


def fed_back(op0=PLAIN, op1=PLAIN, rows=(2, 5), dtype=trt.float32) -> trt.INetworkDefinition:
    """y: a state from x, which each of three iterations multiplies by a matrix and halves."""
    network = trt.INetworkDefinition()
    loop = counted(network, 3)
    state = loop.add_recurrence(network.add_input("x", dtype, rows))
    matrix = np.random.default_rng(2).standard_normal((5, 5)).astype(trt.nptype(dtype))
    made = network.add_matrix_multiply(state.get_output(0), op0, constant(network, matrix), op1).get_output(0)
    state.set_input(1, combine(network, made, constant(network, np.full(rows, 0.5, matrix.dtype)), Op.PROD))
    return mark(network, y=last(loop, state.get_output(0)))


def packed_count(network: trt.INetworkDefinition) -> int:
    return count(improved(network, ["native_products"]).network, PackedProductLayer)


@pytest.mark.usefixtures("packs")
@pytest.mark.parametrize("network", [
    pytest.param(lambda: lstm(), id="one row"),
    pytest.param(lambda: lstm(batch=9, size=40), id="rows and panels that are not whole"),
    pytest.param(lambda: lstm(trips=0), id="no iterations"),
    pytest.param(lambda: gru(batch=8), id="a product that no state needs"),
    pytest.param(lambda: fed_back(op1=TRANSPOSE), id="a transposed matrix"),
    pytest.param(lambda: fed_back(VECTOR, rows=(5,)), id="a vector"),
])  # fmt: skip
def test_packed_products_agree_with_the_reference(network):
    made = network()
    inputs = inputs_of(made)
    wanted = trt.evaluate(made, inputs)

    assert packed_count(made)
    assert_close(trt.evaluate(improved(made, ["native_products"]).network, inputs), wanted)
    for passes in (["native_products"], None):
        assert_close(trt.compile(made, passes=passes)(inputs), wanted)


@pytest.mark.usefixtures("packs")
def test_engine_says_which_matrices_are_packed_and_batches_their_products():
    engine = trt.compile(
        lstm(trips=8, batch=4, inputs=40, size=40), passes=["horizontal_fusion", "native_products", "loop_fission"]
    )
    notes = [each for each in engine.notes if each.by == "native_products"]

    assert [each.what.endswith("is packed in advance") for each in notes] == [True, True]
    assert any(isinstance(each, PackedProductLayer) for those in engine.batched_layers.values() for each in those)


@pytest.mark.usefixtures("packs")
@pytest.mark.parametrize("network", [
    pytest.param(lambda: fed_back(TRANSPOSE, rows=(5, 5)), id="transposed rows"),
    pytest.param(lambda: fed_back(dtype=trt.float64), id="float64"),
    pytest.param(lambda: mark_product(in_loop=False), id="outside of loops"),
    pytest.param(lambda: mark_product(fixed=False), id="a matrix that is an input"),
])  # fmt: skip
def test_other_products_stay_as_they_are(network):
    assert packed_count(network()) == 0


def mark_product(in_loop: bool = True, fixed: bool = True) -> trt.INetworkDefinition:
    """y: the product of x with a matrix, in a loop or not."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2, 5))
    matrix = weights(network, 5, 5) if fixed else network.add_input("w", trt.float32, (5, 5))
    if not in_loop:
        return mark(network, y=network.add_matrix_multiply(x, PLAIN, matrix, PLAIN).get_output(0))
    loop = counted(network, 3)
    state = loop.add_recurrence(x)
    state.set_input(1, network.add_matrix_multiply(state.get_output(0), PLAIN, matrix, PLAIN).get_output(0))
    return mark(network, y=last(loop, state.get_output(0)))


def test_small_matrices_are_not_packed():
    assert packed_count(lstm(size=10)) == 0


def test_nothing_is_packed_where_machine_code_is_missing(monkeypatch):
    monkeypatch.setattr("netloop.passes.native_products.MIN_ELEMENTS", 1)
    monkeypatch.setattr("netloop.passes.native_products.panel_width", lambda: None)

    assert packed_count(lstm()) == 0


def test_llvmlite_is_imported_with_the_first_packed_product_and_not_before():
    script = (
        "import sys, numpy as np, netloop as trt\nfrom tests.support.cells import lstm\n"
        "trt.compile(lstm())({'x': np.zeros((5, 1, 4), np.float32)})\nsys.exit('llvmlite' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.usefixtures("packs")
def test_pure_functions_have_no_packed_products_and_keep_their_derivatives():
    network = lstm(batch=3)
    for load in (False, True):
        function, weights = trt.to_jax(network, load=load)
        made = jax.make_jaxpr(lambda x, f=function, w=weights: f(w, {"x": x}))(inputs_of(network)["x"])
        assert "ffi_call" not in str(made)
    function, weights = trt.to_jax(network, passes=trt.PASSES)

    assert np.isfinite(jax.grad(lambda x: jnp.sum(function(weights, {"x": x})["y"]))(inputs_of(network)["x"])).all()


def panels_of(matrix: np.ndarray, width: int) -> np.ndarray:
    made = np.zeros((matrix.shape[0], width), np.float32)
    made[:, : matrix.shape[1]] = matrix
    return made[None]


@pytest.mark.usefixtures("packs")
def test_vmap_multiplies_the_rows_of_all_members():
    width, random = panel_width(), np.random.default_rng(0)
    rows, matrices = random.standard_normal((3, 2, 4)).astype(np.float32), random.standard_normal((3, 4, 5))
    panels = np.stack([panels_of(each, width) for each in matrices])
    with jax.enable_x64(True):
        of_rows = jax.jit(jax.vmap(lambda x: packed_product(x, panels[0], 5)))
        of_both = jax.vmap(lambda x, p: packed_product(x, p, 5))(rows, panels)
        of_panels = jax.vmap(lambda p: packed_product(rows[0], p, 5))(panels)

    np.testing.assert_allclose(of_rows(rows), rows @ matrices[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(of_both, rows @ matrices, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(of_panels, rows[0] @ matrices, rtol=1e-5, atol=1e-5)
    assert str(of_rows.lower(rows).as_text()).count("netloop.product") == 1


@pytest.mark.usefixtures("packs")
def test_nan_and_infinity_go_where_the_reference_has_them():
    network = fed_back(rows=(3, 5))
    x = np.ones((3, 5), np.float32)
    x[0, 1], x[1, 2], x[2] = np.nan, np.inf, 3e38
    with np.errstate(all="ignore"):
        wanted = trt.evaluate(network, {"x": x})["y"]

    np.testing.assert_array_equal(np.isnan(trt.compile(network)({"x": x})["y"]), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(trt.compile(network)({"x": x})["y"]), np.isinf(wanted))


def long_chain() -> trt.INetworkDefinition:
    """A loop whose product has several tasks, which threads share."""
    return lstm(trips=20, batch=24, inputs=16, size=256)


@pytest.mark.usefixtures("packs")
def test_sixteen_threads_get_equal_results_while_engines_come_and_go():
    network = long_chain()
    inputs = inputs_of(network)
    engine = trt.compile(network)
    wanted = np.asarray(engine(inputs)["y"])

    def run(number: int) -> bool:
        own = trt.compile(lstm(trips=3, batch=2 + number)) if number % 4 == 0 else None
        found = [np.asarray(engine(inputs)["y"]) for _ in range(5)]
        if own is not None:
            own(inputs_of(own.network))
        del own
        gc.collect()
        return all(np.array_equal(each, wanted) for each in found)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(run, range(16)))
    assert_close({"y": wanted}, {"y": trt.evaluate(network, inputs)["y"]})


@pytest.mark.usefixtures("packs")
def test_another_process_computes_the_same_and_ends_well():
    script = (
        "import sys, numpy as np, netloop as trt\n"
        "from tests.passes.test_native_products import long_chain\nfrom tests.support.pass_checks import inputs_of\n"
        "network = long_chain()\nengine = trt.compile(network)\n"
        "assert any(each.by == 'native_products' for each in engine.notes)\n"
        "sys.stdout.buffer.write(np.asarray(engine(inputs_of(network))['y']).tobytes())"
    )
    found = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE).stdout

    network = long_chain()
    assert found == np.asarray(trt.compile(network)(inputs_of(network))["y"]).tobytes()
