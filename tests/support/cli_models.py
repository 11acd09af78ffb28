"""Models that the tests of the commands run."""

import runpy
from pathlib import Path

import numpy as np

import netloop as trt

SOURCE = '''\
import numpy as np
import netloop as trt


def build():
    """y = tanh(x) + tanh(x) / 2 + ..., by a loop of four iterations."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 3))
    bent = network.add_activation(x, trt.ActivationType.TANH).get_output(0)
    bent.name = "bent"
    loop = network.add_loop()
    loop.name = "steps"
    count = network.add_constant((), np.array(4, np.int32)).get_output(0)
    loop.add_trip_limit(count, trt.TripLimit.COUNT)
    state = loop.add_recurrence(bent)
    half = network.add_constant((1, 1), np.full((1, 1), 0.5, np.float32)).get_output(0)
    less = network.add_elementwise(state.get_output(0), half, trt.ElementWiseOperation.PROD).get_output(0)
    less.name = "less"
    following = network.add_elementwise(less, bent, trt.ElementWiseOperation.SUM).get_output(0)
    following.name = "following"
    state.set_input(1, following)
    y = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network
'''
"""The source of the model, a file with a function build()."""

FUNCTION = """\
import jax.numpy as jnp


def step(x):
    return jnp.tanh(x)
"""
"""The source of a file with a JAX function."""


def expected(x: np.ndarray) -> np.ndarray:
    """What the model computes."""
    return np.tanh(x) * 1.9375


def write_all(folder: Path) -> None:
    """Write the model in every format, and ``inputs.npz`` for it."""
    (folder / "model.py").write_text(SOURCE, encoding="utf-8")
    (folder / "function.py").write_text(FUNCTION, encoding="utf-8")
    network = runpy.run_path(str(folder / "model.py"))["build"]()
    trt.plan.save(network, folder / "model.plan")
    trt.onnx.save(network, folder / "model.onnx")
    trt.openvino.save(network, folder / "model.xml")
    np.savez(folder / "inputs.npz", x=np.array([[0.0, 0.5, -2.0]], np.float32))
