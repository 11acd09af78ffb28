"""Unrolling: how many iterations of a small body become one."""

import numpy as np
import pytest

import netloop as trt
from tests.support.devices import assert_allclose
from tests.support.examples import mostly_slow
from tests.support.networks import Op, combine, constant, counted, counter, last, mark, stacked

TRIPS = 37


def halved(layers, elements, stacks):
    """A state that each layer halves."""
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    state = loop.add_recurrence(network.add_input("s", trt.float32, (elements,)))
    tensor = state.get_output(0)
    for _ in range(layers):
        tensor = combine(network, tensor, np.float32([0.5]), trt.ElementWiseOperation.PROD)
    state.set_input(1, tensor)
    return mark(
        network,
        y=stacked(loop, tensor, constant(network, TRIPS, np.int32)) if stacks else last(loop, state.get_output(0)),
    )


def chosen(elements):
    """A state that takes one of two branches of one layer each, as the iteration's flag says."""
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    condition = loop.add_iterator(network.add_input("flags", trt.bool, (TRIPS,))).get_output(0)
    state = loop.add_recurrence(network.add_input("s", trt.float32, (elements,)))
    s, choice = state.get_output(0), network.add_if_conditional()
    choice.set_condition(condition)
    ways = (combine(network, s, np.float32([number]), trt.ElementWiseOperation.PROD) for number in (0.5, 0.9))
    state.set_input(1, choice.add_output(*ways).get_output(0))
    return mark(network, y=last(loop, s))


def unrolled(network):
    """The unroll factor, from the notes of an engine."""
    notes = [str(note) for note in trt.compile(network, passes=["loop_unrolling"]).notes]
    return int(notes[0].split()[1]) if notes else 1


@pytest.mark.parametrize(
    ("layers", "elements", "factor"),
    [(3, 1, 16), (4, 8, 16), (4, 16, 8), (4, 64, 2), (16, 1, 8), (16, 16, 2), (17, 16, 1), (32, 4, 4)],
)
def test_unrolled_body_has_at_most_512_elements(layers, elements, factor):
    assert unrolled(halved(layers, elements, stacks=False)) == factor


@pytest.mark.parametrize(("layers", "elements"), [(33, 1), (1, 65)])
def test_body_that_is_not_small_is_not_unrolled(layers, elements):
    assert unrolled(halved(layers, elements, stacks=False)) == 1


@pytest.mark.parametrize(("layers", "elements", "factor"), [(3, 1, 8), (16, 1, 4), (32, 1, 2), (3, 2, 1)])
def test_factor_is_half_as_large_where_single_numbers_are_stacked(layers, elements, factor):
    assert unrolled(halved(layers, elements, stacks=True)) == factor


@pytest.mark.parametrize(("elements", "factor"), [(8, 16), (16, 8), (64, 2)])
def test_conditional_counts_with_both_branches(elements, factor):
    assert unrolled(chosen(elements)) == factor


@pytest.mark.parametrize("stacks", [False, True])
def test_remaining_iterations_are_made_too(stacks):
    inputs = {"s": np.float32([3])}
    network = halved(3, 1, stacks)

    assert_allclose(trt.compile(network)(inputs)["y"], trt.evaluate(network, inputs)["y"], rtol=1e-6)


# ---------------------------------------------------------------------------- GPUs, where launches decide


@pytest.fixture
def for_a_gpu(monkeypatch):
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")


@pytest.mark.parametrize(
    ("layers", "stacks", "factor"),
    [(3, False, 32), (9, False, 32), (33, False, 8), (3, True, 8), (32, True, 8), (33, True, 4), (129, True, 1)],
)
def test_bodies_of_any_size_are_unrolled_to_save_launches(layers, stacks, factor, for_a_gpu):
    assert unrolled(halved(layers, 1000, stacks)) == factor


