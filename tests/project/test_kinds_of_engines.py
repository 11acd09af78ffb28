"""The page's table of what each kind of engine can do: each of its cells is tried."""

import pickle
import re
from contextlib import suppress
from pathlib import Path

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler import xla_compilation
from netloop.compiler.launches import Launches
from netloop.compiler.passes import OFF
from netloop.compiler.tuning import TimedPair
from netloop.compiler.xla_compilation import XlaFunction
from netloop.serve import Sequences
from tests.support.gpu_programs import COUNTED
from tests.support.log import Log
from tests.support.networks import combine, constant, counted, last, mark

PAGE = Path(__file__).parents[2] / "docs" / "laptop-to-cluster.md"
F, NONE = np.float32, trt.MatrixOperation.NONE
X, START = F([[1, 2]]), np.zeros((1, 2), F)


def step(trips=3):
    """y, sn: the next state; a loop with gates, as long as an input or a number says, from the state and an input."""
    network = trt.INetworkDefinition()
    s, x = network.add_input("s", trt.float32, (1, 2)), network.add_input("x", trt.float32, (1, 2))
    weights = network.add_constant((2, 2), F([[1, 2], [3, 4]]))
    weights.name = "weights"
    loop = counted(network, trips)
    loop.name = "cells"
    state = loop.add_recurrence(s)
    product = network.add_matrix_multiply(state.get_output(0), NONE, weights.get_output(0), NONE).get_output(0)
    total = combine(network, product, x)
    gate = network.add_activation(total, trt.ActivationType.SIGMOID).get_output(0)
    new = network.add_activation(total, trt.ActivationType.TANH).get_output(0)
    state.set_input(1, combine(network, gate, new, trt.ElementWiseOperation.PROD))
    sn = last(loop, state.get_output(0))
    return mark(network, sn=sn, y=combine(network, sn, constant(network, F([[1, 1]]))))


class Kind:
    """An engine of one kind, which is made of a network; ``own`` is the engine that its abilities are those of."""

    def __init__(self, network=None, **options):
        self.own = self.engine = trt.compile(network or step(), **options)
        self.inputs = {"s": START, "x": X}

    def __call__(self, x=X):
        return np.asarray(self.engine({"s": START, "x": x})["y"])


class Sharded(Kind):
    def __init__(self, network=None, **options):
        self.own = self.engine = trt.shard(network or step(), jax.make_mesh((1,), ("rows",)), **options)
        self.inputs = {"s": START[None], "x": X[None]}

    def __call__(self, x=X):
        return np.asarray(self.engine({"s": START[None], "x": x[None]})["y"][0])


class InSlots(Kind):
    def __init__(self, network=None, **options):
        self.own = self.engine = trt.SlotEngine(network or step(), slots=2, **options)
        self.inputs = {"s": START, "x": X}

    def __call__(self, x=X):
        return self.engine.submit({"s": START, "x": x}).result()["y"]


class Steps(Kind):
    def __init__(self, network=None, **options):
        self.own = trt.compile(network or step(), **options)
        self.engine = trt.Stepper(self.own, {"s": "sn"})
        self.inputs = {"s": START, "x": X}

    def __call__(self, x=X):
        with suppress(trt.InputError):
            self.engine.reset()
        return np.asarray(self.engine({"x": x})["y"])


class OfSequences(Kind):
    def __init__(
        self,
        network=None,
        tune=False,
        timing_cache=None,
        passes=None,
        max_trips=None,
        tf32=True,
        device=None,
        **options,
    ):
        engine = trt.compile(network or step(), passes=passes, max_trips=max_trips, tf32=tf32, device=device)
        tuning = {"tune": tune, "timing_cache": timing_cache}
        self.own = self.engine = Sequences(engine, {"s": "sn"}, slots=1, sizes=[1], **tuning, **options)
        self.inputs = {"x": X}

    def __call__(self, x=X):
        return self.engine.step(0, {"x": x}, start=True, end=True)["y"]


class Function(Kind):
    def __init__(self, network=None, **options):
        self.engine, self.weights = trt.to_jax(network or step(), **options)
        self.own = self.engine

    def __call__(self, x=X):
        return self.engine(self.weights, {"s": START, "x": x})["y"]


KINDS = {
    "`compile`": Kind,
    "`shard`": Sharded,
    "`SlotEngine`": InSlots,
    "`Stepper`": Steps,
    "`serve.Sequences`": OfSequences,
    "`to_jax`": Function,
}


