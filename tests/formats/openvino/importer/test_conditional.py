"""If, as a conditional."""

import numpy as np
import pytest

import netloop
from netloop import ModelError
from tests.support.openvino_models import TRUE, F, check, constant, document, load, ops, ov, parameter

X = F([1, -2, 3])


def choosing(condition, then, otherwise, inputs, shape=(3,)):
    """The model of an If whose branches are functions of ``x``."""
    x = parameter("x", list(shape))
    a, b = parameter("a", list(shape)), parameter("b", list(shape))
    yes, no = ops.result(then(a)), ops.result(otherwise(b))
    made = ops.if_op(condition.output(0))
    made.set_then_body(ov.Model([yes], [a]))
    made.set_else_body(ov.Model([no], [b]))
    made.set_input(x.output(0), a, b)
    return ov.Model([ops.result(made.set_output(yes, no))], [x, *inputs])


@pytest.mark.parametrize(("dtype", "shape"), [(bool, []), (bool, [1]), (np.int32, [])])
def test_branch_is_chosen_by_the_condition(dtype, shape):
    flag = parameter("flag", shape, dtype)
    network = load(choosing(flag, ops.relu, ops.negative, [flag]))

    check(network, {"x": X, "flag": np.ones(shape, dtype)}, F([1, 0, 3]))
    check(network, {"x": X, "flag": np.zeros(shape, dtype)}, -X)


@pytest.mark.parametrize(("value", "expected"), [(True, F([1, 0, 3])), (False, -X)])
def test_branch_of_a_known_condition_is_taken_alone(value, expected):
    network = load(choosing(constant(value), ops.relu, ops.negative, []))

    assert network.num_layers == 1
    check(network, {"x": X}, expected)


def test_branches_may_have_different_shapes():
    flag = parameter("flag", [], bool)
    network = load(choosing(flag, lambda x: ops.concat([x, x], 0), ops.negative, [flag]))

    check(network, {"x": X, "flag": TRUE}, np.concatenate([X, X]))
    check(network, {"x": X, "flag": np.bool_(False)}, -X)


def test_number_beside_a_list_becomes_a_list():
    flag = parameter("flag", [], bool)
    single = ops.constant(np.array(5, F))
    network = load(choosing(flag, lambda x: ops.add(single, constant(F(1))), ops.negative, [flag], (1,)))

    check(network, {"x": X[:1], "flag": TRUE}, F([6]))


def test_branches_may_read_other_inputs():
    x, y, flag = parameter("x", [3]), parameter("y", [3]), parameter("flag", [], bool)
    a, b = parameter("a", [3]), parameter("b", [3])
    yes, no = ops.result(ops.relu(a)), ops.result(ops.negative(b))
    made = ops.if_op(flag)
    made.set_then_body(ov.Model([yes], [a]))
    made.set_else_body(ov.Model([no], [b]))
    made.set_input(x.output(0), a, None)
    made.set_input(y.output(0), None, b)
    network = load(ov.Model([ops.result(made.set_output(yes, no))], [x, y, flag]))

    check(network, {"x": X, "y": X + 1, "flag": TRUE}, F([1, 0, 3]))
    check(network, {"x": X, "y": X + 1, "flag": np.bool_(False)}, -X - 1)


def test_branch_without_an_output_is_refused():
    flag = parameter("flag", [], bool)
    xml, weights = document(choosing(flag, ops.relu, ops.negative, [flag]))
    output = b'<output external_port_id="2" internal_layer_id="2" />'
    assert output in xml

    with pytest.raises(ModelError, match=r"<else_body> has no result for output 2"):
        netloop.openvino.load(xml.replace(output, b"", 1), weights)


def test_layer_without_branches_is_refused():
    flag = parameter("flag", [], bool)
    xml, weights = document(choosing(flag, ops.relu, ops.negative, [flag]))
    start, end = xml.index(b"<then_body>"), xml.index(b"</then_body>") + len(b"</then_body>")

    with pytest.raises(ModelError, match="the layer has no <then_body>"):
        netloop.openvino.load(xml[:start] + xml[end:], weights)


# ---------------------------------------------------------------------------- branches of different ranks


def squeezed(x, condition, *inputs):
    """An If that squeezes axis 0 of ``x`` or takes the tangent of ``x``, and the parameters of its model."""
    a, b = (ops.parameter(x.get_output_partial_shape(0), np.float32) for _ in range(2))
    yes, no = ops.result(ops.squeeze(a, constant(np.int64([0])))), ops.result(ops.tanh(b))
    made = ops.if_op(condition.output(0))
    made.set_then_body(ov.Model([yes], [a]))
    made.set_else_body(ov.Model([no], [b]))
    made.set_input(x.output(0), a, b)
    return made.set_output(yes, no), [x, *inputs]


