"""Weight matrices are laid out as products read them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes.weight_prepacking import WeightsOnLeftLayer
from netloop.model.nest import live_layers
from tests.support.cells import gru, lstm
from tests.support.devices import only_on_cpus
from tests.support.pass_checks import assert_close, count, improved, inputs_of

pytestmark = only_on_cpus("the pass is not used elsewhere")

pytestmark = pytest.mark.usefixtures("low_thresholds")


def test_matrix_that_multiplies_a_state_is_transposed_in_advance():
    network = improved(lstm(), ["horizontal_fusion", "weight_prepacking"]).network
    products = [layer for layer in live_layers(network) if isinstance(layer, trt.IMatrixMultiplyLayer)]
    of_a_state = {isinstance(product.inputs[0].producer, trt.IRecurrenceLayer): product.op1 for product in products}

    assert of_a_state == {True: trt.MatrixOperation.TRANSPOSE, False: trt.MatrixOperation.NONE}


@pytest.mark.parametrize(("batch", "products"), [(7, 0), (8, 1), (64, 1), (65, 0)])
def test_matrix_that_multiplies_several_rows_of_a_state_is_the_left_operand(batch, products):
    network = improved(lstm(batch=batch), ["horizontal_fusion", "weight_prepacking"]).network

    assert count(network, WeightsOnLeftLayer) == products


def test_matrix_of_a_product_that_no_state_needs_stays_on_the_right():
    network = improved(gru(batch=8), ["weight_prepacking"]).network

    # three gates have a product of the state each; the product that is stacked is put off until after the trips
    assert count(network, WeightsOnLeftLayer) == 3


def test_derivatives_pass_through_a_product_with_its_weights_on_the_left():
    network = lstm(batch=8)
    (function, weights), inputs = trt.to_jax(network), inputs_of(network)
    plain = jax.grad(lambda x: jnp.sum(function(weights, {"x": x})["y"]))(inputs["x"])
    batched = jax.vmap(lambda x: function(weights, {"x": x})["y"])(inputs["x"][None])

    assert np.isfinite(plain).all()
    assert_close({"y": batched[0]}, {"y": trt.evaluate(network, inputs)["y"]})


@pytest.mark.parametrize(("batch", "number"), [(1, 4), (2, 0), (8, 0)])
def test_matrices_that_multiply_one_row_of_a_state_are_transposed_for_gpus(batch, number):
    network = improved(lstm(batch=batch), ["weight_prepacking"], "gpu").network
    products = [layer for layer in live_layers(network) if isinstance(layer, trt.IMatrixMultiplyLayer)]

    assert len(products) == 8
    assert sum(product.op1 is trt.MatrixOperation.TRANSPOSE for product in products) == number
    assert count(network, WeightsOnLeftLayer) == 0


def test_layout_for_gpus_gives_the_same_results(monkeypatch):
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    network = lstm()
    engine, inputs = trt.compile(network, passes=["weight_prepacking"]), inputs_of(network)

    assert len(engine.notes) == 4
    assert_close(engine(inputs), trt.evaluate(network, inputs))