def has_notes(kind):
    engine = kind()
    engine()
    assert "gate_fusion" in {note.by for note in engine.own.notes}
    assert {*engine.own.loop_strategies} == (set() if kind is InSlots else {"cells"})  # slots run that loop themselves


def has_phase_times(kind):
    engine = kind()
    phases = engine.own.profile(engine.inputs)

    assert [*phases] == ["passes", "load", "trace", "compile", "call"]
    assert all(0 < seconds < 60 for seconds in phases.values())
    np.testing.assert_allclose(engine(), Kind()(), rtol=1e-6)


def knows_memory(kind):
    engine = kind()
    engine()
    assert isinstance(engine.own.scratch_size, int)
    assert engine.own.scratch_size > 0


def counts_launches(kind, monkeypatch):
    engine = kind()
    engine()
    assert engine.own.launches is None  # on a CPU
    monkeypatch.setattr(XlaFunction, "launches", Launches.of(COUNTED))
    assert engine.own.launches.total % 20 == 0


def takes_passes(kind):
    engine = kind(passes=["loop_fission"])
    np.testing.assert_allclose(engine(), Kind()(), rtol=1e-6)
    assert getattr(engine.own, "passes", {"loop_fission"}) == {"loop_fission"}


def decides_precision(kind, monkeypatch):
    lower, precisions = trt.IMatrixMultiplyLayer.lower, set()

    def watched(layer, *operands):
        precisions.add(jax.config.jax_default_matmul_precision)
        return lower(layer, *operands)

    monkeypatch.setattr(trt.IMatrixMultiplyLayer, "lower", watched)
    np.testing.assert_allclose(kind(tf32=False)(), Kind()(), rtol=1e-6)
    assert precisions == {"highest", jax.config.jax_default_matmul_precision}
    precisions.clear()
    kind(step(4))()
    assert precisions == {jax.config.jax_default_matmul_precision}


def limits_trips(kind):
    network = step()
    open_ended = trt.INetworkDefinition()
    s, x = open_ended.add_input("s", trt.float32, (1, 2)), open_ended.add_input("x", trt.float32, (1, 2))
    loop = open_ended.add_loop()
    state = loop.add_recurrence(s)
    total = open_ended.add_reduce(state.get_output(0), trt.ReduceOperation.SUM, 0b11, False).get_output(0)
    loop.add_trip_limit(combine(open_ended, total, F(1e9), trt.ElementWiseOperation.LESS), trt.TripLimit.WHILE)
    state.set_input(1, combine(open_ended, state.get_output(0), x))
    sn = last(loop, state.get_output(0))
    mark(open_ended, sn=sn, y=combine(open_ended, sn, x))
    assert kind(network, max_trips=5)() is not None
    with pytest.raises(trt.ExecutionError, match="more than 5 iterations"):
        kind(open_ended, max_trips=5)()


def computes_on_a_device(kind):
    engine = kind(device="cpu")

    np.testing.assert_allclose(engine(), Kind()(), rtol=1e-6)
    assert engine.own.device == engine.engine.device == jax.devices("cpu")[0]


class Watch:
    """Stands for the stopwatch: engines without gate fusion take half the time."""

    compared = 0

    def __init__(self, inputs, calls):
        self.inputs = inputs

    def __call__(self, candidate, incumbent):
        Watch.compared += 1
        for engine in (candidate, incumbent):
            engine.move_weights()
            engine.run_to_end(self.inputs)
        times = [1.0 if engine.forms.get("gate_fusion") == OFF else 2.0 for engine in (candidate, incumbent)]
        return TimedPair(*times, [times[0] / times[1]] * 7)


def is_tuned(kind, tmp_path, tune):
    engine, before = kind(tune=tune, timing_cache=tmp_path / "times"), Watch.compared
    again = kind(tune=tune, timing_cache=tmp_path / "times")

    assert engine.own.forms == again.own.forms == {"gate_fusion": OFF}
    assert "gate_fusion" not in engine.own.passes
    assert "tuning: gate_fusion off: 1000 ms, before 2000 ms, chosen" in map(str, engine.own.notes)
    assert "tuning: gate_fusion off: measured before" in map(str, again.own.notes)
    assert Watch.compared == before > 0
    assert (len(again.own.trials), {trial.by for trial in engine.own.trials if trial.chosen}) == (
        0,
        {"gate_fusion", "all"},
    )
    for tuned in (engine, again):
        np.testing.assert_allclose(tuned(), Kind()(), rtol=1e-5)
        assert {note.by for note in tuned.own.notes} & {"gate_fusion"} == set()


