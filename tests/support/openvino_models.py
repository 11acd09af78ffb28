"""Models written by OpenVINO, loaded and run by netloop."""

import importlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import netloop

pytest.importorskip("openvino")
ov = importlib.import_module("openvino")
ops = importlib.import_module("openvino.opset14")

F = np.float32
TRUE = np.bool_(True)


def document(model):
    """The XML and the weights that OpenVINO writes for a model."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        ov.serialize(model, path)
        return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def load(model):
    """The network of a model that OpenVINO writes."""
    return netloop.openvino.load(*document(model))


def check(network, inputs, *expected, strategy=None):
    """Check the outputs of engine and reference, including element types and shapes."""
    engine = netloop.compile(network)
    for found in (engine(inputs), netloop.evaluate(network, inputs)):
        for made, wanted in zip(map(np.asarray, found.values()), map(np.asarray, expected), strict=True):
            assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)
    if strategy is not None:
        assert [strategy.name for strategy in engine.loop_strategies.values()] == [strategy]
    return engine


def constant(value, dtype=None):
    return ops.constant(np.asarray(value, dtype))


def parameter(name, shape, dtype=np.float32):
    return ops.parameter(shape, dtype, name=name)


class Loop:
    """A Loop, or a TensorIterator without limits, under construction.

    Args:
        trips: the trip count; None for a TensorIterator.
        goes_on: whether there is a first iteration.
    """

    def __init__(self, trips=None, goes_on=True):
        self.node = ops.tensor_iterator() if trips is None else ops.loop(_node(trips), _node(goes_on))
        self._counts = trips is not None
        self._counter = -1
        self._parameters, self._inputs = [], []

    def _parameter(self, shape, dtype):
        self._parameters.append(ops.parameter(shape, dtype))
        return self._parameters[-1]

    def sliced(self, outer, shape, axis=0, start=0, stride=1, part=1, end=-1):
        made = self._parameter(shape, outer.get_element_type())
        self._inputs.append(lambda nexts: self.node.set_sliced_input(made, _out(outer), start, stride, part, end, axis))
        return made

    def state(self, outer, shape=None):
        made = self._parameter(outer.get_output_partial_shape(0) if shape is None else shape, outer.get_element_type())
        self._inputs.append(
            lambda nexts: self.node.set_merged_input(made, _out(outer), nexts[made.get_name()].output(0))
        )
        return made

    def same(self, outer):
        made = self._parameter(outer.get_output_partial_shape(0), outer.get_element_type())
        self._inputs.append(lambda nexts: self.node.set_invariant_input(made, _out(outer)))
        return made

    def counter(self, shape=(), dtype=np.int64):
        self._counter = len(self._parameters)
        return self._parameter(list(shape), dtype)

    def outputs(self, nexts=(), last=(), rows=(), condition=True):
        """The outputs.

        Args:
            nexts: pairs of a state and its next value.
            last: the outputs of the last iteration.
            rows: the concatenated outputs: a value, the axis, and optionally the stride.
            condition: whether there is another iteration.
        """
        results: dict[str, Any] = {}

        def result(value):
            return results.setdefault(value.get_name(), ops.result(value))

        goes_on = [ops.result(_node(condition))] if self._counts else []
        after = {state.get_name(): result(value) for state, value in nexts}
        ends = [result(value) for value in last]
        joined = [(result(value), *how) for value, *how in rows]
        body = ov.Model([*goes_on, *results.values()], self._parameters)
        if self._counts:
            self.node.set_function(body)
            self.node.set_special_body_ports([self._counter, 0])
        else:
            self.node.set_body(body)
        for wire in self._inputs:
            wire(after)
        made = [self.node.get_iter_value(end.output(0), -1) for end in ends]
        return made + [_joined(self.node, value.output(0), *how) for value, *how in joined]


def _joined(node, value, axis, stride=1, part=1):
    start, end = (0, -1) if stride > 0 else (-1, 0)
    return node.get_concatenated_slices(value, start, stride, part, end, axis)


def _node(value):
    return value if isinstance(value, ov.Node) else constant(value)


def _out(node):
    return node.output(0) if isinstance(node, ov.Node) else node


def network_of(outputs, inputs):
    """The network of the model with these outputs and inputs."""
    return load(ov.Model([ops.result(tensor) for tensor in outputs], inputs))
