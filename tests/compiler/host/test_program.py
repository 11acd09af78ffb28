"""Host execution: networks with data-dependent shapes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import netloop as trt
from netloop.compiler.execution.executable import Executable
from netloop.compiler.execution.probes import record_elements
from netloop.compiler.recipe import Recipe
from netloop.compiler.xla_compilation import XlaFunction
from tests.support import networks
from tests.support import random_networks as comparison
from tests.support.convolutions import block
from tests.support.examples import mostly_slow, same_examples
from tests.support.networks import CONCATENATE, REVERSE, WHILE, F, Op, combine, counted, counter, last, mark, stacked
from tests.support.strategies import networks as random_networks


def constant(network, value, dtype=np.int32):
    return networks.constant(network, value, dtype)


def agree(network, **inputs):
    """The outputs of the reference and of an engine, which are equal, and the loop strategies of the engine."""
    meant = trt.evaluate(network, inputs)
    engine = trt.compile(network)
    for _ in range(2):
        got = engine(inputs)
        for name, wanted in meant.items():
            assert got[name].dtype == wanted.dtype
            np.testing.assert_array_equal(np.asarray(got[name]), wanted)
    return meant, {name: strategy.name for name, strategy in engine.loop_strategies.items()}


def fails_alike(network, match, **inputs):
    for run in (trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)):
        with pytest.raises(trt.ExecutionError, match=match):
            run(network, inputs)


def collatz(network, start):
    """The numbers from a number to 2, stacked as many as there are."""

    def loop_of(name):
        loop = network.add_loop()
        loop.name = name
        state = loop.add_recurrence(start)
        now = state.get_output(0)
        loop.add_trip_limit(combine(network, now, 1, Op.GREATER), WHILE)
        half = combine(network, now, 2, Op.FLOOR_DIV)
        odd = combine(network, now, combine(network, half, 2, Op.PROD), Op.GREATER)
        more = combine(network, combine(network, now, 3, Op.PROD), 1)
        state.set_input(1, network.add_select(odd, more, half).get_output(0))
        return loop, now

    counting, _ = loop_of("counting")
    steps = last(counting, counter(network, counting))
    listing, now = loop_of("listing")
    return stacked(listing, now, steps)


def outer_loop(network, lengths, count=None):
    """A loop 'outer' over some lengths, and in each iteration the sum of 0, 1 ... below the length."""
    outer = counted(network, lengths.shape[0] if count is None else count)
    outer.name = "outer"
    fill = network.add_fill((1,), trt.FillOperation.LINSPACE, trt.int32)
    fill.set_input(
        0, network.add_unsqueeze(outer.add_iterator(lengths).get_output(0), constant(network, [0])).get_output(0)
    )
    fill.alpha, fill.beta = 0, 1
    return outer, total(network, fill.get_output(0))


def total(network, tensor):
    return network.add_reduce(tensor, trt.ReduceOperation.SUM, 1, False).get_output(0)


def test_output_is_as_long_as_the_trip_count_of_an_earlier_loop(network):
    mark(network, y=collatz(network, network.add_input("start", trt.int32, ())))

    meant, loop_strategies = agree(network, start=np.int32(6))
    assert meant["y"].tolist() == [6, 3, 10, 5, 16, 8, 4, 2]
    assert loop_strategies == {"counting": "while", "listing": "while"}


def test_layers_read_a_data_dependent_shape(network):
    steps = collatz(network, network.add_input("start", trt.int32, ()))
    highest = network.add_reduce(steps, trt.ReduceOperation.MAX, 1, False).get_output(0)
    mark(network, highest=highest, shape=network.add_shape(steps).get_output(0))

    meant, _ = agree(network, start=np.int32(27))
    assert (meant["highest"], meant["shape"]) == (9232, 111)


@pytest.mark.parametrize("flag", [True, False])
def test_branches_may_have_different_lengths(network, flag):
    condition, x = network.add_input("flag", trt.bool, ()), network.add_input("x", trt.int32, (4,))
    choice = network.add_if_conditional()
    choice.set_condition(condition)
    short = network.add_slice(x, (1,), (2,), (1,)).get_output(0)
    chosen = choice.add_output(x, short).get_output(0)
    mark(network, y=combine(network, chosen, chosen))

    meant, _ = agree(network, flag=np.bool_(flag), x=np.arange(4, dtype=np.int32))
    assert meant["y"].tolist() == ([0, 2, 4, 6] if flag else [2, 4])


@pytest.mark.parametrize(
    ("kind", "backwards", "wanted"),
    [(CONCATENATE, False, [6, 0, 3, 0]), (REVERSE, False, [3, 0, 6, 0]), (CONCATENATE, True, [3, 0, 6, 0])],
)
def test_loop_on_the_host_stacks_rows(network, kind, backwards, wanted):
    lengths = network.add_input("lengths", trt.int32, (3,))
    outer, sums = outer_loop(network, lengths)
    next(layer for layer in outer.layers if isinstance(layer, trt.IIteratorLayer)).reverse = backwards
    mark(network, y=stacked(outer, sums, constant(network, 4), kind))

    meant, loop_strategies = agree(network, lengths=np.array([4, 0, 3], np.int32))
    assert meant["y"].tolist() == wanted
    assert loop_strategies == {"outer": "host"}


def test_while_is_not_asked_after_the_count_has_ended_a_loop_on_the_host(network):
    outer, size = outer_loop(network, network.add_input("lengths", trt.int32, (3,)))
    state = outer.add_recurrence(constant(network, 0))
    now = state.get_output(0)
    outer.add_trip_limit(combine(network, now, 100, Op.LESS), WHILE)
    state.set_input(1, combine(network, now, size))
    mark(network, y=last(outer, now))

    outputs, strategies = agree(network, lengths=np.int32([2, 3, 4]))

    assert (outputs["y"], strategies["outer"]) == (1 + 3 + 6, "host")


def test_branch_in_a_loop_on_the_host_reads_an_iterator_in_reverse(network):
    lengths, x = network.add_input("lengths", trt.int32, (3,)), network.add_input("x", trt.int32, (3,))
    # a number that the network has would be in every piece
    outer, sums = outer_loop(network, lengths, network.add_input("count", trt.int32, ()))
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, sums, 1, Op.GREATER))
    backwards = outer.add_iterator(x, reverse=True).get_output(0)
    mark(network, y=stacked(outer, choice.add_output(backwards, sums).get_output(0), constant(network, 3)))

    inputs = {"lengths": np.int32([4, 0, 3]), "x": np.int32([7, 8, 9]), "count": np.int32(3)}
    meant, loop_strategies = agree(network, **inputs)
    assert meant["y"].tolist() == [9, 0, 7]
    assert loop_strategies == {"outer": "host"}


def test_state_that_grows_is_refused_where_its_length_is_open(network):
    start, trips = network.add_input("start", trt.int32, (-1,)), network.add_input("trips", trt.int32, ())
    loop = counted(network, trips)
    state = loop.add_recurrence(start)
    state.set_input(1, network.add_concatenation([state.get_output(0), state.get_output(0)]).get_output(0))
    mark(network, y=last(loop, state.get_output(0)))

    with pytest.raises(trt.NetworkError, match="starts as int32"):
        trt.evaluate(network, {"start": np.ones(1, np.int32), "trips": np.int32(3)})


def test_inner_loop_of_fixed_shapes_is_compiled(network):
    outer = counted(network, 2)
    n = outer.add_iterator(network.add_input("lengths", trt.int32, (2,))).get_output(0)
    inner = counted(network, n)
    outer.name, inner.name = "outer", "inner"
    power = inner.add_recurrence(constant(network, 1))
    power.set_input(1, combine(network, power.get_output(0), 2, Op.PROD))
    sums = total(network, stacked(inner, power.get_output(0), n))
    mark(network, y=stacked(outer, sums, constant(network, 2)))

    meant, loop_strategies = agree(network, lengths=np.array([3, 5], np.int32))
    assert meant["y"].tolist() == [7, 31]
    # the second length shares its program with others, and is a number of the call
    assert loop_strategies == {"outer": "host", "inner": "while"}


def test_assertion_is_checked_on_the_host(network):
    steps = collatz(network, network.add_input("start", trt.int32, ()))
    size = network.add_shape(steps).get_output(0)
    network.add_assertion(combine(network, size, 4, Op.LESS), "too many steps")
    mark(network, y=steps)

    assert agree(network, start=np.int32(8))[0]["y"].tolist() == [8, 4, 2]
    fails_alike(network, "too many steps", start=np.int32(6))


def test_error_on_the_host_counts_only_where_it_is_needed(network):
    steps = collatz(network, network.add_input("start", trt.int32, ()))
    wanted = network.add_input("wanted", trt.bool, ())
    ninth = network.add_gather(steps, constant(network, 8), 0).get_output(0)
    choice = network.add_if_conditional()
    choice.set_condition(wanted)
    mark(network, y=choice.add_output(ninth, constant(network, -1)).get_output(0))

    assert trt.evaluate(network, {"start": np.int32(6), "wanted": np.bool_(False)})["y"] == -1
    assert trt.compile(network)({"start": np.int32(6), "wanted": np.bool_(False)})["y"] == -1


def test_iterator_past_the_end_fails_on_the_host(network):
    x, lengths = network.add_input("x", trt.int32, (-1,)), network.add_input("lengths", trt.int32, (3,))
    outer, sums = outer_loop(network, lengths)
    element = outer.add_iterator(x).get_output(0)
    mark(network, y=stacked(outer, combine(network, element, sums), constant(network, 3)))

    fails_alike(network, "past the end of axis 0", x=np.ones(2, np.int32), lengths=np.ones(3, np.int32))


def test_profile_has_the_phases_of_the_pieces(network):
    x = network.add_input("x", trt.float32, (3,))
    rows = network.add_cast(network.add_non_zero(x).get_output(0), trt.float32).get_output(0)
    product = network.add_matrix_multiply(
        rows, trt.MatrixOperation.NONE, rows, trt.MatrixOperation.TRANSPOSE
    ).get_output(0)
    engine = trt.compile(mark(network, y=product))
    phases = engine.profile({"x": np.float32([1, 0, 2])})

    assert [*phases] == ["passes", "load", "trace", "compile", "call"]
    assert all(seconds > 0 for seconds in phases.values())


def test_pieces_are_compiled_once_for_a_shape(network):
    mark(network, y=collatz(network, network.add_input("start", trt.int32, ())))
    engine = trt.compile(network)
    engine({"start": np.int32(6)})
    runnable = engine.executable._programs.latest
    compiled = runnable.program._pieces._compiled
    before = len(compiled)
    engine({"start": np.int32(6)})
    engine({"start": np.int32(40)})

    assert len(compiled) == before
    engine({"start": np.int32(3)})
    assert len(compiled) == before + 1


def test_piece_returns_only_what_steps_that_run_read():
    network = block()
    mark(network, places=network.add_non_zero(network.outputs[0]).get_output(0))
    host = trt.compile(network).executable.latest.program
    closed = [step for step in host._steps if not isinstance(step.layer, trt.INonZeroLayer)]

    # the pass channels_last leaves transposes of all that is between the convolutions, which nothing needs
    assert [tensor.name for tensor in host._pieces.needed_later(closed)] == ["y", "z"]


def test_assertion_of_an_inner_loop_is_not_checked_after_the_last_iteration(network):
    outer, sums = outer_loop(network, network.add_input("lengths", trt.int32, (3,)))
    now, inner = counter(network, outer), counted(network, 2)
    state = inner.add_recurrence(now)
    state.set_input(1, combine(network, state.get_output(0), 1))
    network.add_assertion(combine(network, state.get_output(0), 4, Op.LESS), "small")
    made = last(inner, state.get_output(0))
    mark(network, y=stacked(outer, sums, constant(network, 3)), z=last(outer, made))

    assert agree(network, lengths=np.array([1, 2, 3], np.int32))[0]["z"] == 5


def test_shape_of_a_poisoned_tensor_is_known_on_the_host(network):
    x = network.add_input("x", trt.int32, (2,))
    loop = counted(network, 3)
    rows = stacked(loop, loop.add_iterator(x).get_output(0), constant(network, 3))
    mark(network, shape=network.add_shape(rows).get_output(0), places=network.add_non_zero(x).get_output(0))

    meant, _ = agree(network, x=np.array([0, 5], np.int32))
    assert (meant["shape"].tolist(), meant["places"].tolist()) == ([3], [[1]])


def test_pure_function_of_such_a_network_is_refused(network):
    mark(network, y=collatz(network, network.add_input("start", trt.int32, ())))
    function, weights = trt.to_jax(network)

    with pytest.raises(trt.NetworkError, match="NL501"):
        function(weights, {"start": np.int32(6)})


# ---------------------------------------------------------------------------- random networks on the host


@same_examples(2, nightly=100)
@given(random_networks(depth=2, most=10, is_risky=True))
@pytest.mark.parametrize("steps_in_a_piece", mostly_slow(1, [2, 0]))
def test_host_agrees_with_the_reference_and_fails_where_it_does(steps_in_a_piece, grown):
    grown.settings = comparison.on_the_host(steps_in_a_piece)

    comparison.agree(grown)


def test_second_call_with_the_same_shapes_infers_no_type(monkeypatch):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4,))
    places = network.add_non_zero(x).get_output(0)
    network.mark_output(network.add_cast(places, trt.float32).get_output(0))
    engine = trt.compile(network)
    engine({"x": np.float32([1, 0, 2, 0])})

    asked = []
    monkeypatch.setattr("netloop.compiler.host.compiled_pieces.fits_program", lambda *given: asked.append(given))
    (made,) = engine({"x": np.float32([0, 3, 0, 4])}).values()

    assert made.tolist() == [[1, 3]]
    assert asked == []


@pytest.fixture
def platforms(monkeypatch):
    """The platforms of the programs that are compiled from now on."""
    platforms, compile_ = set(), XlaFunction.compile

    def compile_noted(self, *arguments):
        if self._nest is not None:
            platforms.add(self._nest.platform)
        return compile_(self, *arguments)

    monkeypatch.setattr(XlaFunction, "compile", compile_noted)
    return platforms


def rows_after_a_loop(network):
    """The places of numbers above 0, and a loop whose length is their number."""
    x = network.add_input("x", trt.float32, (3,))
    places = network.add_non_zero(combine(network, x, constant(network, [0] * 3, F), Op.GREATER)).get_output(0)
    doubled = combine(network, places, places)
    loop = counted(network, 4)
    state = loop.add_recurrence(doubled)
    state.set_input(1, combine(network, state.get_output(0), doubled))
    return mark(network, y=last(loop, state.get_output(0)))


def executable(network):
    return Executable(network, replace(Recipe(), platform="gpu"))


def test_pieces_have_the_platform_of_the_engine(network, platforms):
    assert executable(rows_after_a_loop(network))({"x": F([1, 0, 2])})["y"].tolist() == [[0, 20]]
    assert platforms == {"gpu"}


def test_pieces_of_a_run_that_is_watched_have_the_platform_of_the_engine(network, platforms):
    engine, shown = executable(rows_after_a_loop(network)), []
    tensor = next(layer for layer in engine.network if layer.LABEL == "NonZero").get_output(0)
    engine.watch({"x": F([1, 0, 2])}, [tensor], lambda tensor, trips, value: shown.append(value))

    assert len(shown) == 1
    assert platforms == {"gpu"}


@pytest.mark.parametrize("is_on_host", [False, True])
def test_probes_have_the_platform_of_the_engine(network, platforms, is_on_host):
    made, x = (rows_after_a_loop(network), F([1, 0, 2])) if is_on_host else (networks.running_sum(), networks.X)
    y = made.get_output(0)

    values = record_elements(made, {y: []}, {"x": x}, None, replace(Recipe(), platform="gpu"))
    np.testing.assert_array_equal(values[y], trt.evaluate(made, {"x": x})[y.name])
    assert platforms == {"gpu"}


def test_probes_before_a_failure_have_their_values(network):
    x = network.add_input("x", trt.int32, (-1,))
    rows = network.add_non_zero(x, trt.int32).get_output(0)
    highest = network.add_reduce(rows, trt.ReduceOperation.MAX, 3, False).get_output(0)
    network.add_assertion(combine(network, highest, 2, Op.LESS), "below 2")
    double = combine(network, x, x, Op.SUM)
    late = network.add_non_zero(double, trt.int32).get_output(0)
    mark(network, y=late)

    values = record_elements(network, {rows: [], highest: []}, {"x": np.int32([1, 0, 1])}, None)
    np.testing.assert_array_equal(values[rows], [[0, 2]])
    assert values[highest] == 2
