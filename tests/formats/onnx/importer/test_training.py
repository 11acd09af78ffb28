"""Gradients and steps of optimizers; ONNX's own tests have more of the latter."""

import numpy as np
import onnx.parser
import pytest

import netloop
from netloop import plan
from tests.support.onnx_models import of_node, runs

TRAINING = "ai.onnx.preview.training"
HEADER = f'<ir_version: 10, opset_import: ["" : 21, "{TRAINING}" : 1]>\n'
X = np.float32([1, 2, -3])


def network_of(text):
    return netloop.onnx.load(onnx.parser.parse_model(HEADER + text.replace("Gradient", f"{TRAINING}.Gradient")))


def refused(text):
    with pytest.raises(netloop.ModelError) as caught:
        network_of(text)
    return caught.value.findings[0].what


def gives(network, **inputs):
    """The only output, of which engine and reference are equal."""
    (found,), (same,) = (
        engine(inputs).values() for engine in (netloop.compile(network), lambda x: netloop.evaluate(network, x))
    )
    np.testing.assert_allclose(found, same, rtol=1e-6)
    return np.asarray(found)


# ---------------------------------------------------------------------------- gradients


def powers(count):
    """The gradient of x ** 3 by a loop."""
    return network_of(f"""
        powers (float[N] x, int64 n) => (float[N] slope) {{
            one = Constant <value_floats = [1.0]> ()
            length = Shape (x)
            first = Expand (one, length)
            true = Constant <value = bool {{1}}> ()
            three = Constant <value_int = 3> ()
            y = Loop ({count}, true, first) <body = b (int64 i, bool on, float[N] now) => (bool still, float[N] more)
                {{ still = Identity (on)  more = Mul (now, x) }}>
            slope = Gradient <xs = ["x"], zs = ["n"], y = "y"> (x, n)
        }}
    """)


@pytest.mark.parametrize("count", ["three", "n"], ids=["reverse mode", "forward mode"])
def test_loop_is_differentiated(count):
    np.testing.assert_allclose(gives(powers(count), x=X, n=np.int64(3)), 3 * X**2)


def test_forward_mode_has_a_gradient_by_each_variable():
    network = network_of("""
        g (float[3] x, float[2, 3] w, int64 n, bool c) => (float[3] by_x, float[2, 3] by_w) {
            y = Loop (n, c, w) <body = b (int64 i, bool on, float[2, 3] now) => (bool still, float[2, 3] more)
                { still = Identity (on)  more = Mul (now, x) }>
            by_x, by_w = Gradient <xs = ["x", "w"], zs = ["n", "c"], y = "y"> (x, w, n, c)
        }
    """)
    w = np.float32([[1, 0, 2], [4, 5, -1]])

    found = netloop.compile(network)({"x": X, "w": w, "n": np.int64(2), "c": np.bool_(True)})

    np.testing.assert_allclose(found["by_x"], 2 * X * w.sum(0))
    np.testing.assert_allclose(found["by_w"], np.broadcast_to(X**2, (2, 3)))


def test_loop_of_known_length_is_differentiated_in_reverse_mode(monkeypatch):
    monkeypatch.delattr("netloop.compiler.execution.gradient._in_forward_mode")

    np.testing.assert_allclose(gives(powers("three"), x=X, n=np.int64(0)), 3 * X**2)


def test_values_at_which_the_gradient_is_taken_may_be_others():
    network = network_of("""
        g (float[3] x, float[3] w, float[3] v) => (float[3] slope) {
            y = Mul (x, w)
            z = Mul (y, w)
            slope = Gradient <xs = ["w"], zs = ["x"], y = "z"> (v, x)
        }
    """)

    np.testing.assert_allclose(gives(network, x=X, w=X + 5, v=X + 1), 2 * X * (X + 1))


def test_gradient_by_an_inner_value_takes_it_as_independent():
    network = network_of("""
        g (float[3] x) => (float[3] slope) {
            h = Exp (x)
            y = Mul (h, x)
            slope = Gradient <xs = ["h"], zs = ["x"], y = "y"> (h, x)
        }
    """)

    np.testing.assert_allclose(gives(network, x=X), X)


def test_gradient_of_a_gradient_is_the_second_derivative():
    network = network_of("""
        g (float[3] x) => (float[3] second) {
            y = Sin (x)
            first = Gradient <xs = ["x"], y = "y"> (x)
            second = Gradient <xs = ["x"], y = "first"> (x)
        }
    """)

    np.testing.assert_allclose(gives(network, x=X), -np.sin(X), rtol=1e-6)


def test_gradient_in_the_body_of_a_loop_descends():
    network = network_of("""
        g (float x) => (float least) {
            true = Constant <value = bool {1}> ()
            steps = Constant <value_int = 40> ()
            least = Loop (steps, true, x) <body = b (int64 i, bool on, float at) => (bool still, float next) {
                still = Identity (on)
                three = Constant <value_float = 3.0> ()
                rate = Constant <value_float = 0.25> ()
                away = Sub (at, three)
                loss = Mul (away, away)
                slope = Gradient <xs = ["at"], y = "loss"> (at)
                step = Mul (rate, slope)
                next = Sub (at, step)
            }>
        }
    """)

    np.testing.assert_allclose(gives(network, x=np.float32(-7)), 3, rtol=1e-6)


