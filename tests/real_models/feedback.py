"""Decoders whose cache is an output of one step and an input of the next."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from tests.real_models.costs import Follow, same_inputs
from tests.real_models.recipe import Inputs, Sizes

STEPS = 10
Feedback = dict[str, str]
"""The outputs that are inputs of the next step, and the names of those."""


def file_of(model: Path) -> Path:
    return model.with_suffix(".feedback.json")


def save_steps(model: Path, inputs: Inputs, feedback: Feedback) -> Sizes:
    """The inputs of each step of a decoder by onnxruntime, which takes its likeliest token and its cache back.

    The first output is the logits ``[batch, length, tokens]``.
    """
    file_of(model).write_text(json.dumps(feedback), encoding="utf-8")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    steps = [inputs]
    while len(steps) < STEPS:
        outputs = dict(zip(names, session.run(None, steps[-1]), strict=True))
        steps.append(_next(steps[-1], outputs, feedback))
    return steps


def _next(inputs: Inputs, outputs: dict[str, Any], feedback: Feedback) -> Inputs:
    """The inputs of the next step: masks get a column of ones, positions follow, and others stay."""
    token = next(iter(outputs.values()))[:, -1:].argmax(-1).astype(np.int64)
    following = {**inputs, **{target: outputs[source] for source, target in feedback.items()}}
    for name, array in inputs.items():
        if name in ("input_ids", "decoder_input_ids"):
            following[name] = token
        elif name == "attention_mask":
            following[name] = np.concatenate([array, np.ones_like(array[:, :1])], 1)
        elif name == "position_ids":
            following[name] = array[:, -1:] + 1
        elif name == "use_cache_branch":
            following[name] = np.ones_like(array)
    return following


def follow(model: Path) -> Follow:
    """The inputs of each call of a model: of a decoder, the cache is that of the call before."""
    if not file_of(model).exists():
        return same_inputs
    feedback: Feedback = json.loads(file_of(model).read_text(encoding="utf-8"))
    names = [output.name for output in onnx.load(model, load_external_data=False).graph.output]

    def inputs_of_step(inputs: Inputs, outputs: list[Any] | None) -> Inputs:
        if outputs is None:
            return inputs
        return {
            **inputs,
            **{feedback[name]: array for name, array in zip(names, outputs, strict=True) if name in feedback},
        }

    return inputs_of_step