def chosen_product(has_loop):
    """A state that is multiplied by a matrix in the iterations of a flag, in each of the others by half."""
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    loop.name = "outer"
    condition = loop.add_iterator(network.add_input("flags", trt.bool, (TRIPS,))).get_output(0)
    state = loop.add_recurrence(network.add_input("s", trt.float32, (1, 3)))
    s, choice = state.get_output(0), network.add_if_conditional()
    choice.set_condition(condition)
    matrix = constant(network, np.eye(3, dtype=np.float32)[::-1])
    none = trt.MatrixOperation.NONE
    product = network.add_matrix_multiply(s, none, matrix, none).get_output(0)
    if has_loop:
        inner = counted(network, 2)
        inner_state = inner.add_recurrence(product)
        inner_state.set_input(1, combine(network, inner_state.get_output(0), s, Op.SUM))
        product = last(inner, inner_state.get_output(0))
    half = combine(network, s, np.float32([[0.5]]), Op.PROD)
    state.set_input(1, choice.add_output(product, half).get_output(0))
    return mark(network, y=last(loop, s))


@pytest.mark.parametrize("has_loop", [False, True])
def test_bodies_with_branches_of_layers_are_unrolled(has_loop, for_a_gpu):
    notes = [note.what for note in trt.compile(chosen_product(has_loop), passes=["loop_unrolling"]).notes]

    assert ("8 iterations of 'outer' are made at a time" in notes) is not has_loop


def test_unrolled_branches_give_the_same(for_a_gpu):
    network = chosen_product(has_loop=False)
    inputs = {"s": np.float32([[1, 2, 3]]), "flags": np.arange(TRIPS) % 3 != 1}

    assert_allclose(trt.compile(network)(inputs)["y"], trt.evaluate(network, inputs)["y"])


def test_unrolled_iterations_of_a_gpu_give_the_same(for_a_gpu):
    network = halved(3, 100, stacks=True)
    inputs = {"s": np.linspace(-1, 1, 100, dtype=np.float32)}

    assert_allclose(trt.compile(network)(inputs)["y"], trt.evaluate(network, inputs)["y"])


def collatz(most=None):
    """The number of steps from each of some numbers to 1, and the largest number on the way, by conditionals."""
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    loop.name = "steps"
    recurrence = loop.add_recurrence(network.add_input("n", trt.int64, ()))
    count, largest = counter(network, loop), loop.add_recurrence(constant(network, 0, np.int64))
    n = recurrence.get_output(0)
    half = combine(network, n, 2, Op.FLOOR_DIV)
    condition = combine(network, combine(network, half, 2, Op.PROD), n, Op.EQUAL)
    choice = network.add_if_conditional()
    choice.set_condition(condition)
    above = combine(network, combine(network, n, 3, Op.PROD), 1, Op.SUM)
    recurrence.set_input(1, choice.add_output(half, above).get_output(0))
    largest.set_input(1, combine(network, largest.get_output(0), n, Op.MAX))
    loop.add_trip_limit(combine(network, n, 1, Op.GREATER), trt.TripLimit.WHILE)
    if most is not None:
        loop.add_trip_limit(constant(network, most, np.int32), trt.TripLimit.COUNT)
    return mark(network, count=last(loop, count), largest=last(loop, largest.get_output(0)), end=last(loop, n))


@pytest.mark.parametrize("most", mostly_slow(2, [None, 5, 0, 1000]))
def test_iterations_after_the_end_of_a_while_loop_change_nothing(most, for_a_gpu):
    network = collatz(most)
    # a loop with a bound would be one kernel
    engine = trt.compile(network, passes={*trt.PASSES} - {"loop_kernels"})

    for n in (1, 2, 7, 27):
        outputs, expected = engine({"n": np.int64(n)}), trt.evaluate(network, {"n": np.int64(n)})
        assert {name: int(outputs[name]) for name in expected} == {name: int(expected[name]) for name in expected}
    assert any("between two looks" in str(note) for note in engine.notes)
