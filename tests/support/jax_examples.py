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
    return value, jax.tree.map(lambda param, gradient: param - 0.1 * gradient, params, gradients)


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


def decode(params, prompt):
    """Words one after the other, each from the keys and values of those before, which a cache keeps."""
    length = LENGTH

    def step(state, number):
        word, caches = state
        x = params["embedding"][word] + params["places"][number]
        kept = []
        for layer, (keys, values) in zip(params["layers"], caches, strict=True):
            h = normalized(x, layer["scale"])
            q, k, v = (jnp.reshape(h @ layer[name], (HEADS, WIDTH // HEADS)) for name in "qkv")
            keys = lax.dynamic_update_index_in_dim(keys, k, number, 0)
            values = lax.dynamic_update_index_in_dim(values, v, number, 0)
            scores = jnp.where(jnp.arange(length) <= number, jnp.einsum("hd,khd->hk", q, keys) / 2.0, -1e9)
            x = x + jnp.einsum("hk,khd->hd", jax.nn.softmax(scores), values).reshape(WIDTH) @ layer["o"]
            x = x + jax.nn.gelu(normalized(x, layer["scale"]) @ layer["up"]) @ layer["down"]
            kept.append((keys, values))
        said = jnp.argmax(x @ params["embedding"].T).astype(np.int32)
        word = jnp.where(number + 1 < prompt.shape[0], prompt[jnp.minimum(number + 1, prompt.shape[0] - 1)], said)
        return (word, kept), word

    empty = jnp.zeros((length, HEADS, WIDTH // HEADS), np.float32)
    start = prompt[0], [(empty, empty) for _ in params["layers"]]
    return lax.scan(step, start, jnp.arange(length, dtype=np.int32))[1]


def orbit(state, time):
    return jnp.stack([state[1], -state[0] - 0.2 * state[1]]) * jnp.cos(0.1 * time)


def solve_in_steps(start, step):
    """An ODE by twenty steps of the classical Runge-Kutta method."""

    def one(state, number):
        time = number * step
        a = orbit(state, time)
        b = orbit(state + step / 2 * a, time + step / 2)
        c = orbit(state + step / 2 * b, time + step / 2)
        d = orbit(state + step * c, time + step)
        state = state + step / 6 * (a + 2 * b + 2 * c + d)
        return state, state

    return lax.scan(one, start, jnp.arange(20, dtype=np.float32))[1]


def solve_to_tolerance(start, end):
    """An ODE by steps of Heun's method, each as long as the error of Euler's allows."""

    def goes_on(given):
        return (given[0] < end) & (given[3] < 500)

    def one(given):
        time, state, step, count = given
        step = jnp.minimum(step, end - time)
        first = orbit(state, time)
        second = orbit(state + step * first, time + step)
        error = jnp.max(jnp.abs(step / 2 * (second - first)))
        is_right = error < 1e-3
        grown = step * jnp.clip(0.9 * jnp.sqrt(1e-3 / (error + 1e-12)), 0.2, 3.0)
        after = state + step / 2 * (first + second)
        return jnp.where(is_right, time + step, time), jnp.where(is_right, after, state), grown, count + 1

    time, state, _, count = lax.while_loop(goes_on, one, (jnp.float32(0), start, jnp.float32(0.1), 0))
    return {"state": state, "time": time, "is_done": count < 500}


def selective_scan(params, xs):
    """A state space model whose steps depend on what it reads, all of them by one associative scan."""
    size = jax.nn.softplus(xs @ params["step"])
    decay = jnp.exp(-size[..., None] * jnp.exp(params["log"]))
    pushed = (size * xs)[..., None] * (xs @ params["read"])[:, None]

    def joined(p, q):
        return p[0] * q[0], q[0] * p[1] + q[1]

    _, states = lax.associative_scan(joined, (decay, pushed))
    return jnp.einsum("tdn,tn->td", states, xs @ params["write"]) + xs * params["skip"]


def adam_step(params, moments, count, x, y):
    """A step of Adam: forward, backward, and the update, with the state in and out."""

    def loss(params):
        return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) @ params["v"] - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
    second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * g * g, moments[1], gradients)
    share = jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    made = jax.tree.map(lambda p, a, b: p - 0.01 * share * a / (jnp.sqrt(b) + 1e-8), params, first, second)
    return {"params": made, "moments": (first, second), "count": count, "loss": value}


SOLVE_IN_STEPS = normal(2), np.float32(0.1)
SOLVE_TO_TOLERANCE = normal(2), np.float32(2)
SELECTIVE_SCAN = (
    {
        "step": normal(3, 3), "log": normal(3, 4), "read": normal(3, 4), "write": normal(3, 4), "skip": normal(3),
    },
    normal(9, 3),
)  # fmt: skip
_OF_ADAM = {"w": normal(3, 5), "b": normal(5), "v": normal(5, 2)}
_ZEROS = {name: np.zeros_like(array) for name, array in _OF_ADAM.items()}
ADAM_STEP = _OF_ADAM, (_ZEROS, _ZEROS), np.float32(0), normal(8, 3), normal(8, 2)

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
    (decode, GENERATE),
    (solve_in_steps, SOLVE_IN_STEPS),
    (solve_to_tolerance, SOLVE_TO_TOLERANCE),
    (selective_scan, SELECTIVE_SCAN),
    (adam_step, ADAM_STEP),
]
"""The functions, each with arguments."""