def is_tuned_by_itself(kind, tmp_path):
    is_tuned(kind, tmp_path, tune=True)


def is_tuned_with_inputs(kind, tmp_path):
    is_tuned(kind, tmp_path, tune=kind().inputs)
    with pytest.raises(trt.InputError, match=r"NL624.*only the caller knows"):
        kind(tune=True)


NEW = F([[4, 3], [2, 1]])


def expected_with_new_weights():
    network = step()
    next(layer for layer in network if layer.name == "weights").weights = NEW
    return Kind(network)()


def is_refitted(kind):
    engine = kind()
    engine()
    refitter = trt.Refitter(engine.own, Log())
    assert refitter.set_named_weights("weights", NEW)
    assert refitter.refit_cuda_engine()
    np.testing.assert_allclose(engine(), expected_with_new_weights(), rtol=1e-6)
    assert engine.own.program_count == 1


def is_reloaded(kind):
    engine = kind()
    engine()
    refitter = trt.Refitter(engine.engine._program.engine, Log())
    assert refitter.set_named_weights("weights", NEW)
    assert refitter.refit_cuda_engine()
    engine.engine.reload()
    np.testing.assert_allclose(engine(), expected_with_new_weights(), rtol=1e-6)


def takes_weights(kind):
    engine = kind()
    engine.weights["weights"] = NEW
    np.testing.assert_allclose(engine(), expected_with_new_weights(), rtol=1e-6)


def failing():
    network = step()
    x = next(tensor for tensor in network.inputs if tensor.name == "x")
    total = network.add_reduce(x, trt.ReduceOperation.SUM, 0b11, False).get_output(0)
    network.add_assertion(combine(network, total, F(10), trt.ElementWiseOperation.LESS), "x is small")
    return network


def raises_failures(kind):
    engine = kind(failing())
    engine()
    with pytest.raises(trt.ExecutionError, match="x is small"):
        engine(F([[20, 1]]))


def is_guarded(kind, monkeypatch):
    """XLA's options are those for long bodies, and faults are looked for in its program."""
    options, texts = [], []
    monkeypatch.setattr(xla_compilation, "LONGEST_FUSED_BODY", 1)
    compile_lowered = xla_compilation.compile_lowered
    monkeypatch.setattr(
        xla_compilation, "compile_lowered", lambda lowered, own: (options.append(own), compile_lowered(lowered, own))[1]
    )
    monkeypatch.setattr(xla_compilation, "options_without_faults", lambda text: texts.append(text) or {})
    kind(step(4 + [*KINDS.values()].index(kind)))()  # other kinds have other programs, which none of these takes over
    if not any(options):
        raise LookupError("no program has options")
    assert len(texts) >= sum(map(bool, options))


def keeps_settings_out(kind):
    network = step()
    x = next(tensor for tensor in network.inputs if tensor.name == "x")
    mark(network, root=network.add_unary(x, trt.UnaryOperation.SQRT).get_output(0))
    engine = kind(network)
    with jax.debug_nans(True):
        engine(F([[-1, 1]]))


def can_be_saved(kind, tmp_path):
    engine = kind()
    engine.own.save(tmp_path / "plan")
    for copy in (trt.load(tmp_path / "plan"), pickle.loads(pickle.dumps(engine.engine))):
        np.testing.assert_array_equal(np.asarray(copy({"s": START, "x": X})["y"]), engine())


def runs_on_the_host(kind):
    network = step()
    x = next(tensor for tensor in network.inputs if tensor.name == "x")
    rows = network.add_non_zero(x).get_output(0)
    total = network.add_cast(network.add_reduce(rows, trt.ReduceOperation.SUM, 0b11, False).get_output(0), trt.float32)
    mark(network, total=total.get_output(0))
    np.testing.assert_allclose(kind(network)(), Kind()(), rtol=1e-6)


def is_interruptible(kind):
    assert kind(interruptible=True).own.interruptible


def donates(kind):
    engine = kind(donate=["s"])
    state = jax.device_put(START)
    if isinstance(engine, Steps):
        engine.engine.reset({"s": state})
        state = engine.engine.states["s"]
        engine.engine({"x": X})
    else:
        engine.engine({"s": state, "x": X})
    assert state.is_deleted()


def shows_values(kind):
    engine, shown = kind(), []
    tensor = next(layer for layer in engine.own.network if layer.name == "cells" or layer.LABEL == "Activation")
    engine.own.watch(
        engine.inputs, [tensor.get_output(0)], lambda tensor, trips, value: shown.append(np.asarray(value))
    )
    assert len(shown) >= 3


