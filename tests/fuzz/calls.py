"""The target ``calls``: the builder, the checker and the reference.

Each byte of an input is one choice: of a call, of its arguments, legal and illegal. What the checker accepts must have
values, or raise an error of netloop. An input that has ended chooses the first of everything.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import UNKNOWN, numpy_type
from tests.fuzz.target import Bytes, Target
from tests.support.layer_specs import CALLS, B, F, I, L, Tensors
from tests.support.method_calls import OF_CONDITIONAL, OF_LOOP

T = TypeVar("T")

MOST_CALLS = 40
MOST_LAYERS = 60
MOST_TRIPS = 5
MOST_ELEMENTS = 2000
"""The most elements of a tensor of a network that is evaluated, -1 counted as ``LENGTH``."""
LENGTH = 2
PACKAGE = str(Path(trt.__file__).parent)
REFUSALS = (TypeError, ValueError, IndexError, AttributeError)
"""What a call raises for a wrong argument, besides netloop's own errors."""

SHAPES = [(), (2,), (3,), (2, 3), (1, 2, 3), (0,), (-1,), (-1, 3), (1, 1, 2, 3), (2, 2)]
DTYPES = [F, I, L, B, trt.float16, trt.float64, trt.int8, trt.uint8, trt.int4, trt.bfloat16, trt.fp8]
VALUES: list[Any] = [
    None, True, 0, 1, 2, 3, -1, 99, 2**31, 2**63, 0.5, float("nan"), "x", "\ud800", b"x", (), (0,), (1,), (2,), (1, 0),
    (0, 1), (2, 3), (-1,), (0, 0), (1, 2, 3), (-5, 2**40), [0.5], np.ones(2, np.float32), np.zeros((), np.int32),
    object(), trt.float16, trt.int32,
]  # fmt: skip
"""Values for parameters and attributes; most take only some of them."""


class Choices:
    """The choices in some bytes, and the network that they build."""

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)
        self.ended = False
        self.network = trt.INetworkDefinition()
        self.pool: list[ITensor] = []

    def number(self, most: int) -> int:
        """A number below ``most``."""
        found = next(self._bytes, None)
        self.ended = self.ended or found is None
        return (found or 0) % most

    def of(self, things: Sequence[T]) -> T:
        """One of some things."""
        return things[self.number(len(things))]

    def tensor(self) -> ITensor:
        """A tensor that exists; an input if there is none."""
        return self.of(self.pool) if self.pool else self.input(F, (2,))

    def input(self, dtype: trt.DataType, shape: Sequence[int]) -> ITensor:
        """A new input."""
        made = self.network.add_input(f"x{self.network.num_inputs}", dtype, shape)
        self.pool.append(made)
        return made

    def run(self) -> None:
        """Make the calls."""
        for _ in range(MOST_CALLS):
            if self.ended or len(self.network) > MOST_LAYERS:
                break
            try:
                self.of(STEPS)(self)
            except trt.NetloopError:
                pass
            except REFUSALS as error:
                if not _is_of_netloop(error):
                    raise


def _is_of_netloop(error: BaseException) -> bool:
    """Whether an error was raised in the package itself, neither by numpy nor by JAX."""
    at = error.__traceback__
    assert at is not None
    while at.tb_next is not None:
        at = at.tb_next
    return at.tb_frame.f_code.co_filename.startswith(PACKAGE)


