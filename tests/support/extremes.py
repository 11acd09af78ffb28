"""Layers of every kind with extreme numbers, each run in a process of its own that may die.

``python -m tests.support.extremes FIRST`` runs the cases from number FIRST on, and prints one line before each and one
after it, so that the case that ended the process is known.
"""

import inspect
import json
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_type_hints

import jax
import numpy as np

import netloop as trt
from netloop.dims import DimsLike, PermutationLike
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.types import OptionalType, SequenceType, TensorType
from tests.support.layer_specs import CALLS, Tensors

INTS = [0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63)]
FLOATS = [float("nan"), float("inf"), float("-inf"), 0.0, -1.0, 5e-324, 1e-40, 1e38, 1e308, -1e308]
MEMORY = 4 << 30
SECONDS = 20
WEIGHTS = [np.full(shape, 0.5, np.float32) for shape in [(2, 3, 4), (2, 3, 4), (2, 4, 3)]]

Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Extreme:
    """A layer with extreme numbers: an argument of its method, an attribute, or the values of an input."""

    method: str
    kind: str
    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.method} {self.kind} {self.name} = {self.value}"


def added(method: str, **changed: Any) -> tuple[trt.INetworkDefinition, ILayer]:
    """A network of the layer of an example call, some arguments changed."""
    network = trt.INetworkDefinition()
    tensors = Tensors(network)
    arguments = CALLS[method](tensors)
    for name, value in changed.items():
        if isinstance(arguments[name], ITensor):
            old = arguments[name].type.value
            value = tensors.constant(value, old.dtype)
        arguments[name] = value
    layer = getattr(network, method)(**arguments)
    if isinstance(layer, trt.IMoELayer):
        layer.set_gated_weights(*(tensors.constant(each, np.float32) for each in WEIGHTS), trt.MoEActType.SILU)
    if isinstance(layer, trt.IResizeLayer):
        layer.shape = (4, 3)
    made = [each for each in network if not isinstance(each, trt.IConstantLayer)]
    return network, (made or [network[-1]])[-1]


