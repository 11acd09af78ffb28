"""Any reply of the process of a sandboxed model is its outputs, or a typed error.

Replies of real models are changed at random, and read in this process.
"""

import io
import json
import os
import random
import threading
import weakref
from concurrent.futures import Future
from types import SimpleNamespace
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.tools.sandbox import SandboxError, child, load, model, process
from netloop.tools.sandbox.errors import error_as_json
from netloop.tools.sandbox.frames import write_frame
from netloop.values.string_arrays import STRING
from netloop.values.types import agree

MEMORY = 1 << 20


def network():
    """Outputs of every kind, each an input of its name."""
    made = trt.INetworkDefinition()
    tensors = [
        made.add_input("x", trt.float32, (2, -1)),
        made.add_input("b", trt.bool, (-1,)),
        made.add_input("u", trt.uint4, (3,)),
        made.add_input("text", trt.string, (-1,)),
        made.add_sequence_input("s", trt.int64, (-1,)),
        made.add_optional_input("o", trt.bfloat16, ()),
    ]
    for tensor in tensors:
        made.mark_output(tensor)
    return made


OUTPUTS = {
    "x": np.float32([[1, 2], [3, 4]]),
    "b": np.bool_([1, 0, 1]),
    "u": np.array([1, 2, 3], jnp.uint4),
    "text": np.array(["a", "bc"], STRING),
    "s": [np.int64([1]), np.int64([2, 3])],
    "o": None,
}
ERROR = trt.InputError(trt.Finding("NL602", "input 'x' is missing", "m.py:1", "it is", "pass it"))


def frame(header, values):
    stream = io.BytesIO()
    write_frame(stream, header, values)
    return stream.getvalue()


DESCRIPTION = frame(child._described(SimpleNamespace(network=network())), {})
ANSWER, FAILURE = frame({}, OUTPUTS), frame({"error": error_as_json(ERROR)}, {})


class Replaying(process.ChildProcess):
    """Takes the place of a process: the replies are there already."""

    replies: ClassVar[list[bytes]] = []

    def __init__(self, name, seconds):
        self.name, self.seconds = name, seconds
        self._is_late, self._lock, self._parent = False, threading.Lock(), os.getpid()
        self._process, self._stderr = SimpleNamespace(returncode=0), SimpleNamespace(lines=list)
        self._exchanges, self._end = self, weakref.finalize(self, int)

    def begin(self, header, values, most):
        answer = Future()
        try:
            answer.set_result(process.exchange(io.BytesIO(), io.BytesIO(self.replies.pop(0)), header, values, most))
        except Exception as error:
            answer.set_exception(error)
        return answer

    def _wait_for_end(self, deadline):
        pass


@pytest.fixture
def answered(monkeypatch):
    """A function that loads a model and calls it, with replies in the place of a process."""
    monkeypatch.setattr(model, "ChildProcess", Replaying)

    def run(*replies):
        monkeypatch.setattr(Replaying, "replies", [*replies])
        loaded = load("m.plan", memory=MEMORY)
        return loaded, loaded()

    return run


JUNK = (
    None, True, False, 0, -1, 3, 1 << 31, 1 << 61, 1 << 64, -(1 << 70), 1.5, float("nan"), float("inf"), "", "float32",
    "int64", "string", "uint4", "x", "\ud800", "sequence", "tensor", "optional", "InputError", "error", [], [0], [-1],
    [1 << 61, 1 << 61, 0], [[[]]], {}, {"dtype": "bool", "shape": [0]}, {"values": {}}, ["x"] * 40,
)  # fmt: skip


def changed(reply, choose):
    """A reply with one fault: in a place of its header, or in its bytes."""
    length = int.from_bytes(reply[:4], "big")
    header, data = json.loads(reply[4 : 4 + length]), reply[4 + length :]
    kind = choose.randrange(6)
    if kind:
        header = {"root": header}
        spoil(header, choose)
        text = json.dumps(header.get("root")).encode()
        return len(text).to_bytes(4, "big") + text + data
    at = choose.randrange(len(reply))
    return choose.choice(
        (
            reply[:at],
            reply + bytes(choose.randrange(1, 9)),
            reply[:at] + bytes([choose.randrange(256)]) + reply[at + 1 :],
            reply[:at] + reply[at : at + 7] + reply[at:],
        )
    )


def spoil(root, choose):
    """Change a value somewhere in JSON, or add or remove one."""
    places = [(root, "root")]
    for holder, key in places:
        value = holder[key]
        names = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        places += [(value, name) for name in names]
    holder, key = choose.choice(places)
    action = choose.randrange(5)
    if action == 0:
        del holder[key]
    elif action == 1 and isinstance(holder, list):
        holder.insert(choose.randrange(len(holder) + 1), holder[key])
    elif action == 1:
        holder[choose.choice(("more", "error", "values", "bytes"))] = choose.choice(JUNK)
    else:
        holder[key] = choose.choice(JUNK)


@pytest.mark.parametrize("seed", range(4))
def test_changed_reply_is_outputs_of_the_declared_types_or_a_typed_error(answered, seed):
    choose, refused = random.Random(seed), 0
    for _ in range(150):
        replies = [DESCRIPTION, choose.choice((ANSWER, ANSWER, FAILURE))]
        place = choose.randrange(2)
        replies[place] = changed(replies[place], choose)
        try:
            loaded, outputs = answered(*replies)
        except trt.NetloopError:
            refused += 1
            continue
        assert list(outputs) == list(loaded.outputs)
        for name, info in loaded.outputs.items():
            arrays = outputs[name] if isinstance(outputs[name], list) else [outputs[name]]
            assert all(is_of(array, info) for array in arrays)

    assert refused > 75


