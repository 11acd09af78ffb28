"""What a loop appends to a list in each iteration becomes a stacked output."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes.growing_lists import MOST_ROWS, grow_tensors
from netloop.compiler.passes.rewriter import Rewriter
from netloop.compiler.xla_compilation import XlaFunction
from tests.support.examples import mostly_slow
from tests.support.networks import WHILE, Op, combine, constant, counted, counter, last, mark, stacked

X = np.float32([[1, 2, 3], [4, 5, 6]])
COUNTS = [-3, 0, 1, 2, 8, 9, 40]


def doubled(network, loop):
    """A state [2, 3] that is doubled in each iteration."""
    state = loop.add_recurrence(network.add_input("x", trt.float32, (2, 3)))
    state.set_input(1, combine(network, state.get_output(0), 2.0, Op.PROD))
    return state.get_output(0)


def appending(network, loop, tensor, first=None):
    """A sequence, empty at first or another one, to which each iteration appends a tensor."""
    listed = loop.add_recurrence(network.add_sequence([], trt.float32).get_output(0) if first is None else first)
    listed.keeps_shape = False
    listed.set_input(1, network.add_sequence_insert(listed.get_output(0), tensor).get_output(0))
    return listed.get_output(0)


def concatenating(network, loop, tensor, first, axis):
    """A tensor to which each iteration concatenates another one."""
    grown = loop.add_recurrence(first)
    grown.keeps_shape = False
    both = network.add_concatenation([grown.get_output(0), tensor])
    both.axis = axis
    grown.set_input(1, both.get_output(0))
    return grown.get_output(0)


def sequences(network):
    """y: the states of a loop with a COUNT n, as a sequence; z: the number of them."""
    loop = counted(network, network.add_input("n", trt.int32, ()))
    found = last(loop, appending(network, loop, doubled(network, loop)))
    return mark(network, y=found, z=network.add_sequence_length(found).get_output(0))


def tensors(network, axis=0, rows=1):
    """y: the first rows of ones, then the states of a loop with a COUNT n, along an axis."""
    shape = tuple(rows if number == axis % 2 else length for number, length in enumerate((2, 3)))
    loop = counted(network, network.add_input("n", trt.int32, ()))
    first = constant(network, np.ones(shape, np.float32))
    return mark(network, y=last(loop, concatenating(network, loop, doubled(network, loop), first, axis)))


def notes(engine):
    return [note for note in engine.notes if note.by in ("growing_lists", "growing_states")]


def same_as_the_reference(network, inputs, is_stacked=True):
    """Compare an engine with the reference; return the engine."""
    engine = trt.compile(network)
    found, wanted = engine(inputs), trt.evaluate(network, inputs)
    for name, array in wanted.items():
        assert type(found[name]) is type(array) or not isinstance(array, list)
        pairs = zip(found[name], array, strict=True) if isinstance(array, list) else [(found[name], array)]
        for got, expected in pairs:
            np.testing.assert_array_equal(np.asarray(got), expected)
    assert bool(notes(engine)) == is_stacked
    return engine


@pytest.mark.parametrize("n", COUNTS)
def test_sequence_has_an_element_for_each_iteration(network, n):
    same_as_the_reference(sequences(network), {"x": X, "n": np.int32(n)})


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize(("axis", "rows"), [(0, 0), (0, 2), (1, 0), (1, 1), (-1, 1)])
def test_tensor_grows_along_any_axis(network, n, axis, rows):
    same_as_the_reference(tensors(network, axis, rows), {"x": X, "n": np.int32(n)})


def test_loop_is_compiled_once_for_all_counts_up_to_a_power_of_two(network, monkeypatch):
    engine, made = trt.compile(tensors(network)), []
    compiled = XlaFunction.__init__
    monkeypatch.setattr(
        XlaFunction, "__init__", lambda self, *given, **named: made.append(given) or compiled(self, *given, **named)
    )
    for n in (5, 3, 8, 1, 7):
        engine({"x": X, "n": np.int32(n)})
    few = len(made)
    engine({"x": X, "n": np.int32(9)})

    assert few == len(made) - 1
    assert {strategy.kind.value for strategy in engine.loop_strategies.values()} == {"while"}


@pytest.mark.parametrize("least", [0, 3, 100])
def test_loop_that_a_while_ends_early_has_as_many_elements_as_iterations(network, least):
    loop = counted(network, 20)
    now = counter(network, loop)
    loop.add_trip_limit(
        network.add_elementwise(now, network.add_input("m", trt.int32, ()), Op.LESS).get_output(0), WHILE
    )
    state = doubled(network, loop)
    mark(network, y=last(loop, appending(network, loop, state)))

    engine = same_as_the_reference(network, {"x": X, "m": np.int32(least)})
    assert len(engine({"x": X, "m": np.int32(least)})["y"]) == min(least, 20)


def test_list_of_an_inner_loop_is_one_of_each_outer_iteration(network):
    outer = counted(network, 3)
    inner = counted(network, combine(network, counter(network, outer), 1))
    grown = last(inner, concatenating(network, inner, doubled(network, inner), constant(network, X), 0))
    total = network.add_reduce(grown, trt.ReduceOperation.SUM, 0b11, False).get_output(0)

    same_as_the_reference(mark(network, y=stacked(outer, total, constant(network, 3, np.int32))), {"x": X})


@pytest.mark.parametrize(("n", "fails"), [(3, False), (4, True)])
def test_element_that_cannot_be_computed_fails_the_list(network, n, fails):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    row = loop.add_iterator(network.add_input("rows", trt.float32, (3, 2))).get_output(0)
    mark(network, y=last(loop, appending(network, loop, row)))
    inputs = {"rows": np.ones((3, 2), np.float32), "n": np.int32(n)}

    for run in (trt.compile(network), lambda given: trt.evaluate(network, given)):
        if fails:
            with pytest.raises(trt.ExecutionError, match="past the end of axis 0"):
                run(inputs)
        else:
            assert len(run(inputs)["y"]) == 3


def test_empty_list_has_no_concatenation(network):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    found = last(loop, appending(network, loop, doubled(network, loop)))
    mark(network, y=network.add_sequence_concatenation(found, 0).get_output(0))
    engine = trt.compile(network)

    assert np.asarray(engine({"x": X, "n": np.int32(2)})["y"]).shape == (4, 3)
    with pytest.raises(trt.ExecutionError, match="the sequence is empty"):
        engine({"x": X, "n": np.int32(0)})


def appending_some(network, loop, tensor, flag, branch=0, is_input=False, first=None):
    """A sequence to which an iteration appends a tensor if a flag is set; not set for branch 1."""
    listed = loop.add_recurrence(network.add_sequence([], trt.float32).get_output(0) if first is None else first)
    listed.keeps_shape = False
    choice = network.add_if_conditional()
    choice.set_condition(flag)
    before = listed.get_output(0)
    inside = choice.add_input(before).get_output(0) if is_input else before
    pair = network.add_sequence_insert(inside, tensor).get_output(0), inside
    listed.set_input(1, choice.add_output(*pair[:: 1 - 2 * branch]).get_output(0))
    return before


def some_iterations(network, branch=0, is_input=False, is_open=False):
    """y: the states of the iterations whose flag is set, of as many as there are flags; z: joined along axis 1."""
    flags = network.add_input("flags", trt.bool, (-1,))
    length = network.add_gather(network.add_shape(flags).get_output(0), constant(network, 0), 0).get_output(0)
    loop = network.add_loop() if is_open else counted(network, length)
    if is_open:
        loop.add_trip_limit(combine(network, counter(network, loop, 0, np.int64), length, Op.LESS), WHILE)
    flag = network.add_gather(flags, counter(network, loop), 0).get_output(0)
    found = last(loop, appending_some(network, loop, doubled(network, loop), flag, branch, is_input))
    return mark(network, y=found, z=network.add_sequence_concatenation(found, 1).get_output(0))


@pytest.mark.parametrize(("branch", "is_input"), [(0, False), (1, True)])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("flags", [[1, 0, 1, 0, 0, 1, 0, 1, 0, 0], [0, 1]])
def test_list_has_the_elements_of_the_iterations_that_append_one(network, branch, is_input, is_open, flags):
    flags = np.array(flags, bool)
    engine = same_as_the_reference(some_iterations(network, branch, is_input, is_open), {"x": X, "flags": flags})

    numbers = [2.0**trip for trip, flag in enumerate(flags) if flag != bool(branch)]
    z = np.asarray(engine({"x": X, "flags": flags})["z"])
    np.testing.assert_array_equal(z, np.concatenate([X * number for number in numbers], 1))
    assert {strategy.kind.value for strategy in engine.loop_strategies.values()} <= {"scan", "while"}


def test_list_to_which_no_iteration_appends_is_empty(network):
    engine = trt.compile(some_iterations(network))

    with pytest.raises(trt.ExecutionError, match="the sequence is empty"):
        engine({"x": X, "flags": np.zeros(3, bool)})


@pytest.mark.parametrize(("axis", "new_axis"), [(0, False), (1, False), (-1, False), (0, True), (1, True), (-1, True)])
def test_list_of_a_known_count_is_joined_in_the_program_of_its_loop(network, axis, new_axis):
    loop = counted(network, 5)
    found = last(loop, appending(network, loop, doubled(network, loop)))
    layer = network.add_sequence_concatenation(found, axis)
    layer.new_axis = new_axis
    engine = same_as_the_reference(mark(network, y=layer.get_output(0)), {"x": X})

    rows = [X * 2.0**trip for trip in range(5)]
    joined = np.stack(rows, axis) if new_axis else np.concatenate(rows, axis)
    np.testing.assert_array_equal(np.asarray(engine({"x": X})["y"]), joined)
    assert engine.latest.function is not None


def longer_lists(network, loops, tensors):
    """y: a list that begins with some tensors, to which loops of several kinds append; z: joined along axis 1."""
    listed = network.add_sequence([constant(network, X + n) for n in range(tensors)], trt.float32).get_output(0)
    if tensors:
        listed = network.add_sequence_insert(listed, constant(network, X - 1)).get_output(0)
    state = network.add_input("x", trt.float32, (2, 3))
    for number, kind in enumerate(loops):
        count = 2 if kind == "known" else network.add_input(f"n{number}", trt.int32, ())
        loop = network.add_loop() if kind == "while" else counted(network, count)
        loop.name = f"loop {number}"
        now = counter(network, loop)
        if kind == "while":
            loop.add_trip_limit(combine(network, now, count, Op.LESS), WHILE)
        carried = loop.add_recurrence(state)
        carried.set_input(1, combine(network, carried.get_output(0), 2.0, Op.PROD))
        row = carried.get_output(0)
        is_odd = combine(network, combine(network, now, combine(network, now, 2, Op.FLOOR_DIV), Op.SUB), 0, Op.GREATER)
        listed = last(
            loop,
            appending_some(network, loop, row, is_odd, first=listed)
            if kind == "some"
            else appending(network, loop, row, listed),
        )
        state = last(loop, row)
    return mark(network, y=listed, z=network.add_sequence_concatenation(listed, 1).get_output(0))


LOOPS = [
    ["known"], ["count"], ["while"], ["some"], ["known", "known"], ["count", "known"], ["known", "count"],
    ["count", "count"], ["some", "count"], ["count", "some"], ["while", "count"], ["count", "while"],
    ["some", "while", "known"],
]  # fmt: skip


@pytest.mark.parametrize("tensors", [0, 2])
@pytest.mark.parametrize("loops", mostly_slow(6, LOOPS), ids="-".join)
def test_list_that_begins_with_tensors_or_that_several_loops_append_to_is_stacked(network, loops, tensors):
    engine = trt.compile(longer_lists(network, loops, tensors))
    for counts in ((3, 9, 1), (1, 0, 2), (-1, -2, 3)) if tensors else ((3, 9, 1), (2, 3, 2)):
        numbers = {f"n{place}": np.int32(n) for place, n in enumerate(counts) if loops[place : place + 1] != ["known"]}
        inputs = {"x": X, **{name: n for name, n in numbers.items() if int(name[1:]) < len(loops)}}
        found, wanted = engine(inputs), trt.evaluate(network, inputs)
        np.testing.assert_array_equal(np.asarray(found["y"]), np.asarray(wanted["y"]))
        np.testing.assert_array_equal(np.asarray(found["z"]), wanted["z"])

    assert len(notes(engine)) >= len(loops)
    assert "host" not in {strategy.kind.value for strategy in engine.loop_strategies.values()}


def test_states_that_pass_through_many_loops_take_no_time(network):
    state, most = network.add_input("x", trt.float32, (2,)), network.add_input("m", trt.int32, ())
    for _ in range(1200):
        loop = network.add_loop()
        loop.add_trip_limit(combine(network, counter(network, loop), most, Op.LESS), WHILE)
        carried = loop.add_recurrence(state)
        carried.set_input(1, combine(network, carried.get_output(0), 1.0))
        state = last(loop, carried.get_output(0))

    assert not grow_tensors(Rewriter(mark(network, y=state), network.types))


@pytest.mark.parametrize(("loops", "length"), [(["known", "known"], 7), (["known", "count"], 10)], ids=str)
def test_pure_function_has_a_list_that_two_loops_append_to(network, loops, length):
    longer_lists(network, loops, 2)
    inputs = {"x": X} | ({} if "count" not in loops else {"n1": np.int32(5)})
    function, weights = trt.to_jax(network, bound={"loop 1": 10})

    joined = np.asarray(function(weights, inputs)["z"])[:, : 3 * length]
    np.testing.assert_array_equal(joined, trt.evaluate(network, inputs)["z"])


@pytest.mark.parametrize("n", [0, 1, 6])
def test_branches_that_append_tensors_of_one_shape_make_one_list(network, n):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    listed = loop.add_recurrence(network.add_sequence([], trt.float32).get_output(0))
    listed.keeps_shape = False
    state, before, choice = doubled(network, loop), listed.get_output(0), network.add_if_conditional()
    choice.set_condition(combine(network, counter(network, loop), 2, Op.LESS))
    pair = (network.add_sequence_insert(before, x).get_output(0) for x in (state, combine(network, state, 5.0)))
    listed.set_input(1, choice.add_output(*pair).get_output(0))
    inputs = {"x": X, "n": np.int32(n)}
    engine = same_as_the_reference(mark(network, y=last(loop, before)), inputs)

    for trip, row in enumerate(engine(inputs)["y"]):
        np.testing.assert_array_equal(np.asarray(row), X * 2.0**trip + (0 if trip < 2 else 5))
    assert {strategy.kind.value for strategy in engine.loop_strategies.values()} <= {"scan", "while"}


# ---------------------------------------------------------------------------- negative cases


def also_read_in_the_branch(network):
    loop = counted(network, 3)
    flag = combine(network, counter(network, loop), 1, Op.LESS)
    listed = appending_some(network, loop, doubled(network, loop), flag)
    length = network.add_sequence_length(listed).get_output(0)
    return mark(network, y=last(loop, listed), z=stacked(loop, length, constant(network, 3, np.int32)))


def appended_in_both_branches(network):
    loop = counted(network, 3)
    listed = loop.add_recurrence(network.add_sequence([], trt.float32).get_output(0))
    listed.keeps_shape = False
    state, choice = doubled(network, loop), network.add_if_conditional()
    choice.set_condition(combine(network, counter(network, loop), 1, Op.LESS))
    once = network.add_sequence_insert(listed.get_output(0), state).get_output(0)
    twice = network.add_sequence_insert(once, state).get_output(0)
    listed.set_input(1, choice.add_output(once, twice).get_output(0))
    return mark(network, y=last(loop, listed.get_output(0)))


def read_in_the_loop(network):
    loop = counted(network, 3)
    listed = appending(network, loop, doubled(network, loop))
    length = network.add_sequence_length(listed).get_output(0)
    return mark(network, y=last(loop, listed), z=stacked(loop, length, constant(network, 3, np.int32)))


def inserted_at_the_front(network):
    loop = counted(network, 3)
    listed = loop.add_recurrence(network.add_sequence([], trt.float32).get_output(0))
    listed.keeps_shape = False
    state, front = doubled(network, loop), constant(network, 0, np.int64)
    listed.set_input(1, network.add_sequence_insert(listed.get_output(0), state, front).get_output(0))
    return mark(network, y=last(loop, listed.get_output(0)))


def begun_with_another_shape(network):
    loop, first = counted(network, 3), network.add_sequence([constant(network, X[:1])])
    return mark(network, y=last(loop, appending(network, loop, doubled(network, loop), first.get_output(0))))


def begun_with_what_is_erased(network):
    loop, first = counted(network, 3), network.add_sequence([constant(network, X), constant(network, X)])
    erased = network.add_sequence_erase(first.get_output(0)).get_output(0)
    return mark(network, y=last(loop, appending(network, loop, doubled(network, loop), erased)))


def concatenated_to_the_front(network):
    loop = counted(network, 3)
    grown = loop.add_recurrence(constant(network, X))
    grown.keeps_shape = False
    both = network.add_concatenation([doubled(network, loop), grown.get_output(0)])
    grown.set_input(1, both.get_output(0))
    return mark(network, y=last(loop, grown.get_output(0)))


def ended_by_a_while_alone(network):
    loop = network.add_loop()
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, 4, Op.LESS), WHILE)
    return mark(network, y=last(loop, appending(network, loop, doubled(network, loop))))


def ended_long_before_its_count(network):
    loop = counted(network, MOST_ROWS + 1)
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, 4, Op.LESS), WHILE)
    return mark(network, y=last(loop, appending(network, loop, doubled(network, loop))))


@pytest.mark.parametrize(
    "make",
    [
        read_in_the_loop, inserted_at_the_front, begun_with_another_shape, begun_with_what_is_erased,
        also_read_in_the_branch, appended_in_both_branches,
    ],
)  # fmt: skip
def test_other_lists_stay_as_they_are(network, make):
    same_as_the_reference(make(network), {"x": X}, is_stacked=False)


@pytest.mark.parametrize("make", [concatenated_to_the_front, ended_by_a_while_alone, ended_long_before_its_count])
def test_list_that_is_not_stacked_is_a_buffer(network, make):
    engine = same_as_the_reference(make(network), {"x": X})

    assert {note.by for note in engine.notes} == {"growing_states"}


def test_pass_can_be_left_out(network):
    engine = trt.compile(sequences(network), passes=set(trt.PASSES) - {"growing_lists"})
    engine({"x": X, "n": np.int32(2)})

    assert not notes(engine)
    assert {strategy.kind.value for strategy in engine.loop_strategies.values()} == {"host"}