def spread(extreme: int, usual: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Tuples with an extreme number in all places, and in the first and the last only."""
    yield (extreme,) * len(usual)
    if len(usual) > 1:
        yield (extreme, *usual[1:])
        yield (*usual[:-1], extreme)


def is_int(value: Any) -> bool:
    return type(value) is int


def fits(value: int, dtype: np.dtype[Any]) -> bool:
    info = np.iinfo(dtype)
    return info.min <= value <= info.max


def cases() -> Iterator[Extreme]:
    for method in CALLS:
        yield from argument_cases(method)
        yield from attribute_cases(method)
        yield from input_cases(method)


def argument_cases(method: str) -> Iterator[Extreme]:
    arguments = CALLS[method](Tensors(trt.INetworkDefinition()))
    for name, value in arguments.items():
        if is_int(value):
            yield from (Extreme(method, "argument", name, each) for each in INTS)
        elif isinstance(value, float):
            yield from (Extreme(method, "argument", name, each) for each in FLOATS)
        elif isinstance(value, tuple) and all(map(is_int, value)):
            yield from (Extreme(method, "argument", name, made) for each in INTS for made in spread(each, value))
        elif isinstance(value, ITensor) and value.producer is not None:
            known = value.type.value
            if known is not None and known.dtype.kind == "i":
                for each in INTS:
                    if fits(each, known.dtype):
                        made = [np.full(known.shape, each).tolist()]
                        made += [list(one) for one in spread(each, tuple(known.tolist()))] if known.ndim else []
                        yield from (Extreme(method, "argument", name, one) for one in made)


def attribute_cases(method: str) -> Iterator[Extreme]:
    _, layer = added(method)
    hints = get_type_hints(type(layer), include_extras=True)
    rank = len(layer.inputs[0].shape) if layer.inputs and layer.inputs[0] is not None else 1
    for name in layer.ATTRIBUTES:
        hint, value = hints[name], getattr(layer, name)
        if hint is int:
            yield from (Extreme(method, "attribute", name, each) for each in INTS)
        elif hint is float or "float" in str(hint):
            is_many = hint is not float and not isinstance(value, float) and "Sequence" in str(hint)
            for each in FLOATS:
                yield Extreme(method, "attribute", name, [each] * rank if is_many else each)
        elif hint in (DimsLike, PermutationLike) or hint == DimsLike | None or hint == PermutationLike | None:
            usual = [tuple(value)] if value else [(1,) * n for n in sorted({1, max(rank - 2, 1), rank})]
            for each in INTS:
                for one in usual:
                    yield from (Extreme(method, "attribute", name, made) for made in spread(each, one))
        elif hint == int | None:
            yield from (Extreme(method, "attribute", name, each) for each in INTS)


def input_cases(method: str) -> Iterator[Extreme]:
    """The values of inputs at run time; also those that can be set in place of attributes."""
    network, layer = added(method)
    for tensor in network.inputs:
        if tensor.type.is_tensor and tensor.dtype in (trt.int32, trt.int64):
            yield from (
                Extreme(method, "value", tensor.name, each) for each in INTS if fits(each, tensor.type.dtype)
            )
        elif tensor.type.is_tensor and tensor.dtype is trt.float32:
            yield from (Extreme(method, "value", tensor.name, each) for each in FLOATS if abs(each) < 1e39 or each != each or abs(each) == np.inf)
    rank = len(layer.inputs[0].shape) if layer.inputs and layer.inputs[0] is not None else 1
    for index in range(1 if layer.REQUIRED_INPUTS else 0, layer.MAX_INPUTS):
        if index < layer.num_inputs and layer.inputs[index] is not None:
            continue
        for shape in sorted({(), (1,), (2,), (rank,)}):
            for dtype in (trt.int32, trt.int64):
                network, layer = added(method)
                layer.set_input(index, network.add_input("more", dtype, shape))
                if not errors(network):
                    for each in INTS:
                        if fits(each, np.dtype(np.int64 if dtype is trt.int64 else np.int32)):
                            yield Extreme(method, "input", json.dumps([index, str(dtype).split(".")[-1], list(shape)]), each)


def errors(network: trt.INetworkDefinition) -> list[trt.Finding]:
    return [each for each in trt.check(network) if each.code != "NL105" and each.severity is trt.Severity.ERROR]


def array(type: TensorType) -> np.ndarray:
    chance = np.random.default_rng(0)
    drawn = chance.integers(0, 2, type.shape) if type.dtype.kind in "biu" else chance.normal(size=type.shape)
    return np.asarray(drawn).astype(type.dtype)


def value_of(type: TensorType) -> Any:
    if isinstance(type, SequenceType | OptionalType):
        element = type.element if isinstance(type.element, TensorType) else TensorType(type.dtype, type.element)
        return [array(element)] * 2 if isinstance(type, SequenceType) else array(element)
    return array(type) if type.value is None else type.value


def run(case: Extreme) -> str:
    """What comes of a case: "refused", "fine" or "ExecutionError"; anything else is an exception's name."""
    given: dict[str, Any] = {}
    try:
        if case.kind == "argument":
            network, layer = added(case.method, **{case.name: case.value})
        else:
            network, layer = added(case.method)
        if case.kind == "attribute":
            setattr(layer, case.name, case.value)
        if case.kind == "input":
            index, dtype, shape = json.loads(case.name)
            layer.set_input(index, network.add_input("more", getattr(trt, dtype.lower()), shape))
            given["more"] = case.value
        if case.kind == "value":
            given[case.name] = case.value
        for tensor in layer.outputs:
            network.mark_output(tensor)
        trt.check(network)
    except (trt.NetloopError, TypeError, ValueError, AttributeError):
        return "refused at once"
    if any(each.severity is trt.Severity.ERROR for each in trt.check(network)):
        return "refused"
    inputs = {each.name: value_of(each.type) for each in network.inputs}
    for name, number in given.items():
        inputs[name] = np.full_like(inputs[name], number)
    return "compiled: " + outcome(lambda: trt.compile(network)(inputs)) + ", reference: " + outcome(
        lambda: trt.evaluate(network, inputs)
    )


def outcome(act: Callable[[], Any]) -> str:
    try:
        jax.tree.map(np.asarray, act())
    except trt.NetloopError as error:
        return f"{type(error).__name__} {error.findings[0].code}"
    except Exception as error:
        import traceback
        where = traceback.extract_tb(error.__traceback__)
        mine = [f"{each.filename.split('/wt/aborts/')[-1]}:{each.lineno}" for each in where if "netloop" in each.filename]
        return f"RAW {type(error).__name__} {str(error)[:150]!r} at {mine[-1:]}"
    return "fine"


def main(first: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number, case in enumerate(cases()):
        if number >= first:
            print("START", number, case, flush=True)
            print("END", number, run(case), flush=True)
    print("DONE", flush=True)


def results(seconds: float = SECONDS) -> Iterator[tuple[str, str]]:
    """Each case and its outcome, in processes of which each runs until one case ends it."""
    first = 0
    while True:
        with subprocess.Popen(
            [sys.executable, "-m", "tests.support.extremes", str(first)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            case = ""
            timer = threading.Timer(120, child.kill)
            timer.start()
            died: list[str] = []
            errors: list[str] = []
            reader = threading.Thread(target=lambda: errors.append(child.stderr.read()))
            reader.start()
            for line in child.stdout:
                word, *rest = line.rstrip("\n").split(" ", 2)
                timer.cancel()
                timer = threading.Timer(seconds, lambda: (died.append("hang"), child.kill()))
                timer.start()
                if word == "START":
                    first, case = int(rest[0]), rest[1]
                elif word == "END":
                    yield case, rest[1]
                    case = ""
                elif word == "DONE":
                    timer.cancel()
                    return
            timer.cancel()
            code = child.wait()
            reader.join()
            yield case, f"DIED {died or code} {errors[0][-300:]!r}"
            first += 1


if __name__ == "__main__":
    main(int(sys.argv[1]))
