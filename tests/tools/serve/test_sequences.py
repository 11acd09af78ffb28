"""Steps of many sequences at once, each with its own state."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.machine_code.processor import processor
from netloop.compiler.passes import recurrent_steps
from netloop.serve import Closed, NotRun, Overloaded, Sequences, Step, TimedOut, UnknownSequence
from netloop.tools.serve.step import StepProgram
from tests.support.devices import only_on_cpus
from tests.support.networks import cast, combine, constant, mark

Op = trt.ElementWiseOperation
SECONDS = 60
WEIGHTS = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32) / 2


def mixing(network):
    """A state [] of int64 that depends on every input and their order: s * 31 + x."""
    s, x = network.add_input("s", trt.int64, ()), network.add_input("x", trt.int64, ())
    new = combine(network, combine(network, s, 31, Op.PROD), x)
    return mark(network, sn=new, y=combine(network, new, 7))


def mixed(xs):
    state = np.int64(0)
    with np.errstate(over="ignore"):
        for x in xs:
            state = state * np.int64(31) + x
        return state + 7


def recurrent(network, rows=-1):
    """An RNN with states [rows, 4]."""
    h, x = network.add_input("h", trt.float32, (rows, 4)), network.add_input("x", trt.float32, (rows, 4))
    none = trt.MatrixOperation.NONE
    product = network.add_matrix_multiply(h, none, constant(network, WEIGHTS), none).get_output(0)
    new = network.add_activation(combine(network, product, x), trt.ActivationType.TANH).get_output(0)
    return mark(network, hn=new, y=combine(network, new, new, Op.PROD))


def asserting(network):
    """A sum of inputs that must be at most 10."""
    s, x = network.add_input("s", trt.int32, ()), network.add_input("x", trt.int32, ())
    new = combine(network, s, x)
    network.add_assertion(combine(network, new, 11, Op.LESS), "more than 10")
    return mark(network, sn=new, y=combine(network, new, 0))


class Time:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


class Gate:
    """Holds the thread of a service inside of its next call."""

    def __init__(self, service):
        self.reached, self.opened, run = threading.Event(), threading.Event(), service._run

        def waiting(batch):
            self.reached.set()
            assert self.opened.wait(SECONDS)
            return run(batch)

        service._run = waiting

    def open(self):
        self.opened.set()


def number(value):
    return {"x": np.array(value, np.int64)}


def small(value):
    return {"x": np.array(value, np.int32)}


def test_a_thousand_sequences_at_once_are_not_mixed_up(network):
    steps, count = 4, 1000
    xs = np.random.default_rng(1).integers(-(2**40), 2**40, (steps, count))
    with Sequences(mixing(network), {"s": "sn"}, slots=count, queue=steps * count) as sequences:
        futures = [
            [sequences.submit(key, number(row[key]), start=step == 0, end=step == steps - 1) for key in range(count)]
            for step, row in enumerate(xs)
        ]
        found = np.array([[future.result(SECONDS)["y"] for future in row] for row in futures])
        metrics = sequences.metrics()

    wanted = [[mixed(xs[: step + 1, key]) for key in range(count)] for step in range(steps)]
    np.testing.assert_array_equal(found, wanted)
    assert metrics.completed == steps * count
    assert metrics.calls < metrics.completed / 2
    assert metrics.sequences == metrics.queued == 0


def test_threads_with_sequences_of_their_own_are_not_mixed_up(network):
    with Sequences(mixing(network), {"s": "sn"}, slots=40) as sequences:

        def client(key):
            xs = np.random.default_rng(key).integers(-100, 100, 20)
            made = [sequences.step(key, number(x), start=i == 0, timeout=SECONDS)["y"] for i, x in enumerate(xs)]
            return made == [mixed(xs[: i + 1]) for i in range(len(xs))]

        with ThreadPoolExecutor(40) as pool:
            assert all(pool.map(client, range(40)))


@pytest.mark.parametrize("rows", [-1, 1])
def test_results_are_those_of_each_sequence_by_itself(network, rows):
    engine = trt.compile(recurrent(network, rows))
    xs = np.random.default_rng(2).normal(size=(5, 6, 1, 4)).astype(np.float32)
    with Sequences(engine, {"h": "hn"}, sizes=(4,)) as sequences:
        found = [
            sequences.step_all([Step(key, {"x": x}, start=step == 0) for key, x in enumerate(row)])
            for step, row in enumerate(xs)
        ]

    for key in range(6):
        h = np.zeros((1, 4), np.float32)
        for step in range(5):
            made = engine({"h": h, "x": xs[step, key]})
            h = np.asarray(made["hn"])
            np.testing.assert_allclose(found[step][key]["y"], made["y"], rtol=1e-5, atol=1e-6)


def test_a_start_begins_anew_and_an_end_removes_the_state(network):
    with Sequences(mixing(network), {"s": "sn"}) as sequences:
        sequences.step("a", number(5), start=True)
        assert sequences.step("a", number(6))["y"] == mixed([5, 6])
        assert sequences.step("a", number(7), start=True, end=True)["y"] == mixed([7])
        with pytest.raises(UnknownSequence, match="NL643: there is no sequence 'a'"):
            sequences.step("a", number(8))


def test_initial_states_are_given(network):
    with Sequences(mixing(network), {"s": "sn"}, initial={"s": np.array(2, np.int64)}) as sequences:
        assert sequences.step(1, number(5), start=True)["y"] == 2 * 31 + 5 + 7


def test_more_sequences_than_slots_are_refused_at_once(network):
    with Sequences(mixing(network), {"s": "sn"}, slots=2) as sequences:
        for key in (1, 2):
            sequences.step(key, number(key), start=True)
        with pytest.raises(Overloaded, match="NL641: all 2 slots have a sequence"):
            sequences.step(3, number(3), start=True)
        sequences.step(1, number(1), end=True)
        assert sequences.step(3, number(3), start=True)["y"] == mixed([3])
        assert sequences.metrics().refused == 1


def test_idle_sequences_lose_their_state(network):
    clock = Time()
    with Sequences(mixing(network), {"s": "sn"}, slots=1, idle=10, clock=clock) as sequences:
        sequences.step(1, number(1), start=True)
        clock.now = 10
        sequences.step(1, number(1))
        clock.now = 21
        with pytest.raises(UnknownSequence):
            sequences.step(1, number(1))
        assert sequences.step(2, number(2), start=True)["y"] == mixed([2])


def test_only_the_idle_ones_of_many_sequences_end(network):
    clock = Time()
    with Sequences(mixing(network), {"s": "sn"}, idle=10, clock=clock) as sequences:
        for key in range(4):
            sequences.step(key, number(key), start=True)
        clock.now = 6
        sequences.step(0, number(0))
        sequences.step(2, number(2))
        clock.now = 12
        assert sequences.metrics().sequences == 2
        assert sequences.step(2, number(2))["y"] == mixed([2, 2, 2])
        with pytest.raises(UnknownSequence):
            sequences.step(3, number(3))


def test_a_failure_of_the_device_ends_all_sequences(network, monkeypatch):
    def failing(program, states, *rest):
        for state in states.values():
            state.delete()
        raise trt.ExecutionError(trt.Finding("NL608", "the device failed"))

    with Sequences(mixing(network), {"s": "sn"}, slots=3) as sequences:
        for key in (1, 2):
            sequences.step(key, number(key), start=True)
        gate = Gate(sequences)
        running = sequences.submit(3, number(3), start=True)
        assert gate.reached.wait(SECONDS)
        waiting = [sequences.submit(key, number(4)) for key in (3, 2)]
        with monkeypatch.context() as patch:
            patch.setattr(StepProgram, "__call__", failing)
            gate.open()
            with pytest.raises(trt.ExecutionError, match="NL608"):
                running.result(SECONDS)
            for future in waiting:
                with pytest.raises(NotRun):
                    future.result(SECONDS)
        for key in (1, 2, 3):
            with pytest.raises(UnknownSequence):
                sequences.step(key, number(key))
        assert [sequences.step(key, number(key), start=True)["y"] for key in (1, 2, 3)] == [8, 9, 10]
        assert sequences.metrics().sequences == 3


def test_a_full_queue_refuses_at_once(network):
    with Sequences(mixing(network), {"s": "sn"}, queue=2) as sequences:
        gate = Gate(sequences)
        futures = [sequences.submit(1, number(1), start=True)]
        assert gate.reached.wait(SECONDS)
        futures += [sequences.submit(1, number(x)) for x in (2, 3)]
        with pytest.raises(Overloaded, match="NL641: 2 of at most 2 requests wait"):
            sequences.submit(1, number(4))
        gate.open()
        assert [future.result(SECONDS)["y"] for future in futures] == [mixed([1]), mixed([1, 2]), mixed([1, 2, 3])]


def test_a_step_whose_time_is_over_is_not_run_nor_those_behind_it(network):
    clock = Time()
    with Sequences(mixing(network), {"s": "sn"}, clock=clock) as sequences:
        gate = Gate(sequences)
        first = sequences.submit(1, number(1), start=True)
        assert gate.reached.wait(SECONDS)
        late, behind = sequences.submit(1, number(2), timeout=5), sequences.submit(1, number(3))
        other = sequences.submit(2, number(4), start=True)
        clock.now = 6
        gate.open()

        assert first.result(SECONDS)["y"] == mixed([1])
        with pytest.raises(TimedOut, match="NL642: a request waited in the queue"):
            late.result(SECONDS)
        with pytest.raises(NotRun, match="NL645: an earlier step of sequence 1 failed"):
            behind.result(SECONDS)
        assert other.result(SECONDS)["y"] == mixed([4])
        assert sequences.step(1, number(5))["y"] == mixed([1, 5])
        assert sequences.metrics().timed_out == 1


def test_a_lost_start_is_made_good_by_the_next_step(network):
    with Sequences(mixing(network), {"s": "sn"}) as sequences:
        sequences.step(1, number(9), start=True)
        gate = Gate(sequences)
        running = sequences.submit(2, number(0), start=True)
        assert gate.reached.wait(SECONDS)
        sequences.submit(1, number(2), start=True).cancel()
        gate.open()
        running.result(SECONDS)
        sequences.step(2, number(0))

        assert sequences.step(1, number(3))["y"] == mixed([3])
        assert sequences.metrics().cancelled == 1


def test_a_cancelled_step_takes_those_behind_it_along_and_none_before(network):
    with Sequences(mixing(network), {"s": "sn"}) as sequences:
        gate = Gate(sequences)
        running = sequences.submit(1, number(1), start=True)
        assert gate.reached.wait(SECONDS)
        before, cancelled, behind, also = (sequences.submit(1, number(other)) for other in (2, 3, 4, 5))
        assert cancelled.cancel()
        assert also.cancel()
        after = sequences.submit(1, number(6))
        with pytest.raises(NotRun):
            behind.result(SECONDS)
        gate.open()

        found = [future.result(SECONDS)["y"] for future in (running, before, after)]
        assert found == [mixed([1]), mixed([1, 2]), mixed([1, 2, 6])]


def test_an_error_is_that_of_its_own_sequence(network):
    with Sequences(asserting(network), {"s": "sn"}) as sequences:
        sequences.step_all([Step(key, small(key), start=True) for key in (4, 8)])
        found = sequences.step_all([Step(4, small(5)), Step(8, small(5))])

        assert found[0]["y"] == 9
        assert isinstance(found[1], trt.ExecutionError)
        assert "more than 10" in str(found[1])
        assert sequences.step(8, small(2))["y"] == 10


def test_a_wrong_input_is_refused_before_the_queue(network):
    with Sequences(recurrent(network), {"h": "hn"}) as sequences:
        with pytest.raises(trt.InputError, match=r"NL603: 'x' is float32\[1,4\] in a step of a sequence"):
            sequences.step(1, {"x": np.zeros((2, 4), np.float32)}, start=True)
        with pytest.raises(trt.InputError, match="NL602: input 'x' is missing"):
            sequences.step(1, {}, start=True)
        assert sequences.metrics().accepted == sequences.metrics().sequences == 0


def refit(engine, factor):
    refitter = trt.Refitter(engine, trt.Logger())
    (name,) = [weight for weight in refitter.get_all_weights() if refitter.get_weights_prototype(weight).size == 16]
    assert refitter.set_named_weights(name, WEIGHTS * np.float32(factor))
    assert refitter.refit_cuda_engine()


@only_on_cpus("the pass is not used elsewhere")
@pytest.mark.skipif(processor() is None, reason="the extra is not installed, or the processor has no kernels")
def test_several_rows_are_not_computed_one_after_the_other_by_kernels(network, monkeypatch):
    monkeypatch.setattr(recurrent_steps, "LEAST_WEIGHTS", 1)
    engine = trt.compile(recurrent(network, 1))

    has_kernel = [
        any(note.by == "recurrent_steps" for note in StepProgram(engine, {"h": "hn"}, {}, rows).latest.notes)
        for rows in (1, 2)
    ]

    assert has_kernel == [True, False]


@pytest.mark.parametrize("another", [False, True])
def test_a_refitted_engine_is_loaded_between_steps(network, another):
    engine = trt.compile(recurrent(network, 1))
    x = np.float32([[0.1, 0.2, 0.3, 0.4]])
    with Sequences(engine, {"h": "hn"}) as sequences:
        sequences.step(1, {"x": x}, start=True)
        new = trt.compile(network) if another else engine
        refit(new, 3)
        sequences.reload(new if another else None)
        found = sequences.step(1, {"x": x})["y"]

    h = np.tanh(x)
    np.testing.assert_allclose(found, np.tanh(h @ (3 * WEIGHTS) + x) ** 2, rtol=1e-5)


def test_an_engine_of_other_types_is_refused(network):
    other = recurrent(trt.INetworkDefinition(), 1)
    with Sequences(mixing(network), {"s": "sn"}) as sequences:
        with pytest.raises((trt.NetworkError, ValueError)):
            sequences.reload(other)
        assert sequences.step(1, number(1), start=True)["y"] == mixed([1])


def test_states_of_other_types_are_refused(network):
    x = network.add_input("s", trt.int32, ())
    mark(network, sn=cast(network, x, trt.float32))

    with pytest.raises(trt.NetworkError, match=r"NL646: state 's' is int32.*, and its next value 'sn' is float32"):
        Sequences(network, {"s": "sn"})
    with pytest.raises(ValueError, match="the network has no output 'snn'; did you mean 'sn'"):
        Sequences(network, {"s": "snn"})


def test_a_closed_service_refuses(network):
    sequences = Sequences(mixing(network), {"s": "sn"})
    gate = Gate(sequences)
    running = sequences.submit(1, number(1), start=True)
    assert gate.reached.wait(SECONDS)
    waiting = sequences.submit(1, number(2))
    closing = threading.Thread(target=sequences.close)
    closing.start()
    with pytest.raises(Closed):
        waiting.result(SECONDS)
    gate.open()
    closing.join(SECONDS)

    assert running.result(SECONDS)["y"] == mixed([1])
    with pytest.raises(Closed, match="NL644"):
        sequences.step(1, number(3))


def test_clients_that_end_cancel_and_give_up_leave_nothing_behind(network):
    with Sequences(mixing(network), {"s": "sn"}, slots=12, sizes=(1, 8), timeout=SECONDS) as sequences:

        def client(seed):
            random, wrong = np.random.default_rng(seed), 0
            for life in range(6):
                seen = []
                for step in range(8):
                    x = int(random.integers(-100, 100))
                    future = sequences.submit((seed, life), number(x), start=step == 0, end=step == 7)
                    if step == 7 or random.random() > 0.2 or not future.cancel():
                        seen.append(x)
                        wrong += future.result(SECONDS)["y"] != mixed(seen)
            return wrong

        with ThreadPoolExecutor(12) as pool:
            assert sum(pool.map(client, range(12))) == 0
        assert sequences.metrics().sequences == 0
        assert sorted(sequences._free) == list(range(12))


@pytest.mark.parametrize("value", ["false", "", None, 2, np.array([True])])
def test_flags_of_a_step_are_bools(network, value):
    with Sequences(mixing(network), {"s": "sn"}, sizes=(1,)) as sequences:
        for flag in ("start", "end"):
            with pytest.raises(TypeError, match=f"{flag} must be a bool, not"):
                sequences.step(1, number(1), **{"start": True, flag: value})
        (refused,) = sequences.step_all([Step(1, number(1), value)])
        assert isinstance(refused, TypeError)
        assert sequences.step(1, number(1), start=np.True_, end=1)["y"] == mixed([1])
        assert sequences.metrics().accepted == 1


def test_a_service_cannot_be_pickled(network):
    with (
        Sequences(mixing(network), {"s": "sn"}) as sequences,
        pytest.raises(TypeError, match="Sequences cannot be pickled or copied; create one in the other process"),
    ):
        pickle.dumps(sequences)
