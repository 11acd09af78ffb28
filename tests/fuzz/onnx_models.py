"""The target ``onnx``: the importer of ONNX models.

An input is the bytes of a model, which is changed as a protobuf message: fields are set, left out, doubled, moved and
exchanged for those of the same type elsewhere in the model.
"""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import onnx
from google.protobuf.message import DecodeError, EncodeError, Message

import netloop as trt
from tests.fuzz import seeds
from tests.fuzz.target import Bytes, Target

NUMBERS = (0, 1, 2, 3, -1, -2, 7, 13, 18, 23, 255, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e30, float("inf"), float("nan"))
MOST_CHANGES = 4


def run(data: bytes) -> None:
    """Load a model; what loads can be checked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trt.ModelWarning)
        network = trt.onnx.load(data)
    trt.check(network)


def inputs() -> Iterator[bytes]:
    """Models of single operators, and of networks with loops, conditionals and sequences."""
    for network in seeds.networks():
        with suppress(trt.NetworkError):  # ONNX cannot express all layers
            if len(data := trt.onnx.to_model(network).SerializeToString()) <= seeds.LARGEST:
                yield data
    yield from seeds.node_tests()


def mutate(data: bytes, chance: Random, bytes_of: Bytes) -> bytes:
    """Change fields of the model, or any bytes."""
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        return bytes_of(data)
    if chance.randrange(10) == 0:
        return bytes_of(data)
    for _ in range(1 + chance.randrange(MOST_CHANGES)):
        _change(model, chance, bytes_of)
    try:
        return model.SerializeToString()
    except (EncodeError, ValueError):
        return bytes_of(data)


def messages(model: Message) -> Iterator[Message]:
    """A message and all messages in it."""
    stack = [model]
    while stack:
        message = stack.pop()
        yield message
        for field, value in message.ListFields():
            if field.type == field.TYPE_MESSAGE:
                stack += [value] if isinstance(value, Message) else list(value)


def _change(model: Message, chance: Random, bytes_of: Bytes) -> None:
    """Change one field of a message somewhere in a model."""
    found = list(messages(model))
    message = chance.choice(found)
    field: Any = chance.choice(message.DESCRIPTOR.fields)
    if isinstance(getattr(message, field.name), Message) or field.type == field.TYPE_MESSAGE:
        _change_message(message, field, found, chance)
    elif _is_repeated(message, field):
        _change_list(getattr(message, field.name), lambda: _leaf(field, found, chance, bytes_of), chance)
    elif chance.randrange(6) == 0:
        message.ClearField(field.name)
    else:
        with suppress(ValueError, TypeError):  # out of the range of the field
            setattr(message, field.name, _leaf(field, found, chance, bytes_of))


def _is_repeated(message: Message, field: Any) -> bool:
    return not isinstance(getattr(message, field.name), int | float | str | bytes | Message)


def _change_message(message: Message, field: Any, found: list[Message], chance: Random) -> None:
    alike = [message for message in found if message.DESCRIPTOR is field.message_type]
    if _is_repeated(message, field):
        items = getattr(message, field.name)
        # a copy, since a message may not be put into itself
        _change_list(items, lambda: _copy(chance.choice(alike)) if alike else items.add(), chance)
    elif chance.randrange(3) == 0:
        message.ClearField(field.name)
    elif alike:
        getattr(message, field.name).CopyFrom(_copy(chance.choice(alike)))


def _copy(message: Message) -> Message:
    made = type(message)()
    made.CopyFrom(message)
    return made


def _change_list(items: Any, made: Any, chance: Random) -> None:
    act, number = chance.randrange(4), len(items)
    with suppress(ValueError, TypeError):
        if act == 0 and number:
            del items[chance.randrange(number)]
        elif act == 1 and number > 1:
            first, second = sorted(chance.sample(range(number), 2))
            kept = [_copy(value) if isinstance(value, Message) else value for value in items]
            kept[first], kept[second] = kept[second], kept[first]
            del items[:]
            items.extend(kept)
        elif act == 2 and number and not isinstance(items[0], Message):
            items[chance.randrange(number)] = made()
        else:
            items.append(made())


def _leaf(field: Any, found: list[Message], chance: Random, bytes_of: Bytes) -> Any:
    """A value for a field: that of the same type elsewhere, an interesting one, or a changed one."""
    there = [value for message in found for value in _leaves(message, field.type)]
    if field.type == field.TYPE_STRING:
        return chance.choice([*there, "", "x", *OPERATORS])
    if field.type == field.TYPE_BYTES:
        value = chance.choice([*there, b""])
        return bytes_of(value) if value and chance.randrange(2) else value
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return chance.choice([*there, *FLOATS])
    return chance.choice([*there, *NUMBERS, chance.randrange(30)])


def _leaves(message: Message, type: int) -> Iterator[Any]:
    for field, value in message.ListFields():
        if field.type == type:
            yield from (value if _is_repeated(message, field) else [value])


OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas()})
TARGET = Target("onnx", run, inputs, mutate)
