"""Negative cases: networks that resemble what a pass is for, and to which it must not apply."""

from collections.abc import Callable

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes import PASSES
from netloop.compiler.passes.rewriter import Rewriter
from netloop.model.graph.tensor import ITensor
from tests.support.cells import PLAIN, SIGMOID, TANH, activation, product, weights
from tests.support.devices import assert_allclose
from tests.support.networks import Op, cast, combine, constant, counted, counter, last, mark, stacked
from tests.support.pass_checks import assert_close, count, improved, inputs_of, wiring

TRIPS = 3
Formula = Callable[[trt.INetworkDefinition, ITensor, ITensor], ITensor]


def summed(formula: Formula) -> trt.INetworkDefinition:
    """y: a state float32[4,4] to which each iteration adds a formula of it and of a row of x[3,4,4]."""
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    x = loop.add_iterator(network.add_input("x", trt.float32, (TRIPS, 4, 4))).get_output(0)
    state = loop.add_recurrence(constant(network, np.zeros((4, 4), np.float32)))
    now = state.get_output(0)
    state.set_input(1, combine(network, now, formula(network, now, x)))
    return mark(network, y=last(loop, now))


def first_row(network: trt.INetworkDefinition, x: ITensor) -> ITensor:
    return network.add_slice(x, (0, 0), (1, 4), (1, 1)).get_output(0)


def iterators_in_both_directions() -> trt.INetworkDefinition:
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (TRIPS,))
    loop = counted(network, TRIPS)
    forward, backward = (loop.add_iterator(x, reverse=reverse).get_output(0) for reverse in (False, True))
    state = loop.add_recurrence(constant(network, 0, np.float32))
    state.set_input(1, combine(network, state.get_output(0), combine(network, forward, backward, Op.PROD)))
    return mark(network, y=last(loop, state.get_output(0)))


def states_of_random_numbers() -> trt.INetworkDefinition:
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    least = loop.add_iterator(network.add_input("x", trt.float32, (TRIPS,))).get_output(0)
    zero, most = constant(network, [0], np.float32), constant(network, 1, np.float32)
    states = [loop.add_recurrence(zero) for _ in range(2)]
    for state in states:
        drawn = network.add_fill((1,), trt.FillOperation.RANDOM_UNIFORM)
        drawn.set_input(1, least)
        drawn.set_input(2, most)
        state.set_input(1, combine(network, state.get_output(0), drawn.get_output(0)))
    a, b = (last(loop, state.get_output(0)) for state in states)
    return mark(network, a=a, b=b)


