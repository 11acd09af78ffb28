"""Documents of the draft of the operation Loop, with other names and rules."""

import numpy as np
import pytest

import netloop
from netloop import ModelError
from tests.support.openvino_models import F, check

X = F([[1, 2], [3, 4], [5, 6]])


def port(id, shape, precision="FP32"):
    dims = "".join(f"<dim>{length}</dim>" for length in shape)
    return f'<port id="{id}" precision="{precision}">{dims}</port>'


def operation(id, type, inputs=(), outputs=(), inside="", tag="operation"):
    """An operation of the draft, its ports as tuples of number, shape and optionally type."""
    sides = [f"<{side}>{''.join(port(*value) for value in ports)}</{side}>" for side, ports in SIDES(inputs, outputs)]
    return f'<{tag} id="{id}" name="{type}{id}" type="{type}">{"".join(sides)}{inside}</{tag}>'


def SIDES(inputs, outputs):
    return [(side, ports) for side, ports in (("input", inputs), ("output", outputs)) if ports]


def edges(*pairs, tag="operation"):
    lines = [f'<edge from-{tag}="{a}" from-port="{p}" to-{tag}="{b}" to-port="{q}"/>' for (a, p), (b, q) in pairs]
    return f"<edges>{''.join(lines)}</edges>"


def back_edges(*pairs, tag="operation"):
    lines = [f'<edge from-{tag}="{a}" to-{tag}="{b}"/>' for a, b in pairs]
    return f"<back_edges>{''.join(lines)}</back_edges>"


def entry(side, port, inside, tag="operation", **how):
    more = "".join(f' {name}="{value}"' for name, value in how.items())
    return f'<{side} external_port_id="{port}" internal_{tag}_id="{inside}"{more}/>'


def graph(operations, *pairs, tag="operation"):
    return f"<{tag}s>{''.join(operations)}</{tag}s>{edges(*pairs, tag=tag)}"


def loaded(body, weights=b""):
    return netloop.openvino.load(f'<net name="draft">{body}</net>'.encode(), weights)


# ---------------------------------------------------------------------------- counts and conditions


def body(condition=False, counter=False):
    """A body that adds a row to a sum, optionally the iteration number too, and optionally has a condition: below 5."""
    layers = [
        operation(0, "Parameter", outputs=[(0, (1, 2))]),
        operation(1, "Parameter", outputs=[(0, (1, 2))]),
        operation(2, "Add", [(0, (1, 2)), (1, (1, 2))], [(2, (1, 2))]),
        operation(3, "Result", [(0, (1, 2))]),
    ]
    wires = [((0, 0), (2, 0)), ((1, 0), (2, 1)), ((2, 2), (3, 0))]
    if condition:
        layers += [
            operation(4, "Parameter", outputs=[(0, (), "BOOL")]),
            operation(5, "Const", outputs=[(1, (2,), "I64")], inside='<data offset="8" size="16"/>'),
            operation(6, "Reshape", [(0, ()), (1, (2,), "I64")], [(2, (1, 1), "BOOL")]),
            operation(7, "Const", outputs=[(1, (1, 2))], inside='<data offset="24" size="8"/>'),
            operation(8, "Less", [(0, (1, 2)), (1, (1, 2))], [(2, (1, 2), "BOOL")]),
            operation(9, "Const", outputs=[(1, (1,), "I64")], inside='<data offset="32" size="8"/>'),
            operation(10, "Result", [(0, (), "BOOL")]),
            operation(11, "MatMul", [(0, (1, 2)), (1, (1, 2))], [(2, (1, 1))], '<data transpose_b="true"/>'),
            operation(12, "Reshape", [(0, (1, 1)), (1, (1,), "I64")], [(2, (1,))]),
            operation(13, "Const", outputs=[(1, (1,))], inside='<data offset="40" size="4"/>'),
            operation(14, "Less", [(0, (1,)), (1, (1,))], [(2, (1,), "BOOL")]),
        ]
        wires += [((2, 2), (11, 0)), ((7, 1), (11, 1)), ((11, 2), (12, 0)), ((9, 1), (12, 1))]
        wires += [((12, 2), (14, 0)), ((13, 1), (14, 1)), ((14, 2), (10, 0))]
    if counter:
        layers += [
            operation(15, "Parameter", outputs=[(0, (), "I64")]),
            operation(16, "Result", [(0, (1,), "I64")]),
            operation(17, "Const", outputs=[(1, (1,), "I64")], inside='<data offset="32" size="8"/>'),
            operation(18, "Reshape", [(0, (), "I64"), (1, (1,), "I64")], [(2, (1,), "I64")]),
        ]
        wires += [((15, 0), (18, 0)), ((17, 1), (18, 1)), ((18, 2), (16, 0))]
    return f"<body>{graph(layers, *wires)}</body>"


