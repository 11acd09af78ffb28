"""Models in a process of their own: the same results and errors, and what happens when a limit is exceeded."""

import os
import signal
import time

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.sandbox import SandboxError
from netloop.values.diagnostics import FileFormatError, Finding
from tests.support.networks import WHILE, Op, combine, counted, counter, last, mark, stacked

INPUTS = {"b": np.array([1.5, -2], jnp.bfloat16), "n": np.int32(3), "m": np.int64(4), "flag": np.bool_([1, 0])}


def many(network: trt.INetworkDefinition, length: ITensor) -> ITensor:
    """So many numbers, in a loop of as many iterations."""
    loop = counted(network, length)
    return stacked(loop, counter(network, loop, 0, np.int64), length)


def example() -> trt.INetworkDefinition:
    """y: n, counted by a loop that never ends if n is negative; z: b + b; w: m numbers; f: flag."""
    network = trt.INetworkDefinition()
    b, n = network.add_input("b", trt.bfloat16, (2,)), network.add_input("n", trt.int32, ())
    m, flag = network.add_input("m", trt.int64, ()), network.add_input("flag", trt.bool, (-1,))
    loop = network.add_loop()
    now = counter(network, loop)
    # a loop that ends after very many iterations does not do: LLVM finds out what it computes
    below = combine(network, now, n, Op.LESS)
    loop.add_trip_limit(combine(network, below, combine(network, n, 0, Op.LESS), Op.OR), WHILE)
    same = network.add_identity(flag).get_output(0)
    return mark(network, y=last(loop, now), z=combine(network, b, b), w=many(network, m), f=same)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("sandbox") / "example.plan"
    path.write_bytes(trt.compile(example()).serialize())
    return path


@pytest.fixture(scope="module")
def shared(path):
    """A model that no test ends."""
    with trt.sandbox.load(path) as model:
        yield model


