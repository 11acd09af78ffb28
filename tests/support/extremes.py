"""Layers of every kind with extreme numbers, in processes that may die.

A case is the example call of a method (``layer_specs``) with some numbers changed.
"""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, get_type_hints

import numpy as np

import netloop as trt
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.values.types import FLOATS, INTEGERS, UNKNOWN, OptionalType, SequenceType, TensorType, numpy_type
from tests.support.layer_specs import CALLS, F, I, L, Tensors
from tests.support.mortal_cases import raised, serve

INTS = [0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63)]
REALS = [math.nan, math.inf, -math.inf, 0.0, -1.0, 5e-324, 1e-40, 1e38, -1e308, 1e308]
USUAL = [1, 2, 3]
"""Numbers among which extreme ones are drawn in combinations."""


@dataclass(frozen=True)
class Change:
    """One change of an example call.

    Attributes:
        kind: "argument" of the method; "attribute" of the layer; "value" of the input of that number at run time;
            "constant", which takes the place of the input; "input", one more, of integers, and its value; "dtype" of
            the floating-point inputs.
        name: the name of the argument or attribute, or the number of the input; for "input" with its type.
        value: the extreme number, or a tuple of such.
    """

    kind: str
    name: Any
    value: Any

    def __str__(self) -> str:
        return f"{self.kind} {self.name} = {self.value}"


@dataclass(frozen=True)
class Extreme:
    """An example call and its changes."""

    method: str
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return f"{self.method}: {', '.join(map(str, self.changes))}"

    def of(self, kind: str) -> list[Change]:
        """The changes of one kind."""
        return [change for change in self.changes if change.kind == kind]


class OtherTensors(Tensors):
    """The tensors of an example call, with another type in place of float32."""

    def __init__(self, network: trt.INetworkDefinition, dtype: trt.DataType) -> None:
        super().__init__(network)
        self._dtype = dtype

    def __call__(self, dtype: trt.DataType, *shape: int) -> ITensor:
        return super().__call__(self._dtype if dtype is F else dtype, *shape)


# ---------------------------------------------------------------------------- cases


def cases() -> list[Extreme]:
    """Each example call with one change at a time."""
    return [Extreme(method, (change,)) for method in CALLS for change in changes(method)]


def combinations(count: int, seed: int = 0) -> list[Extreme]:
    """Random example calls with two to four changes."""
    chance = random.Random(seed)
    known = {method: [*changes(method), *mild_changes(method)] for method in CALLS}
    methods = [method for method, found in known.items() if found]
    made: list[Extreme] = []
    while len(made) < count:
        method = chance.choice(methods)
        drawn = {(choice.kind, choice.name): choice for choice in chance.choices(known[method], k=chance.randint(2, 4))}
        made.append(Extreme(method, tuple(drawn.values())))
    return made


def changes(method: str) -> Iterator[Change]:
    """The extreme changes of an example call."""
    network, layer, arguments = added(Extreme(method, ()))
    for name, value in arguments.items():
        yield from (Change("argument", name, other) for other in extremes_like(value))
    for name in layer.ATTRIBUTES:
        yield from (Change("attribute", name, value) for value in extremes_like(example_of(layer, name)))
    for number, tensor in enumerate(network.inputs):
        if tensor.type.is_tensor:
            for value in numbers_of(tensor.type.dtype):
                yield Change("value", number, value)
                yield Change("constant", number, value)
    yield from more_inputs(method, layer)


def mild_changes(method: str) -> Iterator[Change]:
    """Changes that let extreme ones meet other code: usual numbers, other modes and element types."""
    _, layer, _ = added(Extreme(method, ()))
    for name in layer.ATTRIBUTES:
        value = example_of(layer, name)
        if isinstance(value, Enum):
            yield from (Change("attribute", name, enum) for enum in type(value))
        elif isinstance(value, bool):
            yield Change("attribute", name, not value)
        elif isinstance(value, tuple):
            yield from (Change("attribute", name, (number,) * len(value)) for number in USUAL)
        elif isinstance(value, int):
            yield from (Change("attribute", name, number) for number in USUAL)
    yield from (Change("dtype", None, dtype) for dtype in (trt.float16, trt.bfloat16, trt.float64, trt.int8, L))


