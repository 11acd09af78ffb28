"""Loop, Scan and If against onnxruntime."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop
from netloop import ModelError
from tests.support.onnx_models import check_like_onnxruntime, engine_of, model

F = np.float32
X = F([1, 2])
ON = "true = Constant <value = bool {1}> ()"
LARGEST = 2**63 - 1


def graph(body, inputs="float[2] x", outputs="float[2] y"):
    return f"g ({inputs}) => ({outputs}) {{ {body} }}"


def looped(limits, body, gives="y", before=ON, **declared):
    """A model of one loop, which carries ``v`` and outputs its last value, and optionally rows.

    Args:
        limits: the trip count and the condition, as the node has them.
        body: the nodes of the body; it gives ``again`` and ``next``, and ``row`` if there is a second output.
        gives: the outputs of the node.
        before: the nodes before it.
        declared: the inputs and outputs of the graph.
    """
    given = "again, next, row" if "," in gives else "again, next"
    node = f"{gives} = Loop ({limits}, x) < body = trip (i, go, v) => ({given}) {{ {body} }} >"
    return graph(f"{before} {node}", **declared)


def number(value):
    return f"most = Constant <value_int = {value}> ()"


ROWS = {"outputs": "float[2] y, float[n, 2] rows"}
ADD = "again = Identity (go) next = Add (v, x)"
LESS = """
next = Add (v, x)
total = ReduceSum <keepdims = 0> (next)
again = Less (total, limit)
row = Identity (v)
"""
LIMITED = {"inputs": "float[2] x, float limit", **ROWS}


def loop_strategies(engine):
    return [strategy.name for strategy in engine.loop_strategies.values()]


# ---------------------------------------------------------------------------- how loops end


@pytest.mark.parametrize("trips", [-3, 0, 1, 5])
def test_loop_of_a_known_count_is_a_scan(trips):
    body = "again = Identity (go) next = Add (v, x) number = Cast <to = 1> (i) row = Mul (next, number)"
    text = looped("most, true", body, "y, rows", before=ON + number(trips), **ROWS)

    # onnxruntime takes dims from declared types if there is no iteration, so the body is typed
    typed = text.replace("(i, go, v)", "(int64 i, bool go, float[2] v)")
    typed = typed.replace("(again, next, row)", "(bool again, float[2] next, float[2] row)")
    engine = check_like_onnxruntime(typed, x=X)
    assert loop_strategies(engine) == ["scan"]
    assert engine({"x": X})["rows"].tolist() == engine_of(text)({"x": X})["rows"].tolist()


@pytest.mark.parametrize("trips", [0, 3])
def test_count_may_be_an_input(trips):
    text = looped("most, true", ADD + " row = Identity (v)", "y, rows", inputs="float[2] x, int64 most", **ROWS)

    found = engine_of(text)({"x": X, "most": np.int64(trips)})

    assert found["y"].tolist() == [1 + trips, 2 + 2 * trips]
    assert found["rows"].tolist() == [[1 + n, 2 + 2 * n] for n in range(trips)]


@pytest.mark.parametrize(("limit", "trips"), [(-1, 1), (4, 1), (11, 3), (1000, 12)])
@pytest.mark.parametrize("most", [12, LARGEST])
def test_loop_that_ends_early_has_a_row_for_each_iteration_it_had(limit, trips, most):
    if most == LARGEST and limit == 1000:
        trips = 333  # the total goes up by 3, from 3
    text = looped("most, true", LESS, "y, rows", before=ON + number(most), **LIMITED)

    found = engine_of(text)({"x": X, "limit": F(limit)})

    assert found["y"].tolist() == [1 + trips, 2 + 2 * trips]
    assert found["rows"].tolist() == [[1 + n, 2 + 2 * n] for n in range(trips)]


@pytest.mark.parametrize("most", [2**40, 2**62, LARGEST])
def test_rows_for_a_trip_count_of_the_call_must_fit_into_a_tensor(most):
    declared = {**LIMITED, "inputs": "float[2] x, float limit, int64 most"}
    network = netloop.onnx.load(model(looped("most, true", LESS, "y, rows", **declared)))
    given = {"x": X, "limit": F(4), "most": np.int64(most)}
    for run in (netloop.compile(network), lambda inputs: netloop.evaluate(network, inputs)):
        with pytest.raises(netloop.ExecutionError, match=rf"NL601: .* would be float32\[{most},2\]"):
            run(given)
        assert np.asarray(run({**given, "most": np.int64(9)})["rows"]).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("most", "body", "codes"),
    [
        (None, LESS, set()),
        (LARGEST, LESS, set()),
        (5, LESS, set()),
        (5, ADD + " row = Identity (v)", set()),
        # it goes on until no tensor can hold its rows
        (LARGEST, ADD + " row = Identity (v)", {"NL221"}),
    ],
)
def test_loop_is_said_to_fail_if_it_always_does(most, body, codes):
    limits, before = (", true", ON) if most is None else ("most, true", ON + number(most))

    found = netloop.check(netloop.onnx.load(model(looped(limits, body, "y, rows", before=before, **LIMITED))))

    assert {finding.code for finding in found if finding.code in ("NL221", "NL222")} == codes


def test_loop_with_a_condition_alone_goes_on_while_it_holds():
    text = looped(", true", LESS, "y, rows", **LIMITED)

    engine = engine_of(text)

    assert engine({"x": X, "limit": F(11)})["rows"].tolist() == [[1, 2], [2, 4], [3, 6]]


def test_loop_whose_rows_nobody_takes_counts_no_iterations():
    text = looped(", true", LESS, "y", inputs="float[2] x, float limit").replace("row = Identity (v)", "")

    engine = check_like_onnxruntime(
        text.replace("(i, go, v) => (again, next)", "(int64 i, bool go, float[2] v) => (bool again, float[2] next)"),
        x=X,
        limit=F(11),
    )

    assert loop_strategies(engine) == ["while"]


def test_condition_that_is_false_at_first_allows_no_iteration():
    text = looped("most, start", ADD, inputs="float[2] x, bool start", before=number(3))

    assert engine_of(text)({"x": X, "start": np.bool_(False)})["y"].tolist() == [1, 2]
    assert engine_of(text)({"x": X, "start": np.bool_(True)})["y"].tolist() == [4, 8]


def test_condition_that_the_body_makes_false_for_good_allows_one_iteration():
    text = looped("most, true", "again = Constant <value = bool {0}> () next = Add (v, x)", before=ON + number(3))

    engine = engine_of(text)

    assert engine({"x": X})["y"].tolist() == [2, 4]
    assert loop_strategies(engine) == ["scan"]


def test_without_a_condition_the_body_does_not_end_the_loop_but_sees_what_it_said():
    body = """
    again = Constant <value = bool {0}> ()
    more = Where (go, x, v)
    next = Add (v, more)
    """
    text = looped('most, ""', body, before=number(3))

    assert engine_of(text)({"x": X})["y"].tolist() == [8, 16]  # 1 + 1, then doubled twice


def test_loop_without_limits_is_refused_with_what_onnxruntime_makes_of_it():
    with pytest.raises(ModelError, match="give it true as the condition, its second input,"):
        netloop.onnx.load(model(looped('"", ""', ADD)))


@pytest.mark.parametrize(
    ("limits", "body"), [('"", ""', ADD), (", true", ADD), (", true", "again = Identity (true) next = Add (v, x)")]
)
def test_loop_that_never_ends_is_refused(limits, body):
    with pytest.raises(ModelError, match="never end"):
        netloop.onnx.load(model(looped(limits, body)))


def test_count_and_condition_may_have_one_axis_of_one_element():
    before = "true = Constant <value = bool[1] {1}> () most = Constant <value_ints = [3]> ()"

    assert engine_of(looped("most, true", ADD, before=before))({"x": X})["y"].tolist() == [4, 8]


# ---------------------------------------------------------------------------- carried values


def test_all_carried_values_step_at_once():
    body = "trip (int64 i, bool go, float[2] v, float[2] w) => (bool go, float[2] w, float[2] v) { }"
    text = graph(
        f"{ON} {number(3)} a, b = Loop (most, true, x, z) < body = {body} >",
        inputs="float[2] x, float[2] z",
        outputs="float[2] a, float[2] b",
    )

    check_like_onnxruntime(text, x=X, z=X + 5)


def test_body_gives_initializers_and_values_from_around():
    text = looped("most, true", "again = Identity (go) next = Identity (x)", before=ON + number(2)).replace(
        "=> (again, next) {", "=> (again, x) {"
    )

    assert engine_of(text)({"x": X})["y"].tolist() == [1, 2]


def test_inner_loops_see_the_names_around_them():
    text = graph("""
      three = Constant <value_int = 3> ()
      y = Loop (three, , x) < body = outer (int64 i, bool go, float[2] v) => (bool go, float[2] next) {
        next = Loop (i, , v) < body = inner (int64 j, bool on, float[2] w) => (bool on, float[2] more) {
          number = Cast <to = 1> (i)
          scaled = Mul (x, number)
          more = Add (w, scaled)
        } >
      } >
    """)

    engine = check_like_onnxruntime(text, x=X)

    assert sorted(loop_strategies(engine)) == ["scan", "while"]


def test_carried_value_may_grow():
    text = looped(
        "most, true",
        "again = Identity (go) next = Concat <axis = 0> (v, x) size = Shape (v) row = Cast <to = 1> (size)",
        "y, rows",
        before=ON + number(3),
        outputs="float[n] y, float[m, 1] rows",
    )

    engine = engine_of(text)
    found = engine({"x": X})

    assert found["y"].tolist() == [1, 2] * 4
    assert found["rows"].tolist() == [[2], [4], [6]]
    assert loop_strategies(engine) == ["scan"]


def test_value_of_open_length_that_does_not_grow_is_a_scan():
    text = looped("most, true", ADD, before=ON + number(3), inputs="float[n] x", outputs="float[n] y")

    engine = engine_of(text)

    assert engine({"x": X})["y"].tolist() == [4, 8]
    assert loop_strategies(engine) == ["scan"]


def test_value_of_open_length_may_grow():
    body = "again = Identity (go) next = Concat <axis = 0> (v, x)"
    text = looped("most, true", body, before=ON + number(2), inputs="float[n] x", outputs="float[m] y")

    engine = engine_of(text)

    assert engine({"x": X})["y"].tolist() == [1, 2] * 3
    assert loop_strategies(engine) == ["scan"]


def test_carried_value_keeps_its_element_type_and_axes():
    text = looped("most, true", "again = Identity (go) next = Cast <to = 7> (v)", before=ON + number(2))

    with pytest.raises(ModelError, match="carried value 0 is float32"):
        netloop.onnx.load(model(text))


def test_derivative_goes_through_a_loop():
    text = looped("most, true", "again = Identity (go) next = Mul (v, x)", before=ON + number(3))
    function, weights = netloop.to_jax(netloop.onnx.load(model(text)))

    gradient = jax.grad(lambda x: jnp.sum(function(weights, {"x": x})["y"]))(X)

    assert gradient.tolist() == [4 * 1, 4 * 8]  # of x to the fourth


# ---------------------------------------------------------------------------- Scan


def scan(attributes, body, args="s, x", **declared):
    """A model of one scan that outputs ``last`` and ``sums``, or only ``sums`` if it has no state."""
    names = "last, sums" if "next" in body else "sums"
    return graph(f"{names} = Scan <{attributes}, body = trip {body}> ({args})", **declared)


TRIP = "(float[2] v, float[2] each) => (float[2] next, float[2] row) { next = Add (v, each) row = Identity (next) }"
THREE = {"inputs": "float[3, 2] x, float[2] s", "outputs": "float[2] last, float[3, 2] sums"}


def test_scan_goes_backwards_and_stacks_along_any_axis():
    text = scan(
        "num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [-1]",
        TRIP,
        inputs="float[3, 2] x, float[2] s",
        outputs="float[2] last, float[2, 3] sums",
    )

    engine = check_like_onnxruntime(text, x=np.arange(6, dtype=F).reshape(3, 2), s=X)

    assert loop_strategies(engine) == ["scan"]


def test_scan_reads_any_axes_and_stacks_backwards():
    text = scan(
        "num_scan_inputs = 2, scan_input_axes = [-1, 0], scan_output_directions = [1]",
        """(float[2] v, float[2] a, float[2] b) => (float[2] next, float[2] row) {
          product = Mul (a, b) next = Add (v, product) row = Identity (next)
        }""",
        "s, x, z",
        inputs="float[2, 3] x, float[3, 2] z, float[2] s",
        outputs="float[2] last, float[3, 2] sums",
    )

    check_like_onnxruntime(text, x=np.arange(6, dtype=F).reshape(2, 3), z=np.arange(6, dtype=F).reshape(3, 2), s=X)


def test_scan_without_states_is_a_map():
    text = scan(
        "num_scan_inputs = 1",
        "(float[2] each) => (float[2] row) { row = Add (each, each) }",
        "x",
        inputs="float[3, 2] x",
        outputs="float[3, 2] sums",
    )

    check_like_onnxruntime(text, x=np.arange(6, dtype=F).reshape(3, 2))


def test_scan_over_nothing_gives_the_initial_state():
    declared = {"inputs": "float[n, 2] x, float[2] s", "outputs": "float[2] last, float[n, 2] sums"}

    found = engine_of(scan("num_scan_inputs = 1", TRIP, **declared))({"x": np.zeros((0, 2), F), "s": X})

    assert (found["last"].tolist(), found["sums"].shape) == ([1, 2], (0, 2))


def test_what_is_scanned_has_equally_many_elements():
    text = scan(
        "num_scan_inputs = 2",
        """(float[2] v, float[2] a, float[2] b) => (float[2] next, float[2] row) {
          next = Add (a, b) row = Identity (v)
        }""",
        "s, x, z",
        inputs="float[n, 2] x, float[m, 2] z, float[2] s",
        outputs="float[2] last, float[n, 2] sums",
    )

    with pytest.raises(netloop.ExecutionError, match="'Scan_0/a' reads past the end of axis 0, which has 2 elements"):
        engine_of(text)({"x": np.ones((2, 2), F), "z": np.ones((3, 2), F), "s": X})


def test_scan_of_version_8_goes_over_a_batch_with_a_length_for_each():
    text = scan(
        "num_scan_inputs = 1, directions = [1]",
        "(float[1] v, float[1] each) => (float[1] next, float[1] row) { next = Add (v, each) row = Identity (each) }",
        "lengths, s, x",
        inputs="int64[2] lengths, float[2, 3, 1] x, float[2, 1] s",
        outputs="float[2, 1] last, float[2, 3, 1] sums",
    )
    proto = model(text)
    proto.opset_import[0].version = 8
    x = np.arange(1, 7, dtype=F).reshape(2, 3, 1)

    inputs = {"lengths": np.int64([3, 2]), "x": x, "s": np.zeros((2, 1), F)}
    outputs = netloop.compile(netloop.onnx.load(proto))(inputs)

    assert outputs["last"].tolist() == [[6], [9]]
    assert outputs["sums"].reshape(2, 3).tolist() == [[3, 2, 1], [5, 4, 0]]


# ---------------------------------------------------------------------------- If


def choice(then, otherwise, **declared):
    return graph(
        f"y = If (c) < then_branch = yes () => (a) {{ {then} }}, else_branch = no () => (b) {{ {otherwise} }} >",
        **declared,
    )


def test_branches_may_differ_in_shape():
    text = choice(
        "a = Add (x, x)",
        "zero = Constant <value_ints = [0]> () b = Gather (x, zero)",
        inputs="float[2] x, bool c",
        outputs="float[m] y",
    )

    for taken in (True, False):
        check_like_onnxruntime(
            text.replace("(a)", "(float[2] a)").replace("(b)", "(float[1] b)"), x=X, c=np.bool_(taken)
        )


def test_of_a_condition_that_is_known_one_branch_becomes_layers():
    text = graph("""
      c = Constant <value = bool {0}> ()
      y = If (c) <then_branch = yes () => (a) { a = Nonsense (x) }, else_branch = no () => (b) { b = Neg (x) }>
    """)

    assert [type(layer).__name__ for layer in netloop.onnx.load(model(text))] == ["IUnaryLayer"]


def test_branch_gives_one_value_twice():
    text = graph(
        "y, z = If (c) < then_branch = yes () => (a, a) { a = Neg (x) }, else_branch = no () => (x, x) { } >",
        inputs="float[2] x, bool c",
        outputs="float[2] y, float[2] z",
    )

    found = engine_of(text)({"x": X, "c": np.bool_(True)})

    assert (found["y"].tolist(), found["z"].tolist()) == ([-1, -2], [-1, -2])