NUMBERS = (
    np.int64([2]).tobytes()  # the trip count
    + np.int64([1, 1]).tobytes()
    + F([0, 1]).tobytes()  # what takes the second number of a sum
    + np.int64([1]).tobytes()
    + F([9]).tobytes()  # the limit
)


def model(trips, asks, condition=False, counter=False):
    """A model of a Loop with or without a count, an outer condition, and a condition in the body."""
    limits = [(0, (), "I64")] * trips + [(1, (), "BOOL")] * asks
    outputs = [(4, (1, 2)), (5, (3, 2))] + [(6, (3,), "I64")] * counter
    mapped = [entry("input", 2, 0, axis=0), entry("input", 3, 1), entry("output", 4, 3), entry("output", 5, 3, axis=0)]
    if asks:
        mapped.append(entry("input", 1, 4))
    if counter:
        mapped.append(entry("output", 6, 16, axis=0))
    around = [(3, 1)] + [(10, 4)] * condition
    inside = f"<port_map>{''.join(mapped)}</port_map>{back_edges(*around)}{body(condition, counter)}"
    operations = [
        operation(0, "Parameter", outputs=[(0, (3, 2))]),
        operation(1, "Parameter", outputs=[(0, (1, 2))]),
        operation(2, "Const", outputs=[(1, (), "I64")], inside='<data offset="0" size="8"/>'),
        operation(3, "Parameter", outputs=[(0, (), "BOOL")]),
        operation(4, "Loop", [*limits, (2, (3, 2)), (3, (1, 2))], outputs, inside),
        operation(5, "Result", [(0, (1, 2))]),
        operation(6, "Result", [(0, (3, 2))]),
    ]
    wires = [((0, 0), (4, 2)), ((1, 0), (4, 3)), ((4, 4), (5, 0)), ((4, 5), (6, 0))]
    wires += [((2, 1), (4, 0))] * trips + [((3, 0), (4, 1))] * asks
    if counter:
        operations.append(operation(7, "Result", [(0, (3,), "I64")]))
        wires.append(((4, 6), (7, 0)))
    if not asks:
        operations.pop(3)
    return graph(operations, *wires)


def given(asks=None):
    inputs = {"Parameter0": X, "Parameter1": F([[0, 0]])}
    return inputs if asks is None else {**inputs, "Parameter3": np.bool_(asks)}


SUMS = np.cumsum(X, 0, dtype=F)


def test_count_alone_ends_the_loop():
    check(loaded(model(True, False), NUMBERS), given(), SUMS[1:2], SUMS[:2], strategy="scan")


def test_loop_without_count_and_condition_reads_its_slices():
    check(loaded(model(False, False), NUMBERS), given(), SUMS[2:], SUMS, strategy="scan")


def test_condition_of_the_body_is_ignored_where_none_is_asked():
    check(loaded(model(False, False, condition=True), NUMBERS), given(), SUMS[2:], SUMS)


@pytest.mark.parametrize("asks", [True, False])
def test_condition_is_carried(asks):
    network = loaded(model(False, True, condition=True), NUMBERS)
    last, rows = (SUMS[2:], SUMS) if asks else (F([[0, 0]]), SUMS[:0])

    check(network, given(asks), last, rows)


def test_count_and_condition_end_the_loop_together():
    check(loaded(model(True, True, condition=True), NUMBERS), given(True), SUMS[1:2], SUMS[:2])


def test_parameter_that_nothing_is_mapped_to_is_the_iteration_number():
    network = loaded(model(True, False, counter=True), NUMBERS)

    check(network, given(), SUMS[1:2], SUMS[:2], np.int64([0, 1]))


def test_condition_that_no_result_could_be_is_refused():
    with pytest.raises(ModelError, match=r"Results of the body could be its condition|has no value|maps layer 4"):
        loaded(model(True, True), NUMBERS)


# ---------------------------------------------------------------------------- the example of an LSTM


BATCH, TIME, FEATURES, HIDDEN = 1, 25, 512, 256