def more_inputs(method: str, layer: ILayer) -> Iterator[Change]:
    """The values of integer inputs that the example call leaves out."""
    shapes = sorted({(), (1,), (2,), (rank_of(layer),)})
    for number in range(layer.num_inputs, layer.MAX_INPUTS):
        for dtype, shape in ((dtype, shape) for dtype in (I, L) for shape in shapes):
            change = Change("input", (number, dtype, shape), 1)
            if is_valid(added(Extreme(method, (change,)))[0]):
                yield from (Change("input", change.name, value) for value in numbers_of(numpy_type(dtype)))


def extremes_like(value: Any) -> Iterator[Any]:
    """Extreme numbers in place of a number, of a tuple of numbers, or of the value of a constant tensor."""
    if isinstance(value, ITensor):
        known = value.type.value
        if known is not None and value.producer is not None and known.dtype in INTEGERS:
            numbers = numbers_of(known.dtype)
            yield from (entry for one in numbers for entry in (spread(one, tuple(known)) if known.ndim else [one]))
    elif isinstance(value, float):
        yield from REALS
    elif isinstance(value, tuple):
        numbers = REALS if value and isinstance(value[0], float) else INTS
        yield from (entry for one in numbers for entry in spread(one, value))
    elif type(value) is int:
        yield from INTS