def has_derivatives(kind):
    engine = kind()
    assert np.abs(jax.grad(lambda x: engine(x).sum())(jax.numpy.asarray(X))).max() > 0


ENGINES = "its engine's"
YES, NO = "yes", "no"
NO_SUCH_NAME, NO_SUCH_ARGUMENT = AttributeError, TypeError
NOT_RAISED = pytest.fail.Exception
ROWS = {
    "what the passes did: `notes`, `loop_strategies`": (has_notes, [YES, YES, YES, ENGINES, YES, NO], NO_SUCH_NAME),
    "phase times: `profile(inputs)`": (has_phase_times, [YES, YES, YES, ENGINES, YES, NO], NO_SUCH_NAME),
    "memory: `scratch_size`": (knows_memory, [YES, YES, YES, ENGINES, YES, NO], NO_SUCH_NAME),
    "launches of a GPU: `launches`": (counts_launches, [YES, YES, YES, ENGINES, YES, NO], NO_SUCH_NAME),
    "tuning: `tune=`, `timing_cache=`": (
        is_tuned_by_itself,
        [YES, "with inputs", YES, ENGINES, YES, NO],
        NO_SUCH_ARGUMENT,
    ),
    "`passes=`": (takes_passes, [YES, YES, YES, ENGINES, ENGINES, YES], None),
    "`tf32=`": (decides_precision, [YES, YES, YES, ENGINES, ENGINES, YES], None),
    "`max_trips=`": (limits_trips, [YES, YES, YES, ENGINES, ENGINES, NO], NO_SUCH_ARGUMENT),
    "`device=`": (computes_on_a_device, [YES, NO, YES, ENGINES, ENGINES, NO], NO_SUCH_ARGUMENT),
    "new weights without a compilation": (
        is_refitted,
        ["`Refitter`", "`Refitter`", NO, ENGINES, "`reload`", "as arguments"],
        TypeError,
    ),
    "a failed computation raises": (raises_failures, [YES, YES, YES, YES, YES, NO], NOT_RAISED),
    "guards: XLA's faults on CPUs, long loop bodies": (is_guarded, [YES, YES, YES, YES, YES, NO], LookupError),
    "JAX's settings for debugging stay outside": (
        keeps_settings_out,
        [YES, YES, YES, YES, YES, NO],
        FloatingPointError,
    ),
    "plans: `save`, `pickle`": (can_be_saved, [YES, NO, NO, NO, NO, NO], (NO_SUCH_NAME, TypeError)),
    "data-dependent shapes": (runs_on_the_host, [YES, NO, NO, ENGINES, NO, NO], trt.NetworkError),
    "`interruptible=`": (is_interruptible, [YES, NO, NO, ENGINES, NO, NO], NO_SUCH_ARGUMENT),
    "`donate=`": (donates, [YES, NO, NO, ENGINES, NO, NO], NO_SUCH_ARGUMENT),
    "values inside: `watch`, debug tensors": (shows_values, [YES, NO, NO, ENGINES, NO, NO], NO_SUCH_NAME),
    "derivatives": (has_derivatives, [NO, NO, NO, NO, NO, YES], (TypeError, trt.InputError)),
}
"""For each row of the page: its check, its cells, and the error of the check where an engine cannot do it."""
OTHERS = {"with inputs": is_tuned_with_inputs, "`reload`": is_reloaded, "as arguments": takes_weights}
"""The checks of cells that say more than yes."""
CELLS = [
    pytest.param(text, row, column, id=f"{row}, {column}")
    for row, (_, texts, _) in ROWS.items()
    for column, text in zip(KINDS, texts, strict=True)
]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("netloop.compiler.tuning.candidates.Stopwatch", Watch)
    Watch.compared = 0


@pytest.mark.parametrize(("text", "row", "column"), CELLS)
def test_cell_is_true(text, row, column, request):
    check = OTHERS.get(text, ROWS[row][0])
    names = check.__code__.co_varnames[1 : check.__code__.co_argcount]
    fixtures = {name: request.getfixturevalue(name) for name in names}
    if text == NO:
        with pytest.raises(ROWS[row][2]):
            check(KINDS[column], **fixtures)
    else:
        check(KINDS[column], **fixtures)


def test_page_has_the_table():
    text = PAGE.read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", text, re.M)]

    assert lines[0] == ["", *KINDS]
    assert lines[2:] == [[row, *texts] for row, (_, texts, _) in ROWS.items()]