def test_initializers_and_shapes_take_part():
    network = network_of("""
        g (float[N] x, int64[2] unused) => (float[N] slope)
            <float[2] w = {2, -1}, int64[2] rows = {-1, 2}>
        {
            table = Reshape (x, rows)
            scaled = Mul (table, w)
            squares = Mul (scaled, scaled)
            total = ReduceSum <keepdims = 0> (squares)
            slope = Gradient <xs = ["x"], y = "total"> (x)
        }
    """)
    x = np.float32([1, 2, 3, 4])

    np.testing.assert_allclose(gives(network, x=x, unused=np.int64([0, 0])), [8, 4, 24, 8])


def test_plan_keeps_the_differentiated_network():
    again = plan.loads(plan.dumps(powers("n")))

    np.testing.assert_allclose(gives(again, x=X, n=np.int64(2)), 2 * X)


def test_value_that_the_node_is_not_given_is_named():
    what = refused("""
        g (float[3] x, float[3] w) => (float[3] slope) {
            y = Mul (x, w)
            slope = Gradient <xs = ["x"], y = "y"> (x)
        }
    """)

    assert what == "'y' depends on 'w', which the node is not given"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ('y = Mul (x, x)  slope = Gradient <xs = ["x", "x"], y = "y"> (x, x)', "xs and zs name a value twice"),
        ('y = Mul (x, x)  slope = Gradient <xs = ["x"], y = "y"> (x, x)', "the node has 2 inputs for the 1 names"),
        ('y = ArgMax (x)  slope = Gradient <xs = ["x"], y = "y"> (x)', "only floating-point values have derivatives"),
        ('y = NonZero (x)  z = Cast <to = 1> (y)  slope = Gradient <xs = ["x"], y = "z"> (x)', "NL501"),
        ('slope = Gradient <xs = ["x"], y = "nothing"> (x)', "'nothing'"),
    ],
)  # fmt: skip
def test_impossible_gradient_is_refused(body, what):
    assert what in refused(f"g (float[3] x) => (float[3] slope) {{ {body} }}")


@pytest.mark.slow
def test_gradients_of_gradients_of_many_do_not_multiply_without_end():
    nodes = [f'y{n + 1} = Gradient <xs = ["x"], y = "y{n}"> (x)' for n in range(40)]

    assert "expands to more than 64 gradients" in refused(
        f"g (float x) => (float y40) {{ y0 = Exp (x) {' '.join(nodes)} }}"
    )


# ---------------------------------------------------------------------------- optimizers


def check_step(op, *arrays, expected, **attributes):
    """Check a step against numbers that are computed by hand."""
    made, given = of_node(op, *arrays, outputs=len(expected), domain=TRAINING, opset=1, **attributes)
    for found, number in zip(runs(made, given), expected, strict=True):
        np.testing.assert_allclose(found, np.float32(number), rtol=1e-5)


RATE, X1, SLOPE = np.float32(0.5), np.float32([2]), np.float32([3])


def test_adagrad_slows_down_by_the_number_of_steps():
    # the rate is 0.5 / (1 + 4 * 0.25), the squares 16 + 9, and the step 0.25 * 3 / 5
    check_step(
        "Adagrad", RATE, np.int64(4), X1, SLOPE, np.float32([16]), expected=[[1.85], [25]], decay_factor=0.25,
        epsilon=0.0,
    )  # fmt: skip


def test_adam_corrects_the_means_of_the_first_steps():
    # means 0.5 * 1 + 0.5 * 3 and 0.75 * 4 + 0.25 * 9; the rate is 0.5 * sqrt(1 - 0.75 ** 2) / (1 - 0.5 ** 2)
    mean, square = 2, 5.25
    x = 2 - 0.5 * (1 - 0.75**2) ** 0.5 / 0.75 * mean / square**0.5
    check_step(
        "Adam", RATE, np.int64(2), X1, SLOPE, np.float32([1]), np.float32([4]), expected=[[0.9 * x], [mean], [square]],
        alpha=0.5, beta=0.75, epsilon=0.0, norm_coefficient_post=0.1,
    )  # fmt: skip


@pytest.mark.parametrize(("mode", "x"), [("standard", 2 - 0.5 * 4.5), ("nesterov", 2 - 0.5 * (3 + 0.5 * 4.5))])
@pytest.mark.parametrize("several", [False, True])
def test_momentum_moves_each_variable(mode, x, several):
    # from the second step on, the speed is 0.5 * 6 + 0.5 * 3
    check_step(
        "Momentum", RATE, np.int64(1), *(other for other in (X1, SLOPE, np.float32([6])) for _ in range(1 + several)),
        expected=[[x]] * (1 + several) + [[4.5]] * (1 + several),
        alpha=0.5, beta=0.5, norm_coefficient=0.0, mode=mode,
    )  # fmt: skip


def test_number_of_tensors_must_be_that_of_whole_variables():
    made, _ = of_node("Adagrad", RATE, np.int64(0), X1, SLOPE, domain=TRAINING, opset=1)

    with pytest.raises(netloop.ModelError, match="the node has 2 tensors, and needs 3 for each variable"):
        netloop.onnx.load(made)
