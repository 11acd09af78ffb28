"""Single layers, computed by OpenVINO's CPU plugin and by netloop."""

from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

import numpy as np

import netloop
from tests.support.openvino_models import load, ov
from tests.support.openvino_runtime import CORE, EXACT

node_factory = import_module("openvino.utils.node_factory")


@dataclass(frozen=True)
class Fixed:
    """An input that is a constant of the model."""

    value: np.ndarray


@dataclass(frozen=True, eq=False)  # one is equal to itself, so that its outputs can be kept
class Case:
    """A layer, its inputs and how to compare its outputs.

    Attributes:
        op: the name of its class in OpenVINO.
        inputs: its inputs: arrays, or Fixed ones.
        opset: the operator set.
        attributes: its attributes.
        expected: its outputs, where OpenVINO's own are wrong; else None.
        open: whether all dims of the inputs may be dynamic.
        tolerance: the largest difference from OpenVINO's outputs.
    """

    op: str
    inputs: tuple
    opset: int = 16
    attributes: dict = field(default_factory=dict)
    expected: tuple | None = None
    open: bool = True
    tolerance: float = 2e-5

    def __str__(self):
        shown = [f"{name}={value}".replace(" ", "") for name, value in self.attributes.items()]
        return "-".join([f"{self.op}{self.opset}", *shown])[:80]

    def model(self, open=False):
        """The layer as a model, with dynamic or fixed dims."""
        parameters, nodes = [], []
        for tensor in self.inputs:
            if isinstance(tensor, Fixed):
                nodes.append(ov.opset16.constant(tensor.value))
                continue
            shape = [-1] * tensor.ndim if open else list(tensor.shape)
            parameters.append(ov.opset16.parameter(shape, ov.Type(tensor.dtype), name=f"x{len(parameters)}"))
            nodes.append(parameters[-1])
        made = factory(self.opset).create(self.op, [node.output(0) for node in nodes], self.attributes)
        return ov.Model([ov.opset16.result(tensor) for tensor in made.outputs()], parameters, "layer")

    @property
    def given(self):
        """The inputs of a call."""
        free = [tensor for tensor in self.inputs if not isinstance(tensor, Fixed)]
        return {f"x{number}": value for number, value in enumerate(free)}


def case(op, *inputs, opset=16, expected=None, open=True, tolerance=2e-5, **attributes):
    inputs = tuple(tensor if isinstance(tensor, Fixed) else np.asarray(tensor) for tensor in inputs)
    return Case(op, inputs, opset, attributes, expected, open, tolerance)


def fixed(value, dtype=None):
    return Fixed(np.asarray(value, dtype))


@cache
def factory(opset):
    return node_factory.NodeFactory(f"opset{opset}")


def openvino_outputs(model, given):
    """The outputs of the CPU plugin, in single precision."""
    compiled = CORE.compile_model(model, "CPU", EXACT)
    request = compiled.create_infer_request()
    # the synchronous call ignores errors
    request.start_async(given)
    request.wait()
    return [request.get_output_tensor(number).data.copy() for number in range(len(compiled.outputs))]


@cache
def expected_outputs(case):
    return openvino_outputs(case.model(), case.given) if case.expected is None else case.expected


def assert_agrees(case, open=False):
    """Check that the layer can be loaded and is computed like OpenVINO does."""
    found = netloop.evaluate(load(case.model(open)), case.given)
    for made, wanted in zip(found.values(), expected_outputs(case), strict=True):
        made, wanted = np.asarray(made), np.asarray(wanted)
        assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(made.astype(float), wanted.astype(float), case.tolerance, case.tolerance)