def spread(extreme: Any, usual: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Tuples with an extreme number in all places, only in the first, and only in the last."""
    ends = [(extreme, *usual[1:]), (*usual[:-1], extreme)] if len(usual) > 1 else []
    return [(extreme,) * len(usual), *ends]


def numbers_of(dtype: np.dtype[Any]) -> list[Any]:
    """The extreme numbers that an element type has."""
    if dtype in FLOATS:
        return [real for real in REALS if not math.isfinite(real) or abs(real) < 1e39]
    if dtype not in INTEGERS:
        return []
    return [int_ for int_ in INTS if np.iinfo(dtype).min <= int_ <= np.iinfo(dtype).max]


def example_of(layer: ILayer, name: str) -> Any:
    """The value of an attribute, or one that it could have."""
    value = getattr(layer, name)
    if isinstance(value, tuple) and value:
        return tuple(value)
    hint = str(get_type_hints(type(layer), include_extras=True)[name])
    if "float" in hint and "tuple" in hint:
        return (1.0,) * rank_of(layer)
    if "Dims" in hint or "Permutation" in hint:
        return (1,) * rank_of(layer)
    return 1 if value is None and "int" in hint else value


def rank_of(layer: ILayer) -> int:
    """The rank of the first input of a layer, 1 if it has none."""
    first = layer.get_input(0)
    return 1 if first is None else first.type.rank


# ---------------------------------------------------------------------------- one case


def added(case: Extreme) -> tuple[trt.INetworkDefinition, ILayer, dict[str, Any]]:
    """The network of a case, its layer, and the arguments of its method."""
    network = trt.INetworkDefinition()
    dtype = case.of("dtype")
    tensors = OtherTensors(network, dtype[0].value) if dtype else Tensors(network)
    arguments = CALLS[case.method](tensors)
    for change in case.of("argument"):
        known = arguments[change.name]
        value = tensors.constant(change.value, known.type.dtype) if isinstance(known, ITensor) else change.value
        arguments[change.name] = value
    for change in case.of("constant"):
        taken = network.inputs[change.name]
        filled = tensors.constant(np.full(taken.type.shape, change.value), taken.type.dtype)
        arguments.update((name, filled) for name, tensor in arguments.items() if tensor is taken)
    getattr(network, case.method)(**arguments)
    layer = network[-1]
    complete(layer, tensors)
    for change in case.of("attribute"):
        setattr(layer, change.name, change.value)
    for change in case.of("input"):
        number, dtype, shape = change.name
        layer.set_input(number, network.add_input(f"more {number}", dtype, shape))
    for tensor in layer.outputs:
        network.mark_output(tensor)
    return network, layer, arguments


def complete(layer: ILayer, tensors: Tensors) -> None:
    """Give a layer what it needs beyond the arguments of its method."""
    if isinstance(layer, trt.IMoELayer):
        shapes = [(2, 3, 4), (2, 3, 4), (2, 4, 3)]
        weights = (tensors.constant(np.full(shape, 0.5), np.float32) for shape in shapes)
        layer.set_gated_weights(*weights, trt.MoEActType.SILU)
    if isinstance(layer, trt.IResizeLayer):
        layer.shape = (4, 3)


def is_valid(network: trt.INetworkDefinition) -> bool:
    """Whether a network has no errors, except that nothing reads an input."""
    return all(finding.severity is not trt.Severity.ERROR or finding.code == "NL105" for finding in trt.check(network))


def arrays(network: trt.INetworkDefinition, case: Extreme) -> dict[str, Any]:
    """The inputs of a call."""
    numbers = {network.inputs[change.name].name: change.value for change in case.of("value")}
    numbers.update((f"more {change.name[0]}", change.value) for change in case.of("input"))
    return {tensor.name: value_of(tensor.type, numbers.get(tensor.name)) for tensor in network.inputs}


def value_of(type: TensorType, number: Any) -> Any:
    """A value of a type, filled with a number; by default with random ones, 0 and 1 for integers."""
    if isinstance(type, SequenceType | OptionalType):
        element = type.element if isinstance(type.element, TensorType) else TensorType(type.dtype, type.element or ())
        return [value_of(element, None)] * 2 if isinstance(type, SequenceType) else value_of(element, None)
    shape = tuple(2 if length == UNKNOWN else length for length in type.shape)
    chance = np.random.default_rng(0)
    drawn = chance.integers(0, 2, shape) if type.dtype in INTEGERS else chance.normal(size=shape)
    return np.asarray(drawn if number is None else np.full(shape, number)).astype(type.dtype)


def outcome(case: Extreme) -> str:
    """What a case leads to: that it is refused or fine, or what a run raised; "RAW" begins what it must not lead to."""
    try:
        network, _, _ = added(case)
    except (trt.NetloopError, TypeError, ValueError, AttributeError):
        return "refused at once"
    if not is_valid(network):
        return "refused"
    inputs = arrays(network, case)
    compiled = raised(lambda: trt.compile(network)(inputs))
    return f"compiled: {compiled}, reference: {raised(lambda: trt.evaluate(network, inputs))}"


def fatal() -> list[Extreme]:
    """Cases that have ended the process, or raised errors of JAX and numpy."""
    most, same = 2**63 - 1, Change("attribute", "padding_mode", trt.PaddingMode.SAME_UPPER)
    length = Change("input", (1, I, ()), 2**31 - 1)
    around = [Change("attribute", f"{side}_padding_nd", (by,) * 2) for side, by in (("pre", 2**31), ("post", -(2**31)))]
    return [
        Extreme("add_pooling_nd", (same, Change("attribute", "dilation_nd", (most, most)))),
        Extreme("add_pooling_nd", (Change("attribute", "pre_padding", (2**30, 0)),)),
        Extreme("add_convolution_nd", (Change("attribute", "pre_padding", (2**30, 0)),)),
        Extreme("add_deconvolution_nd", (Change("attribute", "stride_nd", (2**31 - 1, 1)),)),
        Extreme("add_padding_nd", tuple(around)),
        Extreme("add_dft", (length,)),
        Extreme("add_one_hot", (Change("argument", "depth", 2**31 - 1),)),
        Extreme("add_fill", (Change("argument", "shape", (2**31,)),)),
        Extreme("add_resize", (Change("attribute", "shape", (2**31, 3)),)),
        Extreme("add_rotary_embedding", (Change("argument", "rotary_embedding_dim", -1),)),
    ]


SOURCES: dict[str, Callable[[], list[Extreme]]] = {
    "fatal": fatal,
    "cases": cases,
    "combinations": partial(combinations, 3000),
}

if __name__ == "__main__":
    serve(SOURCES, outcome)