def lstm(tag="operation", kind="Loop"):
    """The second example of the draft, complete: a cell over the second axis, its weights concatenated."""
    cell = [(0, (1, 512)), (1, (1, 256)), (2, (1, 256)), (3, (1024, 768)), (4, (1024,))]
    made = operation

    def inner(id, type, inputs=(), outputs=(), inside=""):
        return made(id, type, inputs, outputs, inside, tag)

    def const(id, shape, offset, size, precision="FP32"):
        data = f'<data offset="{offset}" size="{size}"/>'
        return inner(id, "Const", outputs=[(1, shape, precision)], inside=data)

    operations = [
        inner(0, "Parameter", outputs=[(0, (1, 1, 512))]),
        const(1, (2,), 0, 16, "I64"),
        inner(2, "Reshape", [(0, (1, 1, 512)), (1, (2,), "I64")], [(2, (1, 512))]),
        inner(3, "Parameter", outputs=[(0, (1, 256))]),
        inner(4, "Parameter", outputs=[(0, (1, 256))]),
        const(5, (1024, 768), 16, 3145728),
        const(6, (1024,), 3145744, 4096),
        inner(7, "LSTMCell", cell, [(5, (1, 256)), (6, (1, 256))], '<data hidden_size="256"/>'),
        inner(8, "Result", [(0, (1, 256))]),
        inner(9, "Result", [(0, (1, 256))]),
        const(10, (3,), 3149840, 24, "I64"),
        inner(11, "Reshape", [(0, (1, 256)), (1, (3,), "I64")], [(2, (1, 1, 256))]),
        inner(12, "Result", [(0, (1, 1, 256))]),
    ]
    wires = [((0, 0), (2, 0)), ((1, 1), (2, 1)), ((2, 2), (7, 0)), ((3, 0), (7, 1)), ((4, 0), (7, 2))]
    wires += [((5, 1), (7, 3)), ((6, 1), (7, 4)), ((7, 6), (8, 0)), ((7, 5), (9, 0)), ((7, 5), (11, 0))]
    wires += [((10, 1), (11, 1)), ((11, 2), (12, 0))]
    mapped = [
        entry("input", 0, 0, tag, axis=1, start=0),
        entry("input", 1, 3, tag),
        entry("input", 2, 4, tag),
        entry("output", 3, 12, tag, axis=1),
    ]
    inside = (
        f"<port_map>{''.join(mapped)}</port_map>{back_edges((8, 4), (9, 3), tag=tag)}"
        f"<body>{graph(operations, *wires, tag=tag)}</body>"
    )
    outer = [
        inner(0, "Parameter", outputs=[(0, (BATCH, TIME, FEATURES))]),
        inner(1, "Parameter", outputs=[(0, (BATCH, HIDDEN))]),
        inner(2, "Parameter", outputs=[(0, (BATCH, HIDDEN))]),
        inner(3, kind, [(0, (1, 25, 512)), (1, (1, 256)), (2, (1, 256))], [(3, (1, 25, 256))], inside),
        inner(4, "Result", [(0, (1, 25, 256))]),
    ]
    pairs = [((0, 0), (3, 0)), ((1, 0), (3, 1)), ((2, 0), (3, 2)), ((3, 3), (4, 0))]
    return graph(outer, *pairs, tag=tag)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("tag", "kind"), [("operation", "Loop"), ("layer", "TensorIterator")])
def test_example_of_an_lstm_runs(tag, kind):
    random = np.random.default_rng(0)
    weights = F(random.normal(size=(4 * HIDDEN, FEATURES + HIDDEN)) / 30)
    bias = F(random.normal(size=4 * HIDDEN))
    x, h, c = (F(random.normal(size=shape)) for shape in [(BATCH, TIME, FEATURES), (BATCH, HIDDEN), (BATCH, HIDDEN)])
    file = np.int64([1, 512]).tobytes() + weights.tobytes() + bias.tobytes() + np.int64([1, 1, 256]).tobytes()
    network = loaded(lstm(tag, kind), file)

    rows = []
    hidden, cell = h, c
    for step in range(TIME):
        gates = np.concatenate([x[:, step], hidden], 1) @ weights.T + bias
        forget, enter, new, leave = np.split(gates, 4, 1)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
        hidden = sigmoid(leave) * np.tanh(cell)
        rows.append(hidden)
    found = netloop.compile(network)({"Parameter0": x, "Parameter1": h, "Parameter2": c})

    np.testing.assert_allclose(next(iter(found.values())), np.stack(rows, 1), rtol=1e-4, atol=1e-5)