class _Arguments(Tensors):
    """Tensors for an example call: those that exist, fitting ones where there are, or new inputs."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices.network)
        self._choices = choices

    def __call__(self, dtype: trt.DataType, *shape: int) -> ITensor:
        fitting = [tensor for tensor in self._choices.pool if _fits(tensor, dtype, len(shape))]
        act = self._choices.number(4)
        if fitting and act < 2:
            return fitting[-1 - self._choices.number(len(fitting))]
        return self._choices.tensor() if act == 3 else self._choices.input(dtype, shape)


def _fits(tensor: ITensor, dtype: trt.DataType, rank: int) -> bool:
    try:
        return tensor.dtype is dtype and len(tensor.shape) == rank
    except trt.NetloopError:
        return False


# ---------------------------------------------------------------------------- calls


def _call(choices: Choices, receiver: Any, calls: dict[str, Callable[[Tensors], dict[str, Any]]]) -> None:
    """Call a method that adds a layer, in one of four cases with an argument replaced."""
    name = choices.of(sorted(calls))
    arguments = calls[name](_Arguments(choices))
    if choices.number(4) == 3 and arguments:
        arguments[choices.of(sorted(arguments))] = choices.of(VALUES)
    before = len(choices.network)
    getattr(receiver, name)(**arguments)
    choices.pool += [tensor for layer in choices.network.layers[before:] for tensor in layer.outputs]


def add_layer(choices: Choices) -> None:
    _call(choices, choices.network, CALLS)


def add_loop(choices: Choices) -> None:
    choices.network.add_loop()


def add_to_loop(choices: Choices) -> None:
    if choices.network.loops:
        _call(choices, choices.of(choices.network.loops), OF_LOOP)


def add_conditional(choices: Choices) -> None:
    choices.network.add_if_conditional()


def add_to_conditional(choices: Choices) -> None:
    if choices.network.conditionals:
        _call(choices, choices.of(choices.network.conditionals), OF_CONDITIONAL)


def add_input(choices: Choices) -> None:
    choices.input(choices.of(DTYPES), choices.of(SHAPES))


def add_number(choices: Choices) -> None:
    value = np.full(choices.of([(), (1,), (2,), (2, 3)]), choices.number(5), numpy_type(choices.of(DTYPES[:6])))
    choices.pool += choices.network.add_constant(value.shape, value).outputs


def set_input(choices: Choices) -> None:
    if choices.network.layers:
        choices.of(choices.network.layers).set_input(choices.number(4), choices.tensor())


def set_next_value(choices: Choices) -> None:
    states = [layer for layer in choices.network.layers if isinstance(layer, trt.IRecurrenceLayer)]
    if states:
        choices.of(states).set_input(1, choices.tensor())


def set_attribute(choices: Choices) -> None:
    if choices.network.layers:
        layer = choices.of(choices.network.layers)
        setattr(layer, choices.of(["name", "metadata", *sorted(layer.ATTRIBUTES)]), choices.of(VALUES))


def set_property(choices: Choices) -> None:
    tensor, act = choices.tensor(), choices.number(4)
    if act == 0:
        tensor.dtype = choices.of(DTYPES)
    elif act == 1:
        tensor.shape = choices.of(SHAPES)
    else:
        setattr(tensor, ("name", "allowed_formats")[act - 2], choices.of(VALUES))


def mark(choices: Choices) -> None:
    choices.network.mark_output(choices.tensor())


def unmark(choices: Choices) -> None:
    tensor = choices.tensor()
    choices.of([choices.network.unmark_output, choices.network.remove_tensor, choices.network.mark_debug])(tensor)


STEPS: list[Callable[[Choices], None]] = [
    add_layer, add_layer, add_layer, add_number, mark, add_loop, add_to_loop, add_to_loop, add_to_loop, set_next_value,
    add_conditional, add_to_conditional, add_to_conditional, add_input, set_input, set_attribute, set_property, unmark,
]  # fmt: skip


# ---------------------------------------------------------------------------- the oracle


def run(data: bytes) -> None:
    """Build a network, check it, and evaluate it if it is valid and small."""
    choices = Choices(data)
    choices.run()
    network = choices.network
    errors = [finding for finding in trt.check(network) if finding.severity is trt.Severity.ERROR]
    if not errors and all(_is_small(tensor) for layer in network for tensor in layer.outputs):
        trt.evaluate(network, _arrays(network), max_trips=MOST_TRIPS)


def _is_small(tensor: ITensor) -> bool:
    known = tensor.types.of(tensor)
    shape = getattr(known, "held_shape", None)
    lengths = [LENGTH if length == UNKNOWN else length for length in shape or ()]
    return not isinstance(known, trt.Finding) and int(np.prod(lengths, dtype=float)) <= MOST_ELEMENTS


def _arrays(network: trt.INetworkDefinition) -> dict[str, Any]:
    return {tensor.name: _array(tensor) for tensor in network.inputs}


def _array(tensor: ITensor) -> Any:
    """An array of ones for an input; a list of two for a sequence."""
    declared = tensor.type.present
    shape = [LENGTH if number == UNKNOWN else number for number in declared.held_shape or ()]
    array = np.ones(shape, declared.dtype)
    return array if declared.is_tensor else [array, array]


def inputs() -> Iterator[bytes]:
    """Random choices, and short sequences that begin as a loop does."""
    chance = Random(0)
    for number in range(200):
        yield chance.randbytes(20 + number)
    loop = [STEPS.index(other) for other in (add_loop, add_number, add_to_loop, add_to_loop, set_next_value, mark)]
    for _ in range(50):
        yield bytes(byte for number in loop for byte in (number, *chance.randbytes(chance.randrange(6))))


def mutate(data: bytes, chance: Random, bytes_of: Bytes) -> bytes:
    """Change some bytes: the choices have no other structure."""
    return bytes_of(data)


TARGET = Target("calls", run, inputs, mutate)