def is_single(x):
    length = ops.gather(ops.shape_of(x), constant(np.int64(0)), constant(np.int64(0)))
    return ops.equal(length, constant(np.int64(1)))


@pytest.mark.parametrize("length", [1, 2])
def test_rank_that_follows_from_the_shape_of_a_call_is_that_of_openvino(length):
    x = parameter("x", [-1, 3])
    value, inputs = squeezed(x, is_single(x))
    model = ov.Model([ops.result(ops.multiply(value, constant(F([1, 2, 3]))))], inputs)
    network, rows = load(model), np.stack([X, X + 1])[:length]

    model.reshape({"x": [length, 3]})
    (expected,) = ov.Core().compile_model(model, "CPU")([rows]).values()

    assert expected.ndim == length
    check(network, {"x": rows}, expected)


@pytest.mark.parametrize("value", [True, False])
def test_rank_that_only_the_run_knows(value):
    x, flag = parameter("x", [1, 3]), parameter("flag", [], bool)
    made, inputs = squeezed(x, flag, flag)
    network = load(ov.Model([ops.result(ops.negative(made))], inputs))

    check(network, {"x": X[None], "flag": np.bool_(value)}, -X if value else -np.tanh(X[None]))


@pytest.mark.parametrize("value", [True, False])
def test_ranks_that_agree_again_become_one_tensor(value):
    x, flag = parameter("x", [1, 3]), parameter("flag", [], bool)
    made, inputs = squeezed(x, flag, flag)
    total = ops.reduce_sum(ops.reshape(ops.negative(made), constant(np.int64([3])), False), constant(np.int64([0])))
    network = load(ov.Model([ops.result(total)], inputs))

    assert network.outputs[0].shape == ()
    assert [type(layer) for layer in network].count(netloop.IReduceLayer) == 1
    check(network, {"x": X[None], "flag": np.bool_(value)}, -X.sum() if value else -np.tanh(X).sum())


def test_layer_that_only_one_branch_allows_is_an_assertion():
    x, flag = parameter("x", [1, 3]), parameter("flag", [], bool)
    made, inputs = squeezed(x, flag, flag)
    network = load(ov.Model([ops.result(ops.transpose(made, constant(np.int64([1, 0]))))], inputs))

    check(network, {"x": X[None], "flag": np.bool_(False)}, np.tanh(X[:, None]))
    with pytest.raises(netloop.ExecutionError, match=r"layer \d+ 'Transpose_"):
        netloop.evaluate(network, {"x": X[None], "flag": TRUE})


def test_rank_that_a_branch_of_a_branch_decides():
    x, flag, other = parameter("x", [1, 3]), parameter("flag", [], bool), parameter("other", [], bool)
    a, deeper = ops.parameter([1, 3], np.float32), ops.parameter([], bool)
    inner, _ = squeezed(a, deeper)
    b = ops.parameter([1, 3], np.float32)
    yes, no = ops.result(inner), ops.result(ops.negative(b))
    made = ops.if_op(flag.output(0))
    made.set_then_body(ov.Model([yes], [a, deeper]))
    made.set_else_body(ov.Model([no], [b]))
    made.set_input(x.output(0), a, b)
    made.set_input(other.output(0), deeper, None)
    network = load(ov.Model([ops.result(made.set_output(yes, no))], [x, flag, other]))

    for flags, expected in {(True, True): X, (True, False): np.tanh(X[None]), (False, True): -X[None]}.items():
        check(network, dict(zip(("x", "flag", "other"), (X[None], *map(np.bool_, flags)), strict=True)), expected)


@pytest.mark.parametrize("value", [True, False])
def test_branch_assumes_its_condition(value):
    x, flag = parameter("x", [1, 3]), parameter("flag", [], bool)
    a, same = ops.parameter([1, 3], np.float32), ops.parameter([], bool)
    inner, _ = squeezed(a, same)
    b = ops.parameter([1, 3], np.float32)
    yes, no = ops.result(ops.transpose(inner, constant(np.int64([0])))), ops.result(ops.negative(b))
    made = ops.if_op(flag.output(0))
    made.set_then_body(ov.Model([yes], [a, same]))
    made.set_else_body(ov.Model([no], [b]))
    made.set_input(x.output(0), a, b)
    made.set_input(flag.output(0), same, None)
    network = load(ov.Model([ops.result(made.set_output(yes, no))], [x, flag]))

    assert not any(isinstance(layer, netloop.IAssertionLayer) for layer in network)
    check(network, {"x": X[None], "flag": np.bool_(value)}, X if value else -X[None])
