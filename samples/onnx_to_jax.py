"""An ONNX model with a loop as a function of JAX: run, differentiated and mapped over a batch.

The model computes x to the power n by a ``Loop``, whose number of trips n is an input; ``power`` and ``steps`` are what
it carries and what it collects. ``to_jax`` makes of it a pure function, for ``jit``, ``grad`` and ``vmap``, and its
weights. A number of trips that is known when the function is traced makes the loop a scan, which has a derivative.

    python samples/onnx_to_jax.py

It prints the fifth power of 2 and how it came about, the derivative 5 x^4, and the powers of a batch:

    2 to the power 5 is 32, by way of [ 2.  4.  8. 16. 32.]
    its derivative there is 80
    powers of 1, 2 and 3: [  1.  32. 243.]
"""

import jax
import numpy as np
from onnx import ModelProto, TensorProto, helper

import netloop
import netloop.onnx


def value(name: str, kind: int, *shape: int | str) -> object:
    """An input or output of a graph."""
    return helper.make_tensor_value_info(name, kind, shape)


def build() -> ModelProto:
    """A model with the inputs ``x`` [] and ``n`` [], and the outputs ``power`` [] and ``steps`` [n]."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["goes_on"]),
            helper.make_node("Mul", ["now", "x"], ["next"]),
            helper.make_node("Identity", ["next"], ["step"]),
        ],
        "multiply",
        [value("trip", TensorProto.INT64), value("going", TensorProto.BOOL), value("now", TensorProto.FLOAT)],
        [value("goes_on", TensorProto.BOOL), value("next", TensorProto.FLOAT), value("step", TensorProto.FLOAT)],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "one"], ["power", "steps"], body=body)],
        "power",
        [value("x", TensorProto.FLOAT), value("n", TensorProto.INT64)],
        [value("power", TensorProto.FLOAT), value("steps", TensorProto.FLOAT, "n")],
        [helper.make_tensor("one", TensorProto.FLOAT, [], [1])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def main() -> None:
    """Run the model, its derivative, and the model on a batch."""
    network = netloop.onnx.load(build())
    outputs = netloop.compile(network)({"x": np.float32(2), "n": np.int64(5)})
    print(f"2 to the power 5 is {outputs['power']:g}, by way of {outputs['steps']}")

    function, weights = netloop.to_jax(network)

    def power(x: jax.Array) -> jax.Array:
        return function(weights, {"x": x, "n": np.int64(5)})["power"]

    print(f"its derivative there is {jax.grad(power)(np.float32(2)):g}")
    print(f"powers of 1, 2 and 3: {jax.vmap(power)(np.float32([1, 2, 3]))}")


if __name__ == "__main__":
    main()
