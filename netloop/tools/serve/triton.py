"""Model repositories for NVIDIA's Triton Inference Server, whose python backend runs netloop."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from netloop.api.batches import has_rows, without_rows
from netloop.api.engine import ICudaEngine
from netloop.api.step_states import Shapes, require_names
from netloop.model.graph import ITensor, check_instance
from netloop.process.atomic_write import write_whole
from netloop.tools.serve.step import StepProgram
from netloop.values.checked_attributes import seconds, whole
from netloop.values.diagnostics import Finding, NetworkError, reason
from netloop.values.types import UNKNOWN, TensorType

Types = dict[str, TensorType]

TYPES = {
    "bool": "TYPE_BOOL",
    "uint8": "TYPE_UINT8",
    "int8": "TYPE_INT8",
    "int32": "TYPE_INT32",
    "int64": "TYPE_INT64",
    "float16": "TYPE_FP16",
    "float32": "TYPE_FP32",
    "float64": "TYPE_FP64",
}
"""Triton's element types that numpy has too, by numpy's names."""

OPTIONS = "netloop"
"""The key of the parameter of a model's configuration that has the options as JSON."""

PLAN, SCRIPT, CONFIG = "model.plan", "model.py", "config.pbtxt"

MODEL = '''"""A model for Triton's python backend, written by netloop. The backend's Python needs netloop."""

import triton_python_backend_utils

from netloop.tools.serve.triton_model import TritonModel


class TritonPythonModel(TritonModel):
    """The plan next to this file."""

    utils = triton_python_backend_utils
'''


def write_repository(
    engine: ICudaEngine,
    path: str | os.PathLike[str],
    name: str = "model",
    *,
    states: Mapping[str, str] | None = None,
    shapes: Shapes | None = None,
    sizes: Iterable[int] = (1, 4, 16, 64),
    slots: int = 1024,
    idle: float = 60.0,
    delay: float = 0.0,
    version: int = 1,
    device: str | None = None,
) -> Path:
    """Write an engine as a model of a Triton model repository; return the folder of the model.

    The folder has ``config.pbtxt``, and ``1/model.py`` with ``1/model.plan`` for Triton's python backend, in whose
    environment netloop must be installed. Without states, Triton's dynamic batcher joins requests, along the first axis
    of each input and output; where one has no such axis, requests are answered one at a time. With states, its sequence
    batcher does: they stay in the server, and a request has a correlation id, a start flag and an end flag; its inputs
    are those of :class:`Sequences`.

    Args:
        engine: the engine.
        path: the repository, a folder that may exist.
        name: the name of the model.
        states: for each input that is a state, the output that is its next value.
        shapes: with states, the shapes of inputs in one step of one sequence, by name.
        sizes: the numbers of rows, or of steps, for which programs are compiled; the largest is Triton's
            ``max_batch_size``. Without states there may be none, for one request at a time.
        slots: the largest number of sequences with a state.
        idle: the seconds after which a sequence without requests loses its state.
        delay: the seconds that Triton waits for more requests.
        version: the number of the version folder.
        device: the name of the device that the server computes on, such as ``"cuda:1"``; None for JAX's default one
            there.

    Raises:
        TypeError, ValueError: an argument is not of its range, or names no input or output.
        NetworkError: an input or output has an element type that Triton's python backend has not, or states do not fit
            their next values.
        OSError: a file cannot be written.
    """
    check_instance("engine", engine, ICudaEngine)
    if Path(name).name != name or name in ("", ".", ".."):
        raise ValueError(f"{name!r} cannot be the name of a folder: a model has a name such as 'generator'")
    rows = sorted({whole(1)("a batch size", size) for size in sizes})
    if states and not rows:
        raise ValueError("batch sizes are positive integers, such as (1, 8, 64)")
    require_names(engine, states or {}, shapes or {})
    if not states and without_rows(engine.network):
        rows = []
    values = {"slots": whole(1)("slots", slots), "idle": seconds()("idle", idle), "delay": seconds()("delay", delay)}
    fixed = {key: list(shape) for key, shape in (shapes or {}).items()}
    placed = {} if device is None else {"device": check_instance("device", device, str)}
    options = {"states": dict(states or {}), "shapes": fixed, "sizes": rows, **values, **placed}
    inputs, outputs = _steps(engine, states, shapes or {}) if states else _whole(engine, bool(rows))
    text = config(name, inputs, outputs, options)
    folder = Path(path) / name
    within = folder / str(whole(1)("version", version))
    within.mkdir(parents=True, exist_ok=True)
    engine.save(within / PLAN)
    write_whole(within / SCRIPT, [MODEL.encode()])
    # the last one: a server that polls the repository loads a model once it has a configuration
    write_whole(folder / CONFIG, [text.encode()])
    return folder


