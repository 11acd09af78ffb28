"""Rules about runs that fail for certain, or are likely to."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import numpy_type
from tests.support.examples import same_examples
from tests.support.findings import certain_errors_ignored, only
from tests.support.log import Log
from tests.support.networks import CONCATENATE, WHILE, Op, combine, constant, counted, counter, last, mark, stacked
from tests.support.strategies import Grower

ERROR, WARNING = trt.Severity.ERROR, trt.Severity.WARNING


def evaluate_anyway(network: trt.INetworkDefinition, inputs: dict[str, Any]) -> Any:
    """Run a network although ``check`` says that every run fails."""
    with certain_errors_ignored():
        return trt.evaluate(network, inputs, max_trips=50)


def rows_of(network: trt.INetworkDefinition, loop: trt.ILoop, length: Any, kind: trt.LoopOutput = CONCATENATE) -> Any:
    loop.name = "L"
    output = loop.add_loop_output(counter(network, loop), kind)
    output.name = "rows"
    output.set_input(1, length if isinstance(length, ITensor) else constant(network, length, np.int64))
    return output


def iterator_of(network: trt.INetworkDefinition, loop: trt.ILoop, length: int, reverse: bool = False) -> Any:
    loop.name = "L"
    iterator = loop.add_iterator(network.add_input("x", trt.int32, (length,)), 0, reverse)
    iterator.name = "element"
    return iterator


def choose(network: trt.INetworkDefinition, made: ITensor, other: ITensor) -> ITensor:
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("flag", trt.bool, ()))
    return choice.add_output(choice.add_input(made).get_output(0), other).get_output(0)


def fails_always(network: trt.INetworkDefinition, at: Any, **inputs: Any) -> trt.Finding:
    found = only(network, "NL221", at)
    assert found.severity is ERROR
    with pytest.raises(trt.ExecutionError, match=at.name):
        evaluate_anyway(network, inputs)
    return found


def fails_in_one_branch(network: trt.INetworkDefinition, at: Any, **inputs: Any) -> None:
    only(network, "NL222", at)
    engine = trt.compile(network)
    engine({**inputs, "flag": np.bool_(False)})
    with pytest.raises(trt.ExecutionError, match=f"'{at.name}' does not hold"):
        engine({**inputs, "flag": np.bool_(True)})


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize("kind", [CONCATENATE, trt.LoopOutput.REVERSE])
def test_length_below_the_count_of_an_output_that_is_needed(network, kind):
    rows = rows_of(network, counted(network, 5), 4, kind)
    mark(network, y=combine(network, rows.get_output(0), 1))

    found = fails_always(network, rows)
    assert found.what == "'rows' has room for 4 elements, and 'L' runs 5 iterations"
    assert found.fix == "give it a length of 5"


@pytest.mark.parametrize(
    ("length", "what"),
    [
        (-1, "the length of 'rows' is -1, but cannot be negative"),
        (1 << 60, f"'rows' would be int32[{1 << 60}]"),
    ],
)
def test_length_that_no_output_can_have(network, length, what):
    rows = rows_of(network, counted(network, network.add_input("n", trt.int32, ())), length)
    mark(network, y=rows.get_output(0))

    assert fails_always(network, rows, n=np.int32(0)).what == what


@pytest.mark.parametrize("reverse", [False, True])
def test_count_past_the_axis_of_an_iterator_that_is_stacked(network, reverse):
    loop = counted(network, 4)
    iterator = iterator_of(network, loop, 3, reverse)
    mark(network, y=stacked(loop, iterator.get_output(0), constant(network, 4, np.int32)))

    found = fails_always(network, iterator, x=np.zeros(3, np.int32))
    assert found.what == "'element' iterates over an axis of 3 elements, and 'L' runs 4 iterations"
    assert found.fix == "limit 'L' to 3 iterations"


def test_count_past_the_axis_of_an_iterator_that_a_last_value_needs(network):
    loop = counted(network, 4)
    iterator = iterator_of(network, loop, 3)
    total = loop.add_recurrence(constant(network, 0, np.int32))
    total.set_input(1, combine(network, total.get_output(0), iterator.get_output(0)))
    mark(network, y=last(loop, total.get_output(0)))

    fails_always(network, iterator, x=np.zeros(3, np.int32))


@pytest.mark.parametrize("reverse", [False, True])
def test_last_value_of_an_iterator_is_past_its_axis(network, reverse):
    loop = counted(network, 3)
    iterator = iterator_of(network, loop, 3, reverse)
    mark(network, y=last(loop, iterator.get_output(0)))

    found = [finding for finding in trt.check(network) if finding.severity is ERROR]
    assert [(finding.code, finding.at) for finding in found] == [("NL221", iterator)]
    assert found[0].what == "'element' is read past the end of its axis of 3 elements, after the last iteration"
    with pytest.raises(trt.ExecutionError):
        evaluate_anyway(network, {"x": np.zeros(3, np.int32)})


@pytest.mark.parametrize(("count", "code"), [(2, "NL221"), (0, None)])
def test_error_in_an_inner_loop_is_certain_if_the_outer_one_runs(network, count, code):
    outer = counted(network, count)
    inner = counted(network, combine(network, combine(network, counter(network, outer), 0, Op.PROD), 2))
    rows = rows_of(network, inner, -1)
    mark(network, y=stacked(outer, rows.get_output(0), constant(network, 2, np.int32)))

    assert [finding.code for finding in trt.check(network) if finding.at is rows] == ([code] if code else [])


def test_error_of_a_trip_limit_or_a_condition_is_certain(network):
    rows = rows_of(network, counted(network, 3), 2)
    total = network.add_reduce(rows.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    loop = counted(network, total)
    mark(network, y=last(loop, counter(network, loop)))

    fails_always(network, rows)


def asserted(network, condition):
    layer = network.add_assertion(condition, "the sizes agree")
    layer.name = "sizes"
    mark(network, y=constant(network, 1, np.int32))
    return layer


def lengths_of(network, shape):
    return network.add_shape(network.add_input("x", trt.float32, shape)).get_output(0)


@pytest.mark.parametrize("shape", [(2, 3), (-1, 3)], ids=["known", "known in part"])
def test_assertion_that_never_holds_is_an_error(network, shape):
    """TensorRT rejects a network with an element that is false when it is built."""
    condition = combine(network, lengths_of(network, shape), constant(network, [2, 4], np.int64), Op.EQUAL)

    found = fails_always(network, asserted(network, condition), x=np.zeros((2, 3), np.float32))
    assert found.what == "the assertion 'sizes' never holds: the sizes agree"


def test_assertion_of_a_constant_that_is_false_is_an_error(network):
    fails_always(network, asserted(network, constant(network, False, np.bool_)))


def test_assertion_that_a_call_may_meet_is_none(network):
    condition = combine(network, lengths_of(network, (-1, 3)), constant(network, [2, 3], np.int64), Op.EQUAL)
    asserted(network, condition)

    assert trt.check(network) == []
    with pytest.raises(trt.ExecutionError, match="'sizes' does not hold"):
        trt.compile(network)({"x": np.zeros((1, 3), np.float32)})


def test_assertion_about_weights_is_none_until_the_run(network):
    asserted(network, combine(network, constant(network, 1.0, np.float32), np.float32(2), Op.EQUAL))

    assert trt.check(network) == []


# ---------------------------------------------------------------------------- warnings


@pytest.mark.parametrize("is_shape_in_branch", [False, True])
def test_assertion_in_a_branch_that_never_holds_is_a_warning(network, is_shape_in_branch):
    conditional, x = network.add_if_conditional(), network.add_input("x", trt.float32, (2, 3))
    conditional.set_condition(network.add_input("flag", trt.bool, ()))

    def in_branch(tensor):
        return conditional.add_input(tensor).get_output(0)

    def shape_of(tensor):
        return network.add_shape(tensor).get_output(0)

    lengths = shape_of(in_branch(x)) if is_shape_in_branch else in_branch(shape_of(x))
    layer = asserted(network, combine(network, lengths, constant(network, [2, 4], np.int64), Op.EQUAL))
    network.mark_output(conditional.add_output(lengths, constant(network, [7, 8], np.int64)).get_output(0))

    fails_in_one_branch(network, layer, x=np.zeros((2, 3), np.float32))


def test_assertion_of_what_only_a_branch_computes_is_a_warning(network):
    """Also if it reads no input of the conditional: a layer that only one branch reads is in that branch."""
    total = combine(network, lengths_of(network, (2, 3)), constant(network, [1, 1], np.int64))
    layer = asserted(network, combine(network, total, constant(network, [3, 5], np.int64), Op.EQUAL))
    conditional = network.add_if_conditional()
    conditional.set_condition(network.add_input("flag", trt.bool, ()))
    network.mark_output(conditional.add_output(total, constant(network, [7, 8], np.int64)).get_output(0))

    fails_in_one_branch(network, layer, x=np.zeros((2, 3), np.float32))


def test_error_in_a_branch_is_a_warning(network):
    rows = rows_of(network, counted(network, 3), 2)
    mark(network, y=choose(network, rows.get_output(0), constant(network, [7, 8], np.int32)))

    assert only(network, "NL222", rows).severity is WARNING
    assert trt.compile(network)({"flag": np.bool_(False)})["y"].tolist() == [7, 8]
    with pytest.raises(trt.ExecutionError, match="'rows' has room for 2 elements"):
        trt.compile(network)({"flag": np.bool_(True)})


def test_error_that_a_while_may_prevent_is_a_warning(network):
    loop = counted(network, 5)
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, network.add_input("n", trt.int32, ()), Op.LESS), WHILE)
    rows = rows_of(network, loop, 4)
    mark(network, y=rows.get_output(0))

    found = only(network, "NL222", rows)
    assert found.what == "'rows' has room for 4 elements, and 'L' may run 5 iterations"
    assert trt.compile(network)({"n": np.int32(4)})["y"].tolist() == [0, 1, 2, 3]
    with pytest.raises(trt.ExecutionError, match="'rows' has room for 4 elements"):
        trt.compile(network)({"n": np.int32(5)})


def test_error_in_a_loop_that_may_run_no_iteration_is_a_warning(network):
    outer = counted(network, network.add_input("n", trt.int32, ()))
    inner = counted(network, combine(network, combine(network, counter(network, outer), 0, Op.PROD), 2))
    rows = rows_of(network, inner, -1)
    summed = network.add_reduce(rows.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    mark(network, y=stacked(outer, summed, constant(network, 1, np.int32)))

    assert [finding.code for finding in trt.check(network) if finding.at is rows] == ["NL222"]
    assert trt.evaluate(network, {"n": np.int32(0)})["y"].tolist() == [0]


def test_error_that_only_an_assertion_needs_is_a_warning(network):
    rows = rows_of(network, counted(network, 3), 2)
    total = network.add_reduce(rows.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    network.add_assertion(combine(network, total, 100, Op.LESS), "the sum is below 100")
    mark(network, y=constant(network, 1, np.int32))

    only(network, "NL222", rows)


def test_error_that_follows_from_weights_is_none_until_the_run(network):
    """Refitted weights may change the count."""
    count = network.add_cast(constant(network, 3, np.float32), trt.int32).get_output(0)
    rows = rows_of(network, counted(network, count), 2)
    mark(network, y=rows.get_output(0))

    assert {finding.code for finding in trt.check(network)} <= {"NL215"}
    for run in (trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)):
        with pytest.raises(trt.ExecutionError, match="'rows' has room for 2 elements"):
            run(network, {})


def test_error_for_the_inputs_of_a_call_is_an_error_of_the_run(network):
    """Passes rewrite the network for the shapes of the call, in which the error is certain."""
    loop = counted(network, 4)
    iterator = iterator_of(network, loop, -1)
    total = loop.add_recurrence(constant(network, 0, np.int32))
    total.set_input(1, combine(network, total.get_output(0), iterator.get_output(0)))
    rows = rows_of(network, loop, network.add_input("n", trt.int32, ()))
    mark(network, y=last(loop, total.get_output(0)), z=rows.get_output(0))
    engine = trt.compile(network)

    assert trt.check(network) == []
    for length, n in ((3, 4), (4, 3), (4, -1)):
        for run in (lambda inputs: trt.evaluate(network, inputs), engine):
            with pytest.raises(trt.ExecutionError, match="'element' reads past" if length == 3 else "'rows'"):
                run({"x": np.zeros(length, np.int32), "n": np.int32(n)})


def test_warning_is_logged_once_and_stops_no_build():
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    rows = rows_of(network, counted(network, 3), 2)
    mark(network, y=choose(network, rows.get_output(0), constant(network, [7, 8], np.int32)))

    assert builder.build_engine_with_config(network, builder.create_builder_config()) is not None
    assert builder.is_network_supported(network, builder.create_builder_config())
    assert trt.compile(network)({"flag": np.bool_(False)})["y"].tolist() == [7, 8]
    lines = [text for severity, text in log.lines if severity is trt.ILogger.WARNING]
    assert [line.splitlines()[0] for line in lines] == [
        "NL222 (warning): 'rows' has room for 2 elements, and 'L' runs 3 iterations"
    ]


def test_warning_stays_one_for_tensorrt(network):
    rows = rows_of(network, counted(network, 3), 2)
    mark(network, y=choose(network, rows.get_output(0), constant(network, [7, 8], np.int32)))

    assert [finding.severity for finding in trt.check(network, target="tensorrt")] == [WARNING]
    assert trt.check(network)[0].as_json()["severity"] == "warning"


# ---------------------------------------------------------------------------- random networks


class Counting(Grower):
    """Grows networks whose counts and lengths are known, so that many of them fail in every run."""

    limit_kinds = ["count", "count", "count", "both"]

    def number(self, pool: list[ITensor], wanted: int) -> ITensor:
        return self.fixed(np.int32(wanted))

    def assertion(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        """The number of an assertion that never holds or always does, for other layers and branches to read."""
        length = super().number(pool, self.between(1, 3))
        number = self.combine(length, self.fixed(numpy_type(length.dtype).type(1)), Op.SUM)
        limit = self.fixed(numpy_type(length.dtype).type(self.between(2, 5)))
        self.network.add_assertion(self.combine(number, limit, Op.LESS), "it is known whether it holds")
        return [number]


def check_certain_error(seed: int, depth: int, most: int) -> None:
    """If ``check`` says that every run fails, then a run on random inputs does."""
    grown = Counting(Random(seed), depth, most, is_risky=True).grow()
    found = [finding.code for finding in trt.check(grown.network) if finding.severity is ERROR]
    assume("NL221" in found and "NL211" not in found)
    with pytest.raises(trt.ExecutionError):
        evaluate_anyway(grown.network, grown.inputs)


NETWORKS = {"seed": st.integers(0, 1 << 32), "depth": st.integers(0, 3), "most": st.integers(0, 40)}


@same_examples(3)
@given(**NETWORKS)
def test_no_network_that_runs_has_a_certain_error(seed, depth, most):
    check_certain_error(seed, depth, most)


@pytest.mark.slow
@settings(max_examples=60)
@given(**NETWORKS)
def test_no_network_that_runs_has_a_certain_error_at_length(seed, depth, most):
    check_certain_error(seed, depth, most)