def is_gone(pid: int) -> bool:
    """Whether there is no process of a number, not even a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_model_gives_what_its_engine_gives(shared):
    expected = trt.compile(example())(INPUTS)

    for found in (shared(**INPUTS), shared(INPUTS), shared(INPUTS, n=np.int32(3))):
        assert list(found) == ["y", "z", "w", "f"]
        for name, wanted in expected.items():
            assert found[name].dtype == wanted.dtype
            np.testing.assert_array_equal(found[name], np.asarray(wanted))


def test_model_says_what_it_takes_and_gives(shared):
    assert list(shared.inputs) == ["b", "n", "m", "flag"]
    assert shared.inputs["b"] == ("tensor", jnp.bfloat16, (2,))
    assert shared.inputs["flag"] == ("tensor", np.bool_, (-1,))
    assert shared.outputs["w"] == ("tensor", np.int64, (-1,))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"n": np.int64(3)}, trt.InputError),
        ({"nn": np.int32(3)}, trt.InputError),
        ({"n": None}, trt.InputError),
        ({"m": np.int64(-1)}, trt.ExecutionError),
    ],
)
def test_error_is_that_of_the_engine(shared, changed, error):
    with pytest.raises(error) as expected:
        trt.compile(example())({**INPUTS, **changed})
    with pytest.raises(error) as caught:
        shared({**INPUTS, **changed})

    assert type(caught.value) is type(expected.value)
    for found, wanted in zip(caught.value.findings, expected.value.findings, strict=True):
        assert (found.code, found.what, found.severity) == (wanted.code, wanted.what, wanted.severity)
    assert shared(INPUTS)["y"] == 3


def test_array_of_a_type_that_no_tensor_has_is_refused(shared):
    with pytest.raises(trt.InputError, match="NL603: the input 'n' has the element type complex128"):
        shared(INPUTS, n=1j)
    with pytest.raises(trt.InputError, match="NL603: the value for the input 'n' is not an array"):
        shared(INPUTS, n=[[1], [2, 3]])


def test_output_whose_rank_the_call_decides(tmp_path):
    network = trt.INetworkDefinition()
    x, c = network.add_input("x", trt.float32, (2,)), network.add_input("c", trt.bool, ())
    conditional = network.add_if_conditional()
    conditional.set_condition(c)
    row = network.add_unsqueeze(x, network.add_constant((1,), np.int64([0])).get_output(0)).get_output(0)
    mark(network, y=conditional.add_output(x, row).get_output(0))
    path = tmp_path / "ranks.plan"
    path.write_bytes(trt.compile(network).serialize())

    with trt.sandbox.load(path) as model:
        assert model.outputs["y"].shape is None
        assert [model(x=np.ones(2, np.float32), c=np.bool_(c))["y"].shape for c in (True, False)] == [(2,), (1, 2)]


def test_call_that_takes_too_long_ends_the_process(path):
    with trt.sandbox.load(path) as model:
        model.seconds, begin = 0.5, time.monotonic()
        with pytest.raises(
            SandboxError, match=r"NL631: the process of 'example.plan' took longer than 0.5 sec"
        ) as caught:
            model(INPUTS, n=np.int32(-1))

        assert time.monotonic() - begin < 60
        assert caught.value.ended_by == "seconds"
        assert is_gone(model.pid)
        with pytest.raises(SandboxError, match=r"NL634: the process of 'example.plan' has ended"):
            model(INPUTS)


@pytest.mark.slow
def test_call_that_needs_too_much_memory_is_a_typed_error(path):
    """XLA reports it, or ends its process."""
    with (
        trt.sandbox.load(path, memory=3 << 30) as model,
        pytest.raises((SandboxError, trt.ExecutionError), match=r"NL632|NL608") as caught,
    ):
        model(INPUTS, m=np.int64(1 << 33))

    assert isinstance(caught.value, trt.NetloopError)


@pytest.mark.skipif(os.name != "posix" or not os.path.exists("/proc"), reason="limits of the address space are Linux's")
def test_memory_that_does_not_suffice_for_xla_ends_the_process_and_not_this_one(path):
    """Which of XLA, the C library and Python finds none first depends on the machine.

    The limit is less than what JAX takes once it is imported: a gibibyte suffices on some machines.
    """
    with pytest.raises(SandboxError, match=r"NL632: the process of 'example.plan' ") as caught:
        trt.sandbox.load(path, memory=1 << 28)

    assert caught.value.ended_by not in {"", "seconds"}


def test_file_that_memory_does_not_suffice_for_is_a_lack_of_memory(path, monkeypatch):
    """The allocation that fails may be one of the importer, whose error is about the file."""
    lacking = FileFormatError(Finding("NL755", "there is not enough memory to load it"))
    monkeypatch.setattr("netloop.tools.sandbox.model.error_from_json", lambda *_: lacking)
    with pytest.raises(SandboxError, match=r"NL632: the process of 'missing.plan' ran out of memory") as caught:
        trt.sandbox.load(path.with_name("missing.plan"))

    assert caught.value.ended_by == "memory"


@pytest.mark.slow
def test_damaged_file_is_the_same_error_as_outside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = "damaged.onnx"
    (tmp_path / path).write_bytes(b"no model")
    with pytest.raises(trt.ModelError) as expected:
        trt.onnx.load(path)
    with pytest.raises(trt.ModelError) as caught:
        trt.sandbox.load(path)

    assert str(caught.value) == str(expected.value)


@pytest.mark.slow
def test_process_that_is_killed_between_two_calls_is_an_error_of_the_next(path):
    with trt.sandbox.load(path) as model:
        os.kill(model.pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match="was ended by SIGKILL") as caught:
            model(INPUTS)

    assert caught.value.ended_by == "SIGKILL"


@pytest.mark.slow
@pytest.mark.parametrize(("package", "name"), [("onnx", "m.onnx"), ("openvino", "m.xml")])
def test_model_of_another_format_is_loaded(tmp_path, network, package, name):
    pytest.importorskip(package)
    mark(network, y=combine(network, network.add_input("x", trt.float32, (2,)), 1))
    getattr(trt, package).save(network, tmp_path / name)
    with trt.sandbox.load(tmp_path / name) as model:
        assert model(x=np.float32([1, 2]))["y"].tolist() == [2, 3]


@pytest.mark.slow
def test_strings_pass(tmp_path):
    path = tmp_path / "text.plan"
    network = trt.INetworkDefinition()
    text, many = network.add_input("text", trt.string, (-1,)), network.add_sequence_input("many", trt.string, (-1,))
    mark(network, y=network.add_identity(text).get_output(0), all=network.add_sequence_erase(many).get_output(0))
    path.write_bytes(trt.compile(network).serialize())
    with trt.sandbox.load(path) as model:
        found = model(text=["a\0", "é"], many=[["b"], ["c"]])
        assert (found["y"].dtype, found["y"].tolist()) == (np.dtype(object), ["a\0", "é"])
        assert [value.tolist() for value in found["all"]] == [["b"]]
        with pytest.raises(trt.InputError, match="NL603: the value for the input 'text' is not an array"):
            model(text=["a", 1], many=[])


@pytest.mark.slow
def test_maps_do_not_pass(tmp_path, network):
    path = tmp_path / "m.plan"
    made = network.add_map_input("m", trt.int64, trt.float32)
    mark(network, y=network.add_map_lookup(made).get_output(0))
    path.write_bytes(trt.compile(network).serialize())

    with pytest.raises(trt.NetworkError, match="'m' is map from int64 to float32") as caught:
        trt.sandbox.load(path)

    assert caught.value.findings[0].code == "NL611"


@pytest.mark.slow
def test_sequences_and_absent_values_pass(tmp_path, network):
    path = tmp_path / "m.plan"
    tensors = network.add_sequence_input("s", trt.float32, (-1,))
    maybe = network.add_optional_input("o", trt.float32, (2,))
    mark(network, t=network.add_sequence_erase(tensors).get_output(0))
    network.mark_output(maybe)
    path.write_bytes(trt.compile(network).serialize())
    with trt.sandbox.load(path) as model:
        assert [info.kind for info in model.inputs.values()] == ["sequence", "optional"]
        found = model(s=[np.float32([1]), np.float32([2, 3]), np.float32([])], o=None)

    assert [value.tolist() for value in found["t"]] == [[1], [2, 3]]
    assert found["o"] is None


@pytest.mark.parametrize(
    ("wrong", "error", "what"),
    [
        ({"path": "model.pt"}, ValueError, "path must end in one of .onnx, .xml, .plan, not 'model.pt'"),
        ({"memory": "1G"}, TypeError, "memory must be"),
        ({"memory": 0}, ValueError, "memory must be"),
        ({"seconds": "1"}, TypeError, "seconds must be a number, not str"),
        ({"seconds": 0}, ValueError, "seconds must be positive"),
        ({"seconds": float("nan")}, ValueError, "seconds must be positive"),
        ({"seconds": float("inf")}, ValueError, "seconds must be positive and at most 4194304 seconds"),
        ({"seconds": 1e10}, ValueError, "seconds must be positive and at most 4194304 seconds"),
    ],
)
def test_arguments_are_checked(path, wrong, error, what):
    with pytest.raises(error, match=what):
        trt.sandbox.load(**{"path": path, **wrong})