def is_of(value, info):
    if value is None:
        return info.kind == "optional"
    dtype = np.dtype(object) if info.dtype == STRING else info.dtype
    return value.dtype == dtype and (info.shape is None or agree(value.shape, info.shape))


def test_replies_without_a_change_are_outputs(answered):
    _, outputs = answered(DESCRIPTION, ANSWER)

    assert list(outputs) == list(OUTPUTS)
    assert outputs["text"].tolist() == ["a", "bc"]
    assert [tensor.tolist() for tensor in outputs["s"]] == [[1], [2, 3]]
    with pytest.raises(trt.InputError, match="NL602"):
        answered(DESCRIPTION, FAILURE)


def with_value(name, **form):
    """A reply with another form for a value, without the bytes of arrays."""
    header = json.loads(ANSWER[4 : 4 + int.from_bytes(ANSWER[:4], "big")])
    forms = {value: {**header["values"]["b"], "shape": [0]} for value in header["values"]}
    text = json.dumps({"values": {**forms, "s": [], "o": None, name: form}}).encode()
    return len(text).to_bytes(4, "big") + text


HUGE = 1 << 61
NO_FINDINGS = {"class": "ModelError", "text": "", "findings": [{}]}
LIKE_A_FLOAT = {"dtype": "float32", "shape": []}
HEADERS = {
    "class of Python": {"error": {"class": "ValueError", "text": "no"}},
    "class of Python's files": {"error": {"class": "FileNotFoundError", "text": "no"}},
    "text that is none": {"error": {"class": "InputError", "text": 1}},
    "findings that are none": {"error": NO_FINDINGS},
    "sequence of other types": {"values": {"s": [LIKE_A_FLOAT]}},
}


NO_DIMS = ([HUGE, HUGE, 0], [0, HUGE, HUGE], [-1, 0], [1 << 62], [1] * 33, [float("nan")], [True], 3)
NO_TYPES = ("object", ["float32"], {}, None, 1)


@pytest.mark.parametrize("name", OUTPUTS)
def test_forms_that_no_array_has_are_refused(answered, name):
    forms = [(dtype, dims) for dtype in ("float32", "bool", "uint4", "string") for dims in NO_DIMS]
    for dtype, dims in (*forms, *((no_type, [0]) for no_type in NO_TYPES)):
        with pytest.raises(SandboxError, match=r"NL633: the process of 'm.plan' answered with"):
            answered(DESCRIPTION, with_value(name, dtype=dtype, shape=dims, bytes=0))


TEXTS = {
    **{name: json.dumps({"values": {}, **header}).encode() for name, header in HEADERS.items()},
    "very deep": b'{"values": ' + b"[" * 100_000,
    "deep": b'{"values": {"x": {"dtype": ' + b"[" * 900 + b"]" * 900 + b', "shape": []}}}',
    "huge number": b'{"values": {"x": {"dtype": "float32", "shape": [' + b"9" * 5000 + b"]}}}",
    "not a number": b'{"values": {"x": {"dtype": "float32", "shape": [NaN]}}}',
    "not UTF-8": b'{"values": {"\xff": null}}',
    "list": b"[]",
    "nothing": b"",
}


@pytest.mark.parametrize("case", TEXTS)
def test_reply_of_another_form_is_refused(answered, case):
    text = TEXTS[case]
    with pytest.raises(SandboxError, match="NL633"):
        answered(DESCRIPTION, len(text).to_bytes(4, "big") + text + bytes(64))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s", [np.float32([1])]),
        ("s", [np.int64([1]), np.int64(1)]),
        ("s", np.int64([1])),
        ("s", None),
        ("o", np.float32(1)),
        ("o", np.zeros(2, jnp.bfloat16)),
        ("o", [np.int64(1)]),
        ("x", [OUTPUTS["x"]]),
        ("x", None),
        ("text", np.int64([1, 2])),
    ],
)
def test_value_of_another_type_than_its_output_is_refused(answered, name, value):
    with pytest.raises(SandboxError, match=f"NL633: .* with another type for '{name}' than it declared"):
        answered(DESCRIPTION, frame({}, {**OUTPUTS, name: value}))


def test_description_is_refused_that_has_values_or_a_name_twice(answered):
    tensors = child._described(SimpleNamespace(network=network()))
    with pytest.raises(SandboxError, match=r"NL633: .* with the values .*'y'.* instead of a description"):
        answered(frame(tensors, {"y": np.float32(1)}))
    with pytest.raises(SandboxError, match=r"NL633: .* with two tensors of the same name"):
        answered(frame({**tensors, "outputs": tensors["outputs"] * 2}, {}))


def test_reply_for_which_there_is_no_memory_is_refused(answered, monkeypatch):
    def lacking(*given):
        raise MemoryError

    monkeypatch.setattr(process, "read_frame", lacking)
    with pytest.raises(SandboxError, match=r"NL633: .* with more than there is memory for"):
        answered(DESCRIPTION)
