"""The program cache: one program for each set of shapes, reused for inputs of the same shapes and types."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution import executable, program_cache
from netloop.compiler.execution.network_programs import NetworkPrograms
from netloop.compiler.execution.sharded_engine import ShardedEngine
from tests.support.networks import (
    F,
    X,
    assert_outputs,
    choice,
    combine,
    count_is_an_input,
    dynamic_axis,
    length_is_an_input,
    mark,
    running_sum,
)

# ---------------------------------------------------------------------- compiling


@pytest.fixture
def compiled(monkeypatch):
    """A list that gets one item for each compiled program."""
    made = []
    compile_ = NetworkPrograms._compile

    def noted(self, *arguments):
        made.append(self)
        return compile_(self, *arguments)

    monkeypatch.setattr(NetworkPrograms, "_compile", noted)
    return made


def test_program_of_fixed_shapes_is_compiled_at_once(compiled):
    engine = trt.compile(running_sum())
    assert len(compiled) == 1
    for _ in range(3):
        engine({"x": X})

    assert len(compiled) == 1


def test_program_is_compiled_for_each_shape_once(compiled):
    engine = trt.compile(dynamic_axis())
    assert len(compiled) == 0
    for length in (3, 2, 3, 0, 2):
        assert_outputs({"y": np.asarray(engine({"x": X[:length, :2]})["y"])}, {"y": np.cumsum(X[:length, :2], 0, F)})

    assert len(compiled) == 3


def test_arrays_of_jax_need_no_program_of_their_own(compiled):
    engine = trt.compile(running_sum())
    engine({"x": jnp.asarray(X)})
    engine({"x": X})

    assert len(compiled) == 1


def test_program_is_compiled_for_each_value_that_decides_a_shape(compiled):
    engine = trt.compile(length_is_an_input())
    for n in (3, 0, 3, 5):
        assert engine({"n": np.int32(n)})["y"].tolist() == list(range(n))

    assert len(compiled) == 3


def test_value_that_decides_no_shape_needs_no_program_of_its_own(compiled):
    engine = trt.compile(count_is_an_input())
    for n in (3, 0, 5):
        engine({"n": np.int32(n)})

    assert len(compiled) == 1


def test_least_recently_used_program_is_dropped(compiled, monkeypatch):
    monkeypatch.setattr(program_cache, "MOST_PROGRAMS", 2)
    engine = trt.compile(length_is_an_input())
    for n in (1, 2, 1, 3, 1, 2):
        engine({"n": np.int32(n)})

    # 1, 2 and 3 are compiled; 3 takes the place of 2, which is compiled again
    assert len(compiled) == 4


def test_both_branches_run_from_one_program(compiled):
    engine = trt.compile(choice())
    for flag, wanted in [(True, [2, 4, 6]), (False, [1, 2, 3])]:
        assert engine({"c": np.bool_(flag), "x": F([1, 2, 3])})["y"].tolist() == wanted

    assert len(compiled) == 1


# ---------------------------------------------------------------------- reuse


def difference(length=2):
    """Three inputs, and three outputs, of which the first depends on their order."""
    network = trt.INetworkDefinition()
    a, b, c = (network.add_input(name, trt.float32, (length,)) for name in "abc")
    product = combine(network, b, c, trt.ElementWiseOperation.PROD)
    return mark(
        network, y=combine(network, a, product, trt.ElementWiseOperation.SUB), p=product, q=combine(network, a, c)
    )


def arrays(a, b, c, make=np.asarray):
    return {name: make(np.full(2, value, F)) for name, value in zip("abc", (a, b, c), strict=True)}


@pytest.mark.parametrize("donated", [["a"], ["b"], ["a", "c"], ["c", "b", "a"]], ids="".join)
def test_inputs_keep_their_order_whichever_are_donated(donated):
    given = arrays(1, 2, 3, jnp.asarray)
    got = trt.compile(difference(), donate=donated)(given)["y"]

    assert got.tolist() == [-5, -5]
    assert [name for name, array in given.items() if array.is_deleted()] == sorted(donated)


@pytest.fixture
def engine():
    return trt.compile(difference())


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
def test_inputs_like_those_of_an_earlier_call_are_not_checked_again(engine, monkeypatch, make):
    engine(arrays(1, 2, 3))
    monkeypatch.setattr(executable, "check_values", None)

    assert engine(arrays(10, 2, 3, make))["y"].tolist() == [4, 4]


def test_inputs_in_another_order_are_those_of_their_names(engine):
    given = arrays(1, 2, 3)

    assert engine(dict(reversed(given.items())))["y"].tolist() == engine(given)["y"].tolist() == [-5, -5]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"b": np.zeros(2)}, r"input 'b' is float32\[2\], and its value is float64\[2\]"),
        ({"b": np.zeros(2, ">f4")}, "input 'b'"),
        ({"b": np.zeros((1, 2), F)}, r"input 'b' is float32\[2\], and its value is float32\[1,2\]"),
        ({"b": jax.device_put(np.zeros(2, np.int32))}, r"input 'b' is float32\[2\], and its value is int32\[2\]"),
        ({"b": None}, "input 'b' is"),
        ({"d": np.zeros(2, F)}, "no input 'd'"),
    ],
)
def test_inputs_unlike_those_of_an_earlier_call_are_checked(engine, change, what):
    engine(arrays(1, 2, 3))
    with pytest.raises(trt.InputError, match=what):
        engine({**arrays(1, 2, 3), **change})


def test_missing_input_is_reported_after_an_earlier_call(engine):
    engine(arrays(1, 2, 3))
    with pytest.raises(trt.InputError, match="input 'b' is missing"):
        engine({name: array for name, array in arrays(1, 2, 3).items() if name != "b"})


def test_input_that_jax_traces_is_reported_after_an_earlier_call(engine):
    engine(arrays(1, 2, 3))
    with pytest.raises(trt.InputError, match="JAX is tracing input 'a'"):
        jax.jit(engine)(arrays(1, 2, 3))


def test_lists_are_inputs_after_arrays_too(engine):
    engine(arrays(1, 2, 3))

    assert engine({**arrays(1, 2, 3), "b": [F(4), F(5)]})["y"].tolist() == [-11, -14]


def test_each_shape_has_its_own_program():
    engine = trt.compile(difference(-1))
    got = [engine({name: np.full(length, 2, F) for name in "abc"})["y"].tolist() for length in (1, 2, 1, 2)]

    assert got == [[-2], [-2, -2]] * 2
    assert engine.program_count == 2


def test_value_that_decides_a_shape_is_read_in_each_call():
    engine = trt.compile(length_is_an_input())

    assert [engine({"n": np.array(n, np.int32)})["y"].tolist() for n in (2, 1, 2)] == [[0, 1], [0], [0, 1]]


# ---------------------------------------------------------------------- threads


def in_threads(number, work):
    """Run ``work`` in concurrent threads, each with its index, and return the results."""
    results, errors = [None] * number, []
    barrier = threading.Barrier(number)

    def run(index):
        barrier.wait()
        try:
            results[index] = work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    return results


def test_many_threads_may_call_one_engine(monkeypatch):
    monkeypatch.setattr(program_cache, "MOST_PROGRAMS", 5)
    engine = trt.compile(dynamic_axis())

    def work(index):
        for call in range(15):
            x = X[: (index + call) % 6, :2] + F(index)
            np.testing.assert_array_equal(engine({"x": x})["y"], np.cumsum(x, 0, F))
        return True

    assert in_threads(8, work) == [True] * 8


def test_many_threads_compile_a_shape_once(compiled):
    engine = trt.compile(dynamic_axis())
    in_threads(8, lambda index: engine({"x": X[:, :2]}))

    assert len(compiled) == 1


def hook_compilations(monkeypatch, kind):
    """A list of functions that each compilation of engines of a kind calls first; the engines are made after it."""
    hooks, compile_ = [], kind._compile

    def hooked(self, *arguments):
        for hook in hooks:
            hook()
        return compile_(self, *arguments)

    monkeypatch.setattr(kind, "_compile", hooked)
    return hooks


@pytest.fixture(params=[NetworkPrograms, ShardedEngine])
def compiling(request, monkeypatch):
    """An engine with an open length, and the functions that its compilations call."""
    hooks = hook_compilations(monkeypatch, request.param)
    is_on_mesh = request.param is ShardedEngine
    return trt.shard(dynamic_axis(), jax.make_mesh((1,), ("x",))) if is_on_mesh else trt.compile(dynamic_axis()), hooks


def sums(engine, length):
    assert_outputs({"y": np.asarray(engine({"x": X[:length, :2]})["y"])}, {"y": np.cumsum(X[:length, :2], 0, F)})


def test_call_of_a_compiled_shape_does_not_wait_while_another_one_is_compiled(compiling):
    engine, hooks = compiling
    for length in (3, 2):
        sums(engine, length)
    begun, free, ends = threading.Event(), threading.Event(), []
    hooks.append(lambda: (begun.set(), ends.append(free.wait(5))))
    own = getattr(engine, "executable", engine)
    compiles = threading.Thread(target=own.prepare, args=({"x": X[:1, :2]},))
    compiles.start()
    assert begun.wait(20)
    for length in (3, 2):
        sums(engine, length)
    free.set()
    compiles.join()

    assert ends == [True]


def test_different_shapes_are_compiled_side_by_side(compiling):
    engine, hooks = compiling
    hooks.append(threading.Barrier(2, timeout=20).wait)  # of two that begin before one of them ends
    in_threads(2, lambda index: sums(engine, 2 + index))


def test_shape_is_compiled_once_for_two_threads(compiling):
    engine, hooks = compiling
    calls = []
    hooks.append(lambda: calls.append(time.sleep(0.05)))
    in_threads(3, lambda index: sums(engine, 2))

    assert len(calls) == 1


def test_thread_that_waits_for_a_compilation_that_fails_compiles_itself(compiling):
    engine, hooks = compiling
    calls = []

    def fails_at_first():
        calls.append(time.sleep(0.05))
        if len(calls) == 1:
            raise KeyboardInterrupt

    def work(index):
        try:
            sums(engine, 2)
        except KeyboardInterrupt:
            return "interrupted"
        return "compiled"

    hooks.append(fails_at_first)
    assert sorted(in_threads(2, work)) == ["compiled", "interrupted"]
    assert len(calls) == 2


def test_third_length_shares_a_program_while_two_others_are_compiled(monkeypatch):
    hooks = hook_compilations(monkeypatch, NetworkPrograms)
    engine, begun, free = trt.compile(dynamic_axis()), threading.Barrier(3, timeout=20), threading.Event()
    hooks += [begun.wait, lambda: free.wait(20)]
    threads = [threading.Thread(target=sums, args=(engine, length)) for length in (1, 2)]
    for thread in threads:
        thread.start()
    begun.wait()
    sums(engine, 3)  # a third compilation would wait for others
    free.set()
    for thread in threads:
        thread.join()

    assert engine.program_count == 3


def test_many_threads_may_compile_networks():
    got = in_threads(4, lambda index: trt.compile(running_sum(index))({"x": X})["y"].tolist())

    assert got == [list(X[:index].sum(0)) for index in range(4)]
