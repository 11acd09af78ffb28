"""Gradients of models of packages, in reverse mode and without JAX's x64 setting.

Each is skipped where its package is not installed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop
import netloop.onnx
from tests.real_models.recipe import load_inputs, save_inputs
from tests.real_models.sources import packages

MODELS = {
    "silero_vad": "input",
    "silero_vad_16k_op15": "input",
    "silero_vad_half": "input",
    "silero_vad_ifless": "input",
    "silero_vad_openvino": "input",
    "silero_vad_sequence": "input",
    "basic_pitch": "serving_default_input_2:0",
}
"""The input for which each is differentiated."""
STEPS = {"basic_pitch": 1e-3}
"""The largest step of its finite differences; by default 0.01."""


def slopes(function, x, direction, largest):
    """Central differences with four steps; some cross a kink of the model, or are lost in roundings."""
    steps = [largest / 4**index for index in range(4)]
    return [(float(function(x + h * direction)) - float(function(x - h * direction))) / (2 * h) for h in steps]


@pytest.mark.parametrize("name", MODELS)
def test_gradient_is_the_slope_along_itself(name, tmp_path):
    if packages.installed(packages.MODELS[name]) is None:
        pytest.skip(f"{packages.MODELS[name].package} is not installed")
    path = tmp_path / f"{name}.onnx"
    save_inputs(path, packages.RECIPES[name].write(path))
    given = load_inputs(path)[0]
    fixed = {name: given.pop(name) for name in ("sr",) if name in given}
    function, weights = netloop.to_jax(netloop.onnx.load(path, inputs=fixed))

    def total(x):
        return sum(jnp.sum(array) for array in function(weights, {**given, MODELS[name]: x}).values())

    assert not jax.config.jax_enable_x64
    x = jnp.asarray(given[MODELS[name]] - np.float32(0.5))
    gradient = jax.grad(total)(x)
    length = jnp.linalg.norm(gradient.ravel())
    assert jnp.isfinite(gradient).all()
    assert length > 0
    assert np.median(slopes(total, x, gradient / length, STEPS.get(name, 1e-2))) == pytest.approx(
        float(length), rel=0.1
    )