def constant_states_in_assertions(trips: int = TRIPS) -> trt.INetworkDefinition:
    """y: the trip count; two states are always x, and assertions in the loops read them."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.int32, ())
    outer, inner = counted(network, trips), counted(network, TRIPS)
    stays = outer.add_recurrence(x)
    stays.set_input(1, stays.get_output(0))
    around, within = counter(network, outer), counter(network, inner)
    inside = inner.add_recurrence(stays.get_output(0))
    inside.set_input(1, inside.get_output(0))
    both = combine(network, combine(network, around, within), inside.get_output(0), Op.LESS)
    network.add_assertion(both, "both are below x")
    network.add_assertion(combine(network, stays.get_output(0), 9, Op.LESS), "x is below 9")
    return mark(network, y=last(outer, around))


def matrix_that_may_be_missing() -> trt.INetworkDefinition:
    """y[3]: x times one of two matrices, as flags choose; an iterator reads the first from w."""
    network = trt.INetworkDefinition()
    outer, inner = counted(network, TRIPS), counted(network, TRIPS)
    from_w = outer.add_iterator(network.add_input("w", trt.float32, (-1, 4, 4))).get_output(0)
    flag = outer.add_iterator(network.add_input("flags", trt.bool, (TRIPS,))).get_output(0)
    x = inner.add_iterator(network.add_input("x", trt.float32, (TRIPS, 4, 4))).get_output(0)
    made = []
    for matrix in (from_w, weights(network, 4, 4)):
        state = inner.add_recurrence(constant(network, np.zeros((4, 4), np.float32)))
        state.set_input(1, combine(network, state.get_output(0), product(network, x, matrix)))
        made.append(last(inner, state.get_output(0)))
    choice = network.add_if_conditional()
    choice.set_condition(flag)
    rows = stacked(outer, choice.add_output(*made).get_output(0), constant(network, TRIPS, np.int32))
    return mark(network, y=rows)


def sum_along_the_first_axis(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    products = combine(network, state, first_row(network, x), Op.PROD)
    return network.add_reduce(products, trt.ReduceOperation.SUM, 0b01, True).get_output(0)


def products_of_a_matrix_and_its_transpose(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    matrix = weights(network, 4, 4)
    transposed = network.add_matrix_multiply(state, PLAIN, matrix, trt.MatrixOperation.TRANSPOSE).get_output(0)
    return combine(network, product(network, state, matrix), transposed, Op.SUB)


def columns_of_a_table(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    tokens = network.add_squeeze(cast(network, first_row(network, x), trt.int32), constant(network, [0], np.int32))
    columns = network.add_gather(weights(network, 4, 4), tokens.get_output(0), 1).get_output(0)
    return product(network, columns, weights(network, 4, 4))


def gate_that_is_added_too(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    gate = activation(network, x, SIGMOID)
    return combine(network, combine(network, gate, state, Op.PROD), gate)


def gates_with_a_gap_between_them(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    parts = [network.add_slice(x, (0, begin), (4, 1), (1, 1)).get_output(0) for begin in (0, 2)]
    return combine(network, *(activation(network, part, TANH) for part in parts), Op.PROD)


def sums_of_the_first_and_the_last_product(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    one, two, three = (product(network, state, weights(network, 4, 4)) for _ in range(3))
    one, three = (combine(network, tensor, weights(network, 1, 4)) for tensor in (one, three))
    return combine(network, combine(network, one, three, Op.PROD), two, Op.SUB)


def narrow(leaves: Formula, next_row: Formula | None = None) -> trt.INetworkDefinition:
    """y: a formula of a state float32[32,4], stacked; each iteration adds a row, or the result of another formula."""
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    x = loop.add_iterator(network.add_input("x", trt.float32, (TRIPS, 32, 4))).get_output(0)
    state = loop.add_recurrence(weights(network, 32, 4))
    now, row = state.get_output(0), network.add_slice(x, (0, 0), (1, 4), (1, 1)).get_output(0)
    state.set_input(1, combine(network, now, row if next_row is None else next_row(network, now, x)))
    return mark(network, y=stacked(loop, leaves(network, now, row), constant(network, TRIPS, np.int32)))


def itself(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    return state


def its_second_argument(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    return x


def largest_of_all(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    return network.add_reduce(state, trt.ReduceOperation.MAX, 0b11, False).get_output(0)


def sum_of_products_of_columns_and_rows(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    return network.add_einsum([weights(network, 32, 3), weights(network, 3, 4), state], "ak, kb, ab -> ab").get_output(
        0
    )


def einsum_that_sums(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    return network.add_einsum([state, x], "ab, cb -> ac").get_output(0)


def einsum_of_a_diagonal(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    return network.add_einsum([state, x], "ab, aa -> ab").get_output(0)


def as_a_list(network: trt.INetworkDefinition, state: ITensor, x: ITensor) -> ITensor:
    layer = network.add_shuffle(state)
    layer.reshape_dims = (128,)
    return layer.get_output(0)


NEGATIVE_CASES = [
    ("redundant_carries", iterators_in_both_directions),
    ("redundant_carries", states_of_random_numbers),
    ("redundant_carries", constant_states_in_assertions),
    ("matmul_recognition", lambda: summed(sum_along_the_first_axis)),
    ("matmul_recognition", lambda: summed(einsum_that_sums)),
    ("matmul_recognition", lambda: summed(einsum_of_a_diagonal)),
    ("carry_layout", lambda: narrow(itself)),
    ("carry_layout", lambda: narrow(as_a_list)),
    ("carry_layout", lambda: narrow(largest_of_all, sum_of_products_of_columns_and_rows)),
    ("carry_layout", lambda: narrow(largest_of_all, its_second_argument)),
    ("horizontal_fusion", matrix_that_may_be_missing),
    ("horizontal_fusion", lambda: summed(products_of_a_matrix_and_its_transpose)),
    ("embedding_folding", lambda: summed(columns_of_a_table)),
    ("gate_fusion", lambda: summed(gate_that_is_added_too)),
    ("gate_fusion", lambda: summed(gates_with_a_gap_between_them)),
]


@pytest.mark.parametrize(("name", "make"), NEGATIVE_CASES)
def test_negative_case_is_left_alone(name, make):
    network = make()
    rewriter = Rewriter(network, network.types)
    before = wiring(rewriter.network)

    assert not PASSES[name].rewrite(rewriter)
    assert wiring(rewriter.network) == before
    assert not rewriter.notes
    assert improved(network, [name]).network is network


@pytest.mark.parametrize(("trips", "x", "fails"), [(3, 5, False), (3, 4, True), (3, 9, True), (0, 9, False)])
def test_assertion_about_a_constant_state_is_checked_in_the_iterations(trips, x, fails):
    network, inputs = constant_states_in_assertions(trips), {"x": np.int32(x)}

    for run in (trt.compile(network), lambda given: trt.evaluate(network, given)):
        if fails:
            with pytest.raises(trt.ExecutionError, match="NL601: the assertion"):
                run(inputs)
        else:
            assert run(inputs)["y"] == trips


def test_missing_matrix_fails_no_other_product():
    network = matrix_that_may_be_missing()
    x = np.ones((TRIPS, 4, 4), np.float32)
    inputs = {"w": x[:2], "flags": np.array([True, True, False]), "x": x}

    assert_allclose(trt.compile(network)(inputs)["y"], trt.evaluate(network, inputs)["y"], rtol=1e-6)


def test_state_that_leaves_only_through_reductions_has_its_axes_swapped():
    network = narrow(largest_of_all)

    assert improved(network, ["carry_layout"]).notes


def test_sums_of_products_with_another_between_them_stay_apart():
    network = summed(sums_of_the_first_and_the_last_product)
    shared = improved(network, ["horizontal_fusion"]).network

    assert [count(definition, trt.IMatrixMultiplyLayer) for definition in (network, shared)] == [3, 1]
    assert count(shared, trt.IElementWiseLayer) == count(network, trt.IElementWiseLayer)


def same_as_the_reference(network):
    inputs = inputs_of(network)
    assert_close(trt.compile(network)(inputs), trt.evaluate(network, inputs))


@pytest.mark.usefixtures("low_thresholds")
def test_products_keep_their_operands_and_their_order():
    network = trt.INetworkDefinition()
    x, z = (network.add_input(name, trt.float32, (2, 4)) for name in "xz")
    a, b = ([product(network, tensor, weights(network, 4, 3)) for _ in range(2)] for tensor in (x, z))
    outputs = {}
    for place in (0, 1):
        outputs[f"difference {place}"] = combine(network, weights(network, 1, 3), a[place], Op.SUB)
        factor = network.add_input(f"factor {place}", trt.float32, (1, 1))
        outputs[f"multiple {place}"] = combine(network, a[place], factor, Op.PROD)
        outputs[f"sum {place}"] = combine(network, a[place], b[1 - place])
    # a pass leaves the outputs of a network as they are
    negated = {
        name: network.add_unary(tensor, trt.UnaryOperation.NEG).get_output(0) for name, tensor in outputs.items()
    }
    same_as_the_reference(mark(network, **negated))


@pytest.mark.usefixtures("low_thresholds")
def test_counter_by_twos_reads_every_second_row():
    network = trt.INetworkDefinition()
    loop = counted(network, 3)
    number = loop.add_recurrence(constant(network, 0, np.int32))
    number.set_input(1, combine(network, number.get_output(0), 2))
    row = network.add_gather(network.add_input("x", trt.float32, (6, 2)), number.get_output(0), 0).get_output(0)
    same_as_the_reference(mark(network, y=stacked(loop, row, constant(network, 3, np.int32))))


@pytest.mark.usefixtures("low_thresholds")
def test_einsum_without_a_sum_transposes_its_operands():
    network = trt.INetworkDefinition()
    loop = counted(network, 3)
    x = loop.add_iterator(network.add_input("x", trt.float32, (3, 2, 4))).get_output(0)
    y = network.add_einsum([x, weights(network, 4, 2)], "ba,ab->ab").get_output(0)
    same_as_the_reference(mark(network, y=stacked(loop, y, constant(network, 3, np.int32))))


@pytest.mark.usefixtures("low_thresholds")
def test_sum_over_a_batch_keeps_the_axes_of_a_state():
    network = trt.INetworkDefinition()
    loop = counted(network, 3)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (2, 5, 3)))
    now = state.get_output(0)
    largest = network.add_reduce(now, trt.ReduceOperation.MAX, 0b100, True).get_output(0)
    state.set_input(1, combine(network, now, largest, Op.SUB))
    y = network.add_reduce(now, trt.ReduceOperation.SUM, 0b001, False).get_output(0)
    same_as_the_reference(mark(network, y=stacked(loop, y, constant(network, 3, np.int32))))


@pytest.mark.usefixtures("low_thresholds")
def test_embedding_is_multiplied_by_a_transposed_matrix():
    network = trt.INetworkDefinition()
    tokens = network.add_input("tokens", trt.int32, (2,))
    rows = network.add_gather(weights(network, 6, 4), tokens, 0).get_output(0)
    plain, transpose = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
    made = network.add_matrix_multiply(rows, plain, weights(network, 4, 4), transpose).get_output(0)
    same_as_the_reference(mark(network, y=combine(network, made, 1.0)))
