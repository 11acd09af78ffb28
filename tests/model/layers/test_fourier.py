"""The discrete Fourier transform."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from netloop.model.layers.fourier import IDFTLayer
from tests.support.laws import Case, check_laws, refuses

SIGNAL = np.random.default_rng(0).normal(size=(2, 5, 3, 1)).astype(np.float32)
WAVES = np.random.default_rng(1).normal(size=(2, 4, 2)).astype(np.float32)


def parts(x: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs of real and imaginary parts."""
    return np.stack([x.real, x.imag], -1)


def joined(x: np.ndarray) -> np.ndarray:
    return x[..., 0] + 1j * x[..., 1]


def case(name: str, x: Any, expected: Any, length: int | None = None, rtol: float = 1e-4, **attributes: Any) -> Case:
    count = None if length is None else np.array(length, np.int64)
    return Case(name, IDFTLayer(**attributes), (x, count), np.asarray(expected).astype(x.dtype), rtol)


REAL, COMPLEX = SIGNAL[..., 0], joined(WAVES)
CASES = [
    case("a step, by hand", np.float32([[1], [1], [0], [0]]), np.float32([[2, 0], [1, -1], [0, 0], [1, 1]])),
    case("back, by hand", np.float32([[2, 0], [1, -1], [0, 0], [1, 1]]), np.float32([[1, 0], [1, 0], [0, 0], [0, 0]]),
         inverse=True),
    case("of real numbers", SIGNAL, parts(np.fft.fft(REAL, axis=1)), axis=1),
    case("along the last axis", SIGNAL, parts(np.fft.fft(REAL))),
    case("of complex numbers", WAVES, parts(np.fft.fft(COMPLEX))),
    case("inverse of complex numbers", WAVES, parts(np.fft.ifft(COMPLEX)), inverse=True),
    case("inverse of real numbers", SIGNAL, parts(np.fft.ifft(REAL)), inverse=True),
    case("of an even number of real numbers", WAVES[..., :1], parts(np.fft.fft(WAVES[..., 0]))),
    case("one half", SIGNAL, parts(np.fft.rfft(REAL, axis=1)), axis=1, onesided=True),
    case("one half of an even number", WAVES[..., :1], parts(np.fft.rfft(WAVES[..., 0])), onesided=True),
    case("from one half", WAVES, np.fft.irfft(COMPLEX)[..., None], inverse=True, onesided=True),
    case("from one half to an odd number", WAVES, np.fft.irfft(COMPLEX, 7)[..., None], 7, inverse=True, onesided=True),
    case("from less than one half", WAVES, np.fft.irfft(COMPLEX, 4)[..., None], 4, inverse=True, onesided=True),
    case("zeros added", WAVES, parts(np.fft.fft(COMPLEX, 7)), 7),
    case("cut", WAVES, parts(np.fft.ifft(COMPLEX, 3)), 3, inverse=True),
    case("one half of what is cut", SIGNAL, parts(np.fft.rfft(REAL, 2, 1)), 2, axis=-3, onesided=True),
    case("in float64", WAVES.astype(np.float64), parts(np.fft.fft(joined(WAVES.astype(np.float64)))), rtol=1e-10),
    case("in half", np.float16([[1], [2]]), np.float16([[3, 0], [-1, 0]])),
    Case("along an axis that a tensor tells", IDFTLayer(), (SIGNAL, None, np.int64(1)),
         parts(np.fft.fft(REAL, axis=1)).astype(np.float32), 1e-4),
    case("of nothing to a batch", np.zeros((0, 3, 1), np.float32), np.zeros((0, 3, 2), np.float32)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_dft_obeys_the_laws(case: Case) -> None:
    check_laws(case)


@pytest.mark.parametrize(
    ("attributes", "shape", "message"),
    [
        ({"axis": -1}, (3, 2), "the axis is 1, the last"),
        ({}, (3,), r"must have an axis to transform"),
        ({}, (3, 4), "has 4 elements, but must have 1 or 2"),
        ({"onesided": True}, (3, 2), "has 2 elements, but must have 1"),
        ({"onesided": True, "inverse": True}, (3, 1), "has 1 elements, but must have 2"),
        ({"onesided": True, "inverse": True}, (1, 2), "a transform of 0 elements"),
        ({}, (0, 2), "a transform of 0 elements"),
        ({"axis": 5}, (3, 2), "axis"),
    ],
)
def test_input_that_has_no_transform_is_refused(attributes: Any, shape: Any, message: str) -> None:
    refuses(IDFTLayer(**attributes), np.zeros(shape, np.float32), match=message)


@pytest.mark.parametrize("length", [0, -2])
def test_length_below_one_is_refused(length: int) -> None:
    refuses(
        IDFTLayer(),
        np.zeros((3, 2), np.float32),
        np.array(length),
        match=f"a transform of {length} elements is not defined",
    )


@pytest.mark.parametrize("length", [np.array([3]), np.array(3.0)])
def test_length_that_is_no_whole_number_is_refused(length: np.ndarray) -> None:
    refuses(IDFTLayer(), np.zeros((3, 2), np.float32), length, match="the length must be an int32 or int64 scalar")


def test_integers_are_refused() -> None:
    refuses(IDFTLayer(), np.zeros((3, 2), np.int32), match="the input must be floating-point, not int32")


def test_transform_of_many_elements_is_fast_and_exact() -> None:
    x = np.random.default_rng(2).normal(size=(1 << 16, 1)).astype(np.float32)

    made = np.asarray(IDFTLayer(onesided=True).lower(jnp.asarray(x)))

    assert np.allclose(made, parts(np.fft.rfft(x[:, 0])), atol=2e-3)
