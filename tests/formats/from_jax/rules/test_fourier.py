import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from tests.support.jax_functions import check_same

X = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.abs(jnp.fft.rfft(x)),
        lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2j, 8),
        lambda x: jnp.fft.irfft(jnp.fft.rfft(x[:, :7]), 7),
        lambda x: jnp.real(jnp.fft.ifft2(jnp.fft.fft2(x) * jnp.exp(1j * x))),
        lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x) / (1 + 2j)),
        lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.conj(jnp.fft.rfft(x[::-1])), 8),
        lambda x: jnp.fft.fftshift(jnp.fft.fft(x)).real,
        lambda x: jnp.where(x > 0, jnp.fft.fft(x), 0).imag,
        lambda x: (lax.conj(x).real, lax.conj(x).imag),
        lambda x: jax.scipy.signal.stft(x[0], nperseg=4)[2].real,
        jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2)),
    ],
)
def test_transform(function):
    check_same(function, X, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: (z**2, z**-1, z * z, z / (z + 1), -z - 1j),
        lambda z: (abs(z), jnp.angle(z), jnp.exp(z), jnp.log(z), z.conj()),
        lambda z: (z @ z.T, z @ z.T.real, z.T, z[::-1, 1:3], z.sum(0), jnp.concatenate([z, z])),
        lambda z: (z == z, z != z + 1, lax.pad(z, np.complex64(1j), ((1, 0, 0), (0, 1, 1)))),
        lambda z: lax.scan(lambda c, row: (c * (0.5 + 0.5j) + row, c), z[0], z)[1],
        lambda z: lax.cond(z[0, 0].real > 0, lambda z: z, lambda z: z * 1j, z),
    ],
)
def test_complex_numbers(function):
    def parts(x):
        made = function(lax.complex(x, x[::-1] + 1))
        return jax.tree.map(lambda value: (value.real, value.imag) if jnp.iscomplexobj(value) else value, made)

    check_same(parts, X, rtol=1e-4, atol=1e-4)


def test_complex_inputs_and_outputs_have_their_parts_along_a_last_axis():
    network = trt.from_jax(lambda z: z * 1j, (X + 1j).astype(np.complex64))
    given = np.stack([X, np.ones_like(X)], -1)

    np.testing.assert_array_equal(trt.evaluate(network, {"z": given})["output"], np.stack([-np.ones_like(X), X], -1))
