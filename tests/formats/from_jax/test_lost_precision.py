"""Products that ask for more precision than an engine has by default on the device."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from netloop.compiler.product_precision import DeviceTraits

A = np.ones((2, 2), np.float32)
H100, TPU, OLD = DeviceTraits("gpu", "9.0"), DeviceTraits("tpu"), DeviceTraits("gpu", "7.5")
HIGH, HIGHEST = lax.Precision.HIGH, lax.Precision.HIGHEST


def findings(monkeypatch, traits, function, *examples):
    monkeypatch.setattr(DeviceTraits, "of", staticmethod(lambda device: traits))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trt.from_jax(function, *examples)
    return [warning.message.finding for warning in caught if warning.category is trt.DeviceWarning]


def dot(precision):
    return lambda a, b: lax.dot(a, b, precision=precision)


@pytest.mark.parametrize(
    ("traits", "precision", "number"),
    [
        (H100, HIGHEST, 1),
        (H100, (lax.Precision.DEFAULT, HIGHEST), 1),
        (H100, lax.DotAlgorithmPreset.F32_F32_F32, 1),
        (H100, HIGH, 0),
        (H100, None, 0),
        (H100, lax.Precision.DEFAULT, 0),
        (H100, lax.DotAlgorithmPreset.TF32_TF32_F32, 0),
        (TPU, HIGHEST, 1),
        (TPU, HIGH, 1),
        (TPU, lax.DotAlgorithmPreset.BF16_BF16_F32, 0),
        (OLD, HIGHEST, 0),
        (DeviceTraits("cpu"), HIGHEST, 0),
    ],
)
def test_precision_above_that_of_the_device_is_told(monkeypatch, traits, precision, number):
    assert len(findings(monkeypatch, traits, dot(precision), A, A)) == number


def test_warning_has_the_number_the_place_and_the_way_out(monkeypatch):
    def function(x):
        def body(h, row):
            return lax.dot(h, row, precision=HIGHEST), None

        return lax.scan(body, x, jnp.stack([x, x]))[0] @ x + jnp.dot(x, x, precision="highest")

    (finding,) = findings(monkeypatch, H100, function, A)

    assert finding.code == "NL665"
    assert finding.what == (
        "2 float32 products ask for more precision than tensorfloat32, which an engine has here by default"
    )
    assert "test_lost_precision.py" in str(finding)
    assert "tf32=False" in finding.fix


def test_convolution_asks_as_products_do(monkeypatch):
    x, w = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 3), np.float32)

    assert findings(monkeypatch, H100, lambda x, w: lax.conv(x, w, (1,), "VALID", precision=HIGHEST), x, w)


@pytest.mark.parametrize("dtype", [np.int32, np.float16])
def test_types_that_are_not_rounded_need_no_precision(monkeypatch, dtype):
    assert findings(monkeypatch, H100, dot(HIGHEST), A.astype(dtype), A.astype(dtype)) == []


def test_setting_of_jax_that_engines_take_over_is_no_loss(monkeypatch):
    with jax.default_matmul_precision("highest"):
        assert findings(monkeypatch, H100, lambda a, b: a @ b, A, A) == []