def config(
    name: str, inputs: Mapping[str, TensorType], outputs: Mapping[str, TensorType], options: Mapping[str, Any]
) -> str:
    """The text of ``config.pbtxt`` for inputs and outputs by name, whose types are without the axis of rows."""
    lines = [f"name: {_quoted(name)}", 'backend: "python"', f"max_batch_size: {max(options['sizes'], default=0)}"]
    lines += [_tensors("input", inputs), _tensors("output", outputs)]
    lines += [
        "# one process, which computes on JAX's device; KIND_GPU makes one for each GPU",
        "instance_group [ { count: 1 kind: KIND_CPU } ]",
    ]
    delay = f"max_queue_delay_microseconds: {_microseconds(options['delay'])}"
    if options["states"]:
        lines += [
            "sequence_batching {",
            f"  max_sequence_idle_microseconds: {_microseconds(options['idle'])}",
            f"  oldest {{ max_candidate_sequences: {options['slots']} {delay} }}",
            "}",
        ]
    elif options["sizes"]:
        lines += [f"dynamic_batching {{ {delay} }}"]
    value = _quoted(json.dumps(options, sort_keys=True))
    lines += [f"parameters {{ key: {_quoted(OPTIONS)} value {{ string_value: {value} }} }}"]
    return "\n".join(lines) + "\n"


def _steps(engine: ICudaEngine, states: Mapping[str, str], shapes: Shapes) -> tuple[Types, Types]:
    """The types of one step of one sequence; an axis of rows, which has the length 1, is Triton's own."""
    program = StepProgram(engine, states, shapes)
    open_ones = {tensor.name for tensor in (*engine.network.inputs, *engine.network.outputs) if has_rows(tensor)}

    def bare(name: str, of: TensorType) -> TensorType:
        is_row = name in open_ones and of.shape[0] == 1
        return TensorType(of.dtype, of.shape[1:] if is_row else of.shape)

    inputs, outputs = program.inputs, program.output_types
    return {name: bare(name, inputs[name]) for name in inputs}, {name: bare(name, outputs[name]) for name in outputs}


def _whole(engine: ICudaEngine, has_axis: bool) -> tuple[Types, Types]:
    """The types of tensors, without the axis of rows if they have it."""

    def of(tensors: Iterable[ITensor]) -> Types:
        return {tensor.name: TensorType(tensor.type.dtype, tensor.type.shape[has_axis:]) for tensor in tensors}

    return of(engine.network.inputs), of(engine.network.outputs)


def _tensors(kind: str, types: Mapping[str, TensorType]) -> str:
    return "\n".join(
        f"{kind} {{ name: {_quoted(name)} data_type: {_type(name, of)} dims: [ {_dims(of)} ] }}"
        for name, of in types.items()
    )


def _dims(of: TensorType) -> str:
    """The lengths of a row; Triton has no tensors without axes, so a number is one of one element."""
    return ", ".join(str(-1 if length == UNKNOWN else length) for length in of.shape) or "1"


def _type(name: str, of: TensorType) -> str:
    word = TYPES.get("" if of.is_string else np.dtype(of.dtype).name)
    if word is None:
        what = f"{name!r} is {of}, an element type that Triton's python backend has not as a numpy array"
        fix = f"cast it to one of {', '.join(TYPES)}"
        raise NetworkError(Finding("NL647", what, "", reason("NL647"), fix))
    return word


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)


def _quoted(text: str) -> str:
    """A string as text of protocol buffers has it."""
    return json.dumps(text, ensure_ascii=False)
