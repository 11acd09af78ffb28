"""Loops as one kernel of a GPU: which are, that they compute what the loop computes, and why others are not."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from benchmarks.workloads import WORKLOADS
from netloop.compiler import xla_compilation
from netloop.compiler.lower.loop.kernel import control, conversion, triton
from netloop.compiler.lower.loop.kernel.conversion import LoopKernel
from netloop.compiler.lower.loop.kernel.jaxpr import Refused
from netloop.compiler.passes.forms import LoopKernels
from tests.support import networks
from tests.support.examples import many, mostly_slow
from tests.support.networks import CONCATENATE, REVERSE, WHILE, Op, combine, constant, counted, last, mark, stacked
from tests.support.random_networks import agree, random_network

LOOP = "(Unnamed Loop* 0)"


@pytest.fixture(autouse=True)
def on_every_platform(monkeypatch):
    monkeypatch.setattr(LoopKernels, "platforms", None)
    # copies of a body take XLA's CPU long to compile
    monkeypatch.setattr(control, "AHEAD", 2)


@pytest.fixture
def of_any_length(monkeypatch):
    monkeypatch.setattr(conversion, "FEWEST_ITERATIONS", 1)


def strategy(network, loop=LOOP, **options):
    engine = trt.compile(network, **options)
    if engine.loop_strategies:
        return engine.loop_strategies[loop]
    engine({tensor.name: np.ones(tuple(tensor.shape), trt.nptype(tensor.dtype)) for tensor in network.inputs})
    return engine.loop_strategies[loop]


def in_kernel(function, *operands):
    """The results of a function whose loop is one kernel."""
    with jax.enable_x64(True):
        return jax.jit(lambda *arrays: LoopKernel(function, arrays).called())(*operands)


def by_xla(function, *operands):
    with jax.enable_x64(True):
        return jax.jit(function)(*operands)


def assert_same(function, *operands, rtol=0.0):
    for result, wanted in zip(
        jax.tree.leaves(in_kernel(function, *operands)), jax.tree.leaves(by_xla(function, *operands)), strict=True
    ):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(np.asarray(result), np.asarray(wanted), rtol=rtol, atol=rtol)


def refusal(function, *operands):
    with pytest.raises(Refused) as error:
        in_kernel(function, *operands)
    return str(error.value)


# ---------------------------------------------------------------------------- loops

ROWS = np.random.default_rng(0).normal(size=(40, 3, 300)).astype(np.float32)


def logistic(states, rows):
    """A loop of lanes that do not depend on each other, of 3 x 300 numbers."""

    def iterate(states, row):
        states = 2.5 * states * (1 - states) + 1e-3 * row
        return states, states * row

    return lax.scan(iterate, states, rows)


def test_independent_lanes_are_programs_of_the_grid():
    states = np.full((3, 300), 0.3, np.float32)
    with jax.enable_x64(True):
        kernel = LoopKernel(logistic, (states, ROWS))

    assert kernel.described == "one kernel of 6 programs"
    assert_same(logistic, states, ROWS, rtol=1e-5)


def test_lanes_that_a_condition_reads_are_one_program():
    def function(states):
        def goes_on(carry):
            return (carry[0] < 50) & (jnp.max(carry[1]) < 9)

        return lax.while_loop(goes_on, lambda carry: (carry[0] + 1, carry[1] * 1.5), (0, states))

    states = np.linspace(0, 1, 700, dtype=np.float32)
    with jax.enable_x64(True):
        assert LoopKernel(function, (states,)).described == "one kernel"
    assert_same(function, states)


def test_value_with_lanes_on_two_axes_is_one_program():
    def function(states, rows):
        def iterate(states, row):
            return jnp.minimum(states, row), jnp.max(states[:, None] - states)

        return lax.scan(iterate, states, rows)

    assert_same(function, ROWS[0, 0, :60], ROWS[:, 1, :60])


def test_positions_along_lanes_are_those_of_the_array():
    def function(states):
        places = jnp.arange(300, dtype=np.float32)
        return lax.fori_loop(0, 30, lambda trip, states: states * 0.5 + places * trip, states)

    assert_same(function, ROWS[0, 0])


def test_rows_of_rows_and_iterations_in_reverse():
    def function(state, rows):
        def inner(state, row):
            return state * 0.5 + row, state

        def outer(state, rows):
            state, last = lax.scan(inner, state, rows, reverse=True)
            return state, (last, state)

        return lax.scan(outer, state, rows)

    assert_same(function, ROWS[0, 0, :5], ROWS[:, :, :5])


def test_what_the_loop_leaves_as_it_is_does_not_pass_the_kernel():
    function = lambda table, states: (table, lax.fori_loop(0, 30, lambda _, s: s * 0.5, states), np.int32(3))  # noqa: E731
    table = np.zeros((2000, 2000), np.float32)

    assert_same(function, table, ROWS[0, 0])


def test_rows_at_once_are_a_loop_of_xla():
    states = np.full((4, 300), 0.3, np.float32)
    rows = ROWS.transpose(1, 0, 2)[:1]

    def in_rows(states, rows):
        return jax.vmap(lambda state: LoopKernel(logistic, (state, rows[0])).called())(states)

    with jax.enable_x64(True):
        text = str(jax.make_jaxpr(in_rows)(states, rows))
        results, expected = jax.jit(in_rows)(states, rows), jax.vmap(lambda state: logistic(state, rows[0]))(states)
    assert "pallas_call" not in text
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "shape", "reason"),
    [
        (lambda _, s: s + 1, (2, 0), "it has an array of no elements"),
        (lambda _, s: jnp.sort(s), (5,), "kernels have no sort"),
        (lambda _, s: s.at[np.array([0, 2])].add(1), (5,), "kernels have no scatter-add"),
        (lambda _, s: lax.complex(s, s).real, (5,), "it has numbers of complex64"),
        (lambda _, s: lax.rem(s, s), (5,), "kernels have no rem of float64"),
        (lambda _, s: s - jnp.max(s), (5000,), "a program of it would compute 8192 numbers at once"),
        (lambda _, s: jnp.cumsum(s[::-1])[::-1], (100,), "it selects 100 of 100 in an array of 128 elements"),
    ],
)
def test_loop_is_no_kernel_for_a_reason(function, shape, reason):
    dtype = np.float64 if "float64" in reason else np.float32

    assert reason in refusal(lambda s: lax.fori_loop(0, 30, function, s), np.ones(shape, dtype))


def test_loop_that_reads_much_in_each_iteration_is_no_kernel():
    weights = [np.ones((50, 50), np.float32) for _ in range(14)]

    def function(state, *weights):
        def iterate(trip, state):
            for weight in weights:
                state = jnp.tanh(state @ weight)
            return state

        return lax.fori_loop(0, 30, iterate, state)

    assert refusal(function, np.ones(50, np.float32), *weights) == "an iteration of it reads more than 128 KiB"
    assert_same(function, np.ones(50, np.float32), *weights[:3], rtol=1e-6)


def test_short_and_long_loops_are_no_kernels():
    def function(number, layers):
        def iterate(trip, state):
            for _ in range(layers):
                state = state * 0.5
            return state

        return lambda state: lax.fori_loop(0, number, iterate, state)

    state = np.ones(3, np.float32)

    assert refusal(function(19, 1), state) == "it has fewer than 20 iterations"
    assert refusal(function(20, 1001), state) == "it has 1003 operations, and kernels have at most 1000"


# ---------------------------------------------------------------------------- networks

SMALL = {
    "W3 Newton 100000 iterations": {"trips": 37},
    "W3 eight floats 100000 iterations": {"trips": 37},
    "W3 Newton stacked 100000 iterations": {"trips": 37},
    "W3 Collatz 100000 iterations": {"trips": 100},
    "W5 nested 64 x 64": {"size": 7},
    "W7 conditional, cheap branches": {"trips": 50},
    "W7 conditional, an expensive branch in 8": {"trips": 30, "size": 24},
}
"""Workloads that are one kernel, and the sizes with which they are tested."""


@pytest.mark.parametrize("name", SMALL)
def test_workload_is_one_kernel_and_has_the_results_of_the_reference(name):
    (workload,) = (workload for workload in WORKLOADS if workload.name == name)
    workload = replace(workload, **SMALL[name])
    network, inputs = workload.network(), workload.inputs()
    engine = trt.compile(network)
    outputs = engine(inputs)

    assert {strategy.name for strategy in engine.loop_strategies.values()} == {"kernel"}
    for output, wanted in trt.evaluate(network, inputs).items():
        np.testing.assert_allclose(np.asarray(outputs[output]), wanted, rtol=1e-5, atol=1e-6)


WITHOUT_KERNELS = "chain", "choice", "flipped", "loop in a conditional", "loop in the branch not taken"
"""Networks without loops, or with one of which JAX leaves nothing, or with one in a conditional."""


@pytest.mark.parametrize("name", [name for name in networks.EXAMPLES if name not in WITHOUT_KERNELS])
def test_example_has_the_same_results_as_a_kernel(name, of_any_length):
    example = networks.EXAMPLES[name]
    # a prefix scan would come first
    engine = trt.compile(example.make(), passes=["loop_kernels"])
    outputs = engine(example.inputs)

    networks.assert_outputs({name: np.asarray(output) for name, output in outputs.items()}, example.outputs)
    assert {strategy.name for strategy in engine.loop_strategies.values()} == {"kernel"}


def powers(limit=True):
    """Powers of two below a number, in 33 rows, and their number; with a COUNT of 40."""
    network = trt.INetworkDefinition()
    loop = counted(network, 40) if limit else network.add_loop()
    power = loop.add_recurrence(constant(network, [1, 3], np.int32))
    state = power.get_output(0)
    power.set_input(1, combine(network, state, 2, Op.PROD))
    largest = network.add_reduce(state, trt.ReduceOperation.MAX, 1, False).get_output(0)
    below = network.add_input("below", trt.int32, ())
    loop.add_trip_limit(combine(network, largest, below, Op.LESS), WHILE)
    outputs = {"y": last(loop, state)}
    for kind in (CONCATENATE, REVERSE):
        outputs[kind.name] = stacked(loop, state, constant(network, 33, np.int32), kind)
    return mark(network, **outputs)


@pytest.mark.parametrize("below", [0, 1, 100, 2000])
def test_while_stacks_its_rows_in_memory(below):
    inputs = {"below": np.int32(below)}
    engine = trt.compile(powers())
    outputs = engine(inputs)

    assert engine.loop_strategies[LOOP].name == "kernel"
    networks.assert_outputs(
        {name: np.asarray(array) for name, array in outputs.items()}, trt.evaluate(powers(), inputs)
    )


def test_while_without_a_bound_is_no_kernel():
    why = strategy(powers(limit=False)).why

    assert f"'{LOOP}' has neither a COUNT limit nor max_trips, and a kernel cannot be interrupted" in why
    assert strategy(powers(limit=False), max_trips=50).name == "kernel"


def test_kernel_says_which_loop_makes_too_many_iterations():
    engine = trt.compile(powers(limit=False), max_trips=20)

    assert engine({"below": np.int32(100)})["y"].tolist() == [64, 192]
    with pytest.raises(trt.ExecutionError, match="20 iterations"):
        engine({"below": np.int32(1 << 30)})
    assert engine.loop_strategies[LOOP].name == "kernel"


def test_kernel_says_which_assertion_failed(of_any_length):
    engine = trt.compile(networks.asserted(most=3))

    assert engine({"n": np.int32(3)})["y"] == 3
    with pytest.raises(trt.ExecutionError, match="the trip is below 3"):
        engine({"n": np.int32(5)})
    assert engine.loop_strategies[LOOP].name == "kernel"


def test_loops_inside_are_in_the_kernel_of_the_outermost(of_any_length):
    strategies = trt.compile(networks.table()).loop_strategies

    assert strategies[LOOP].why == "its iterations are one kernel"
    assert strategies["(Unnamed Loop* 1)"].why == f"it is in the kernel of {LOOP!r}"


def test_note_says_what_is_a_kernel():
    (newton, *_) = (replace(workload, trips=40) for workload in WORKLOADS if workload.name.startswith("W3 Newton"))

    assert [str(note) for note in trt.compile(newton.network()).notes] == [f"loop_kernels: {LOOP!r} is one kernel"]
    assert strategy(newton.network(), passes=[]).name == "scan"


def test_pure_functions_and_meshes_have_no_kernels(of_any_length):
    example = networks.EXAMPLES["swap"]
    function, weights = trt.to_jax(example.make(), passes=["loop_kernels"])
    text = str(jax.make_jaxpr(function)(weights, example.inputs))
    engine = trt.shard(example.make(), jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",)), passes=["loop_kernels"])
    engine(example.inputs)

    assert "pallas_call" not in text
    assert {strategy.name for strategy in engine.loop_strategies.values()} == {"scan"}


def failing_at_first(monkeypatch):
    compile_lowered, calls = xla_compilation.compile_lowered, []

    def compile_(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise jax.errors.JaxRuntimeError("INTERNAL: no such instruction\nand more")
        return compile_lowered(*arguments)

    monkeypatch.setattr(xla_compilation, "compile_lowered", compile_)


def test_program_whose_kernel_is_not_compiled_has_none(monkeypatch, of_any_length):
    failing_at_first(monkeypatch)
    example = networks.EXAMPLES["swap"]
    engine = trt.compile(example.make(), passes=["loop_kernels"])

    networks.assert_outputs({name: np.asarray(y) for name, y in engine(example.inputs).items()}, example.outputs)
    assert {strategy.name for strategy in engine.loop_strategies.values()} == {"scan"}
    assert [note.what for note in engine.notes] == [
        "there are no kernels, as they were not compiled: JaxRuntimeError: INTERNAL: no such instruction"
    ]


def test_program_without_a_kernel_is_not_compiled_twice(monkeypatch):
    failing_at_first(monkeypatch)

    with pytest.raises(trt.ExecutionError, match="no such instruction"):
        trt.compile(networks.EXAMPLES["choice"].make())(networks.EXAMPLES["choice"].inputs)


def test_loop_is_no_kernel_where_jax_has_none(monkeypatch, of_any_length):
    monkeypatch.setattr(triton, "backend", None)

    assert "as this release of JAX has no kernels for it" in strategy(networks.swap()).why


SEEDS = mostly_slow(1, [19, 2, 3])
"""Random networks with loops of many kinds, which are compiled in seconds."""


@pytest.mark.parametrize("seed", SEEDS)
def test_random_network_has_the_results_of_the_reference(seed, of_any_length):
    agree(random_network(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", many(100, 1000))
def test_random_network_has_the_results_of_the_reference_at_length(seed, of_any_length):
    agree(random_network(seed))
