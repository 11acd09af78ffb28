"""Functions that people write with JAX: models, filters, solvers, searches and a training step."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

DRAW = np.random.default_rng(0)


def normal(*shape):
    return (0.5 * DRAW.normal(size=shape)).astype(np.float32)


def lstm(params, h, c, xs):
    def step(state, x):
        h, c = state
        with jax.named_scope("cell"):
            gates = x @ params["w"] + h @ params["u"] + params["b"]
            i, f, g, o = jnp.split(gates, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    (h, c), ys = lax.scan(step, (h, c), xs)
    return {"ys": ys, "last": (h, c)}


LSTM = {"w": normal(3, 16), "u": normal(4, 16), "b": normal(16)}, normal(2, 4), normal(2, 4), normal(5, 2, 3)


def kalman(f, h, q, r, x, p, zs):
    def step(state, z):
        x, p = state
        x, p = f @ x, f @ p @ f.T + q
        gain = jnp.linalg.solve(h @ p @ h.T + r, h @ p).T
        x, p = x + gain @ (z - h @ x), p - gain @ h @ p
        return (x, p), x

    return lax.scan(step, (x, p), zs)


ONE = np.eye(3, dtype=np.float32)
KALMAN = ONE + 0.1 * normal(3, 3), normal(2, 3), 0.1 * ONE, np.eye(2, dtype=np.float32), normal(3), ONE, normal(6, 2)


def newton(a):
    def body(state):
        x, count = state
        return x - (x * x - a) / (2 * x), count + 1

    def goes_on(state):
        return (jnp.max(jnp.abs(state[0] ** 2 - a)) > 1e-3) & (state[1] < 50)

    return lax.while_loop(goes_on, body, (a + 1, 0))


NEWTON = (np.float32([2, 9, 0.5]),)


def training_step(params, xs, y):
    def loss(params):
        def step(h, x):
            return jnp.tanh(x @ params["w"] + h @ params["u"] + params["b"]), None

        h, _ = lax.scan(step, jnp.zeros((2, 4)), xs)
        return jnp.mean((h - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda each, gradient: each - 0.1 * gradient, params, gradients)


TRAINING_STEP = {"w": normal(3, 4), "u": normal(4, 4), "b": normal(4)}, normal(5, 2, 3), normal(2, 4)

WIDTH, WORDS, LENGTH, HEADS = 8, 11, 10, 2


def normalized(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * (1 + scale)


def next_word(params, ids, count):
    x = params["embedding"][ids] + params["places"]
    mask = jnp.arange(LENGTH)[None] <= jnp.arange(LENGTH)[:, None]
    for layer in params["layers"]:
        h = normalized(x, layer["scale"])
        q, k, v = (jnp.reshape(h @ layer[name], (LENGTH, HEADS, WIDTH // HEADS)) for name in "qkv")
        scores = jnp.einsum("qhd,khd->hqk", q, k) / 2.0
        shares = jax.nn.softmax(jnp.where(mask, scores, -1e9))
        x = x + jnp.einsum("hqk,khd->qhd", shares, v).reshape(LENGTH, WIDTH) @ layer["o"]
        x = x + jax.nn.gelu(normalized(x, layer["scale"]) @ layer["up"]) @ layer["down"]
    return jnp.argmax((x @ params["embedding"].T)[count - 1]).astype(np.int32)


def generate(params, prompt):
    ids = jnp.zeros(LENGTH, np.int32).at[:3].set(prompt)

    def body(state):
        ids, count, _ = state
        word = next_word(params, ids, count)
        return ids.at[count].set(word), count + 1, word

    start = ids, jnp.int32(3), jnp.int32(1)
    ids, count, _ = lax.while_loop(lambda state: (state[1] < LENGTH) & (state[2] != 0), body, start)
    return {"ids": ids, "count": count}


def _layer():
    square = {name: normal(WIDTH, WIDTH) for name in "qkvo"}
    return square | {"up": normal(WIDTH, 2 * WIDTH), "down": normal(2 * WIDTH, WIDTH), "scale": normal(WIDTH)}


GENERATE = (
    {"embedding": normal(WORDS, WIDTH), "places": normal(LENGTH, WIDTH), "layers": [_layer(), _layer()]},
    np.int32([3, 1, 4]),
)


def beam_search(table):
    beams, length = 3, 5
    scores = jax.nn.log_softmax(table)

    def step(state, _):
        texts, score, place = state
        candidates = score[:, None] + scores[texts[jnp.arange(beams), place]]
        score, chosen = lax.top_k(candidates.reshape(-1), beams)
        texts = texts[chosen // 7].at[:, place + 1].set(chosen % 7)
        return (texts, score, place + 1), score

    start = jnp.zeros((beams, length + 1), np.int32), jnp.float32([0, -1e9, -1e9]), 0
    return lax.scan(step, start, None, length=length)


BEAM_SEARCH = (normal(7, 7),)


def attention_of_each(q, k, v):
    def one(q, k, v):
        return jax.nn.softmax(q @ k.T / 2.0) @ v

    return jax.vmap(one)(q, k, v)


ATTENTION = normal(3, 5, 4), normal(3, 6, 4), normal(3, 6, 2)


def prefix(a, b):
    def joined(p, q):
        return p[0] * q[0], q[0] * p[1] + q[1]

    return lax.associative_scan(joined, (a, b))


PREFIX = normal(9, 2), normal(9, 2)


def convnet(params, images):
    x = lax.conv_general_dilated(images, params["kernel"], (1, 1), "SAME") + params["bias"][:, None, None]
    x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return jax.nn.log_softmax(x.reshape(x.shape[0], -1) @ params["w"])


CONVNET = {"kernel": normal(4, 3, 3, 3), "bias": normal(4), "w": normal(64, 5)}, normal(2, 3, 8, 8)

FUNCTIONS = [
    (lstm, LSTM),
    (kalman, KALMAN),
    (newton, NEWTON),
    (training_step, TRAINING_STEP),
    (generate, GENERATE),
    (beam_search, BEAM_SEARCH),
    (attention_of_each, ATTENTION),
    (prefix, PREFIX),
    (convnet, CONVNET),
]
"""The functions, each with arguments."""
