"""The kinds of layers that a plan can hold, and the codecs that write and read their attributes.

Names in a plan are looked up in tables, never in modules: a kind is a class of ``netloop.model.layers``, and its
attributes are the fields of the class.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from netloop.model.graph.layer import ILayer
from netloop.model.layers.conditional import IIfConditional
from netloop.model.layers.loop import ILoop
from netloop.model.plan import plugins
from netloop.model.plan.json_reader import LEAST, MOST, JsonValue
from netloop.model.plugins.interfaces import IPluginV3
from netloop.values.checked_attributes import is_encodable
from netloop.values.diagnostics import quoted
from netloop.values.dims import DimsLike, PermutationLike
from netloop.values.types import Array, FlatArray

T = TypeVar("T")

Numbers = tuple[float, ...]


class PlanWriter(Protocol):
    """A writer that numbers the arrays, loops and conditionals that attributes refer to."""

    def number_of_array(self, array: Array) -> int: ...

    def number_of(self, part: Any) -> int: ...


class PlanReader(Protocol):
    """A reader that finds the arrays, loops and conditionals with a number."""

    def array(self, node: JsonValue) -> Array: ...

    def loop(self, node: JsonValue) -> ILoop: ...

    def conditional(self, node: JsonValue) -> IIfConditional: ...


@dataclass(frozen=True)
class Codec:
    """How a value is written to a plan and read from it.

    Attributes:
        write: converts a value to JSON; raises a ValueError with the reason if it cannot.
        read: returns the value of a node.
    """

    write: Callable[[Any, PlanWriter], Any]
    read: Callable[[JsonValue, PlanReader], Any]


@dataclass(frozen=True)
class PlanKind:
    """A kind of layer.

    Attributes:
        cls: its class.
        codecs: the codecs of its attributes; those without a default are ``required``.
        least_inputs, most_inputs: the range of the number of inputs, including missing ones.
    """

    cls: type[ILayer]
    codecs: dict[str, Codec]
    required: frozenset[str]
    least_inputs: int
    most_inputs: float


def whole(value: Any) -> int:
    """Return ``value``, which must be an int of 64 bits."""
    if type(value) is not int:
        raise ValueError(f"is {quoted(value)}, but must be an int")
    if not LEAST <= value <= MOST:
        raise ValueError(f"has {value.bit_length()} bits and a sign, and an int in a plan has 64")
    return value


def instance(value: Any, cls: type[T], what: str) -> T:
    """Return ``value``, which must be an instance of a class."""
    if not isinstance(value, cls):
        raise ValueError(f"is {quoted(value)}, but must be {what}")
    return value


def encodable(value: Any) -> str:
    """Return ``value``, which must be a string that UTF-8 can encode."""
    text = instance(value, str, "a string")
    if not is_encodable(text):
        raise ValueError(f"{quoted(text)} has half of a surrogate pair in it")
    return text


def number(value: float) -> float | str:
    """Convert a number to JSON, exactly."""
    return value if math.isfinite(value) else str(value)


def wholes(values: Any) -> list[int]:
    """Convert a shape or a permutation to a list."""
    return [whole(value) for value in values]


def read_wholes(node: JsonValue) -> list[int]:
    """Read a list of whole numbers."""
    return [value.whole() for value in node.items()]


def read_numbers(node: JsonValue) -> tuple[float, ...]:
    """Read a list of floating-point numbers."""
    return tuple(value.number() for value in node.items())


# fmt: off
CODECS: dict[Any, Codec] = {
    int:             Codec(lambda value, _: whole(value),                    lambda node, _: node.whole()),
    float:           Codec(lambda value, _: number(value),                   lambda node, _: node.number()),
    bool:            Codec(lambda value, _: instance(value, bool, "a bool"), lambda node, _: node.flag()),
    str:             Codec(lambda value, _: encodable(value),                lambda node, _: node.text()),
    DimsLike:        Codec(lambda value, _: wholes(value),                   lambda node, _: read_wholes(node)),
    PermutationLike: Codec(lambda value, _: wholes(value),                   lambda node, _: read_wholes(node)),
    Numbers:         Codec(lambda value, _: list(map(number, value)),        lambda node, _: read_numbers(node)),
    Array:           Codec(lambda value, plan: plan.number_of_array(value),  lambda node, plan: plan.array(node)),
    ILoop:           Codec(lambda value, plan: plan.number_of(value),        lambda node, plan: plan.loop(node)),
    IIfConditional:  Codec(lambda value, plan: plan.number_of(value),        lambda node, plan: plan.conditional(node)),
    IPluginV3:       Codec(
        lambda value, plan: plugins.write(value, plan.number_of_array),
        lambda node, plan: plugins.read(node, plan.array),
    ),
}
# fmt: on


def codec_of(hint: Any) -> Codec:
    """Return the codec of an attribute annotated ``hint``."""
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (argument for argument in get_args(hint) if argument is not type(None))
        return _or_null(codec_of(inner))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Codec(
            lambda value, _: instance(value, hint, f"a {hint.__name__}").name, lambda node, _: node.member(hint)
        )
    hint = Array if hint is FlatArray else hint
    assert hint in CODECS, f"plans have no codec for attributes annotated {hint}"
    return CODECS[hint]


def _or_null(codec: Codec) -> Codec:
    return Codec(
        lambda value, plan: None if value is None else codec.write(value, plan),
        lambda node, plan: None if node.value is None else codec.read(node, plan),
    )


@cache
def kinds() -> dict[str, type[ILayer]]:
    """The classes of all kinds of layers, by their names."""
    return {cls.__name__: cls for cls in _classes(ILayer)}


def _classes(above: type[ILayer]) -> Iterator[type[ILayer]]:
    for cls in above.__subclasses__():
        if "LAYER_TYPE" in vars(cls) and cls.__module__.startswith("netloop.model.layers."):
            yield cls
        yield from _classes(cls)


@cache
def kind_of(cls: type[ILayer]) -> PlanKind:
    """The kind of layer of a class."""
    hints = get_type_hints(cls, include_extras=True)
    required = [field.name for field in fields(cls) if field.default is MISSING]  # pyright: ignore[reportArgumentType]
    codecs = {name: codec_of(hints[name]) for name in cls.ATTRIBUTES}
    least, most = (0, math.inf) if _is_variadic(cls) else (cls.REQUIRED_INPUTS, cls.MAX_INPUTS or cls.REQUIRED_INPUTS)
    return PlanKind(cls, codecs, frozenset(required), least, most)


def _is_variadic(cls: type[ILayer]) -> bool:
    """Whether ``infer`` takes any number of inputs."""
    return any(
        parameter.kind is parameter.VAR_POSITIONAL for parameter in inspect.signature(cls.infer).parameters.values()
    )
