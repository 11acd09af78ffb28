"""ReadValue and Assign, as an input and an output."""

import pytest

import netloop
from netloop import ModelError
from tests.support.openvino_models import F, Loop, check, constant, document, load, ops, ov, parameter


def accumulator(shape=(1, 2), before=True):
    """A model that adds its input to a variable."""
    x = parameter("x", [-1, 2])
    start = constant(F([[0, 0]]))
    info = ov.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape(shape), ov.Type.f32, "memory"
    variable = ov.op.util.Variable(info)
    now = ov.opset6.read_value(start, variable) if before else ov.opset6.read_value(variable)
    after = ops.add(now, x)
    return ov.Model([ops.result(after, name="sum")], [ov.opset6.assign(after, variable)], [x])


@pytest.mark.parametrize("shape", [(1, 2), (-1, 2)])
def test_variable_is_an_input_and_an_output(shape):
    network = load(accumulator(shape))

    assert [(tensor.name, tensor.type.shape) for tensor in network.inputs] == [("x", (-1, 2)), ("memory", shape)]
    assert [tensor.name for tensor in network.outputs] == ["sum", "memory.next"]
    check(network, {"x": F([[1, 2]]), "memory": F([[10, 20]])}, F([[11, 22]]), F([[11, 22]]))


def test_variable_of_any_shape_is_like_its_initial_value():
    network = load(accumulator(ov.PartialShape.dynamic()))

    assert network.get_input(1).type.shape == (1, 2)


def test_two_assignments_of_one_variable_are_refused():
    xml, weights = document(accumulator())
    twice = xml.replace(b'type="ReadValue"', b'type="Assign"', 1)

    with pytest.raises(ModelError, match=r"there is an output 'memory\.next' already"):
        netloop.openvino.load(twice, weights)


def test_variable_of_a_body_is_refused():
    x = parameter("x", [3, 2])
    loop = Loop()
    xml, weights = document(ov.Model([ops.result(loop.outputs(rows=[(ops.tanh(loop.sliced(x, [1, 2])), 0)])[0])], [x]))
    inside = b'type="ReadValue" version="opset6"><data variable_id="memory"/>'

    with pytest.raises(ModelError, match="a variable is read in a body"):
        netloop.openvino.load(xml.replace(b'type="Tanh" version="opset1">', inside), weights)
