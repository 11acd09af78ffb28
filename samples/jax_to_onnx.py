"""A model trained in JAX, saved as ONNX for sequences of any length, and run by onnxruntime.

A recurrent layer with two numbers as its state learns running sums: ``lax.scan`` reads a sequence, and Adam follows
the gradients of JAX. ``from_jax`` makes a network of the trained function. Its scan is a loop, its weights have the
names of the pytree, and its length is open, so that it takes longer sequences than those of the training.

    python samples/jax_to_onnx.py

It prints the loss, what is in the file, and what both runtimes make of a sequence:

    loss before training: 4.21, and after: 0.00
    model.onnx: input x, weights params.u, params.v, params.w, output sums, 1 loop
    JAX:         [ 1.0  3.0  6.0 10.0  9.0  7.0  4.0  0.0]
    onnxruntime: [ 1.0  3.0  6.0 10.0  9.0  7.0  4.0  0.0]
"""

import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
from jax import lax
from jax.export import symbolic_shape

import netloop as trt

Params = dict[str, Any]
STEPS, RATE = 600, 0.02


def model(params: Params, x: Any) -> Params:
    """Return an estimate of the running sums of a sequence."""

    def step(state: Any, value: Any) -> tuple[Any, Any]:
        state = state @ params["u"] + value * params["w"]
        return state, state @ params["v"]

    return {"sums": lax.scan(step, jnp.zeros(2), x)[1]}


def loss(params: Params, xs: Any) -> Any:
    """Return the mean squared error for a batch of sequences."""
    return jnp.mean((jax.vmap(model, (None, 0))(params, xs)["sums"] - jnp.cumsum(xs, 1)) ** 2)


def trained(params: Params, xs: Any) -> Params:
    """Return the parameters after some steps of Adam."""

    def step(number: Any, state: tuple[Params, Params, Params]) -> tuple[Params, Params, Params]:
        params, first, second = state
        gradients = jax.grad(loss)(params, xs)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, second, gradients)
        rate = RATE * jnp.sqrt(1 - 0.99 ** (number + 1)) / (1 - 0.9 ** (number + 1))
        params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, first, second)
        return params, first, second

    zeros = jax.tree.map(jnp.zeros_like, params)
    return jax.jit(lambda start: lax.fori_loop(0, STEPS, step, start))((params, zeros, zeros))[0]


def main() -> None:
    """Train the model, save it, and run it in both."""
    draw = np.random.default_rng(0)
    start = {
        name: (0.5 * draw.normal(size=shape)).astype(np.float32) for name, shape in (("u", (2, 2)), ("w", 2), ("v", 2))
    }
    xs = draw.normal(size=(64, 6)).astype(np.float32)
    params = trained(start, xs)
    print(f"loss before training: {loss(start, xs):.2f}, and after: {loss(params, xs):.2f}")

    length = jax.ShapeDtypeStruct(symbolic_shape("length"), np.float32)
    network = trt.from_jax(model, params, length, names=["params", "x"], weights="params")
    path = Path(tempfile.mkdtemp()) / "model.onnx"
    trt.onnx.save(network, path)
    graph = onnx.load(path).graph
    weights = sorted(layer.name for layer in network.layers if layer.name.startswith("params."))
    loops = sum(attribute.op_type in ("Loop", "Scan") for attribute in graph.node)
    names = f"input {graph.input[0].name}, weights {', '.join(weights)}, output {graph.output[0].name}"
    print(f"{path.name}: {names}, {loops} loop")

    x = np.array([1, 2, 3, 4, -1, -2, -3, -4], np.float32)
    outputs = onnxruntime.InferenceSession(path).run(None, {"x": x})
    for name, sums in (("JAX:        ", model(params, x)["sums"]), ("onnxruntime:", np.asarray(outputs[0]))):
        # + 0 makes 0 of -0
        print(name, np.array2string(np.round(sums, 1) + 0, formatter={"float": lambda other: f"{other:4.1f}"}))


if __name__ == "__main__":
    main()
