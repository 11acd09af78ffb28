"""The states of networks of one step: which inputs they are, and their types."""

from collections.abc import Mapping, Sequence
from typing import Any

from netloop.api.engine import ICudaEngine
from netloop.model.graph import ITensor, TypeTable
from netloop.values.diagnostics import Finding, InputError, NetworkError, did_you_mean, reason
from netloop.values.types import UNKNOWN, TensorType

Shapes = Mapping[str, tuple[int, ...]]


def fixed_type(tensor: ITensor, shapes: Shapes) -> TensorType:
    """The type of an input in one step of one sequence; lengths that the network leaves open are 1.

    Raises:
        NetworkError: the input has no array of numbers.
    """
    kind = tensor.type
    if not isinstance(kind, TensorType) or kind.is_string:
        what = f"input {tensor.name!r} is {kind}, and steps of sequences take arrays of numbers"
        raise NetworkError(Finding("NL646", what, "", reason("NL646"), at=tensor))
    shape = tuple(shapes.get(tensor.name, [1 if length == UNKNOWN else length for length in kind.shape]))
    return TensorType(kind.dtype, shape)


def require_weights(engine: ICudaEngine) -> None:
    """Check that an engine has all its weights.

    Raises:
        InputError: it was made of a plan without weights.
    """
    if engine.absent:
        what, fix = "the plan of the engine had no weights", "give it weights with a Refitter, and refit_cuda_engine"
        raise InputError(Finding("NL621", what, "", reason("NL621"), fix))


def require_names(engine: ICudaEngine, states: Mapping[str, str], shapes: Mapping[str, Any]) -> None:
    """Check that states and shapes name inputs, and next states outputs.

    Raises:
        TypeError: the states are no dict.
        ValueError: the network has no input or output of a name, or two states have one next value.
    """
    if not isinstance(states, Mapping):
        raise TypeError(f"states are a dict from inputs to outputs, such as {{'h0': 'h0n'}}, not {states!r}")
    inputs = [tensor.name for tensor in engine.network.inputs]
    outputs = [tensor.name for tensor in engine.network.outputs]
    listed = [("input", state, inputs) for state in (*states, *shapes)]
    for what, name, known in [*listed, *(("output", state, outputs) for state in states.values())]:
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise ValueError(f"the network has no {what} {name!r}" + (hint and f"; {hint}"))
    if len({*states.values()}) < len(states):
        raise ValueError("two states have the same output as their next value")


def require_pairs(
    inputs: Sequence[ITensor], outputs: Sequence[ITensor], states: Mapping[str, str], table: TypeTable
) -> None:
    """Check that each next state is of the type of its state.

    Raises:
        NetworkError: one is not.
    """
    before, after = {tensor.name: tensor for tensor in inputs}, {tensor.name: tensor for tensor in outputs}
    findings: list[Finding] = []
    for name, new in states.items():
        wanted, tensor_type = table[before[name]], table[after[new]]
        if (wanted.dtype, wanted.shape) != (tensor_type.dtype, tensor_type.shape):
            what = f"state {name!r} is {wanted}, and its next value {new!r} is {tensor_type}"
            fix = "reshape or cast the output, or give the shape of a sequence in shapes"
            findings.append(Finding("NL646", what, "", reason("NL646"), fix, at=after[new]))
    if findings:
        raise NetworkError(*findings)


def require_type(name: str, array: Any, wanted: TensorType) -> None:
    """Check that an array is one of a step.

    Raises:
        InputError: it has another shape or element type.
    """
    if array.shape != wanted.shape or array.dtype != wanted.dtype:
        what = f"{name!r} is {wanted} in a step of a sequence, and was given {TensorType(array.dtype, array.shape)}"
        raise InputError(Finding("NL603", what, "", "", "give the array of one step of one sequence"))
