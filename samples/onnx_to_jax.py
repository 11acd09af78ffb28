"""An ONNX model with a loop as a JAX function: run, differentiated and mapped over a batch.

The model computes x to the power n in a ``Loop`` whose trip count is the input n. ``power`` is the last value that it
carries, and ``steps`` stacks the values of all iterations. ``to_jax`` returns the weights and a pure function for
``jit``, ``grad`` and ``vmap``. A loop whose trip count is known at tracing is a scan, which ``grad`` can differentiate.

    python samples/onnx_to_jax.py

It prints the fifth power of 2 with all steps, the derivative 5 x^4, and the fifth powers of a batch:

    2 to the power 5: 32, in steps [ 2.  4.  8. 16. 32.]
    derivative at 2: 80
    fifth powers of 1, 2 and 3: [  1.  32. 243.]
"""

import jax
import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

import netloop
import netloop.onnx


def value(name: str, kind: int, *shape: int | str) -> ValueInfoProto:
    """Return the declaration of an input or output of a graph."""
    return helper.make_tensor_value_info(name, kind, shape)


def build() -> ModelProto:
    """Return a model from ``x`` [] and ``n`` [] to ``power`` [] and ``steps`` [n]."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["condition"], ["continue"]),
            helper.make_node("Mul", ["now", "x"], ["next"]),
            helper.make_node("Identity", ["next"], ["step"]),
        ],
        "multiply",
        [value("iteration", TensorProto.INT64), value("condition", TensorProto.BOOL), value("now", TensorProto.FLOAT)],
        [value("continue", TensorProto.BOOL), value("next", TensorProto.FLOAT), value("step", TensorProto.FLOAT)],
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
    """Run the model, differentiate it, and map it over a batch."""
    network = netloop.onnx.load(build())
    outputs = netloop.compile(network)({"x": np.float32(2), "n": np.int64(5)})
    print(f"2 to the power 5: {outputs['power']:g}, in steps {outputs['steps']}")

    function, weights = netloop.to_jax(network)

    def power(x: jax.typing.ArrayLike) -> jax.Array:
        return function(weights, {"x": x, "n": np.int64(5)})["power"]

    print(f"derivative at 2: {jax.grad(power)(2.0):g}")
    print(f"fifth powers of 1, 2 and 3: {jax.vmap(power)(np.array([1, 2, 3], np.float32))}")


if __name__ == "__main__":
    main()
