"""Arrays for the inputs of a model: from files, written out, or random."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import netloop as trt
from netloop.compiler.tuning import trip_inputs
from netloop.model.input_defaults import input_defaults
from netloop.process.file_reading import open_regular
from netloop.tools.cli.arguments import Lengths
from netloop.tools.cli.failures import Misuse
from netloop.tools.cli.literals import array, is_floating, is_integer
from netloop.tools.cli.verbosity import note
from netloop.values.diagnostics import did_you_mean

OPEN = 1
"""The length of an axis that the model leaves open and no argument gives, as in trtexec."""

Ranges = Iterable[tuple[str, tuple[float, float]]]
"""The least and the largest random number, by the name of the input; without a name, those of all others."""


def arrays_for(
    network: trt.INetworkDefinition,
    words: Sequence[str],
    shapes: Mapping[str, Lengths],
    seed: int,
    ranges: Ranges = (),
) -> dict[str, Any]:
    """An array for each input of a network.

    Those that ``words`` do not name are random: floats from 0 to 1, and 0 or 1 for integers and bools, which as
    indices and masks are valid nearly everywhere; inputs that decide trip counts let loops run. An .npz file has all
    inputs, so that one that it lacks is an error of the run.

    Raises:
        Misuse: an input is unknown, or a file, a value, a shape or a range does not fit.
    """
    limits, named = dict(ranges), {tensor.name: tensor for tensor in network.inputs}
    for argument, names in (("--shapes", shapes), ("--range", limits)):
        for name in names:
            _input(named, name, argument) if name else None
    defaults = {name: layer.outputs[0] for name, layer in input_defaults(network).items()}
    result = _given(named | defaults, words, shapes)
    if any(result.is_whole or name in result.of_files for name in shapes):
        raise Misuse("--shapes are for random inputs, and --inputs has arrays with shapes")
    if any(result.is_whole or name in result.arrays for name in limits):
        raise Misuse("--range is for random inputs, and --inputs has their numbers")
    missing = [] if result.is_whole else [tensor for tensor in network.inputs if tensor.name not in result.arrays]
    if result.arrays and missing:
        says = ", ".join(repr(tensor.name) for tensor in missing)
        note(f"random inputs: {says}; --inputs {missing[0].name}=... gives one")
    return result.arrays | _random(network, missing, shapes, limits, seed)


def _input(named: Mapping[str, trt.ITensor], name: str, argument: str) -> trt.ITensor:
    """The input of a name that an argument has."""
    if name not in named:
        hint = did_you_mean(name, named)
        has = f"the model has {', '.join(map(repr, named)) or 'none'}"
        raise Misuse(f"{argument} has {name!r}, which is no input; {has}" + (hint and f"; {hint}"))
    return named[name]


# ---------------------------------------------------------------------------- files and values


class Given(NamedTuple):
    """The inputs of ``--inputs``.

    Attributes:
        arrays: the arrays by name.
        of_files: the names of those that are from files.
        is_whole: whether a file has them all.
    """

    arrays: dict[str, Any]
    of_files: set[str]
    is_whole: bool


def _given(named: Mapping[str, trt.ITensor], words: Sequence[str], shapes: Mapping[str, Lengths]) -> Given:
    written, files, is_whole = dict[str, Any](), dict[str, Any](), False
    # trtexec has commas between files
    for word in (part for text in words for part in ([text] if Path(text).exists() else _parts(text))):
        name, equals, value = word.partition("=")
        if word.endswith(".npz"):
            files |= _read(Path(word))
            is_whole = True
        elif not equals or Path(word).exists():
            files |= _of_file(named, word)
        else:
            tensor = _input(named, name.strip("'\""), "--inputs")
            if value.endswith(".npy"):
                files[tensor.name] = _read(Path(value))
            else:
                written[tensor.name] = array(tensor, value, _fixed(tensor, value, shapes))
    return Given(files | written, {*files}, is_whole)


def _parts(text: str) -> list[str]:
    """The parts of a text between commas outside of brackets and quotes."""
    parts, depth, is_quoted = [""], 0, False
    for character in text:
        is_quoted ^= character == '"'
        depth += 0 if is_quoted else (character == "[") - (character == "]")
        if character == "," and not (depth or is_quoted):
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _fixed(tensor: trt.ITensor, value: str, shapes: Mapping[str, Lengths]) -> tuple[int, ...]:
    """The shape that a single number fills."""
    if tensor.name in shapes and value.startswith("["):
        raise Misuse(f"--shapes has {tensor.name!r}, and --inputs has a list for it, which has a shape")
    return shape_of(tensor, shapes.get(tensor.name))


def _of_file(named: Mapping[str, trt.ITensor], text: str) -> dict[str, Any]:
    """The array of ``NAME:FILE`` by its name, or of ``FILE`` for the only input."""
    name, colon, file = text.rpartition(":")
    if not colon and len(named) != 1:
        names = ", ".join(map(repr, named))
        raise Misuse(f"{text!r} is for the only input, and the model has {names}; write NAME:{text}")
    return {name or next(iter(named)): _read(Path(file))}


def _read(file: Path) -> Any:
    """The array of an .npy file, or the dict of arrays of an .npz file."""
    if file.suffix not in (".npy", ".npz"):
        raise Misuse(f"{str(file)!r} is neither an .npz nor an .npy file")
    try:
        # opened here, because numpy leaves a file open that it cannot read
        opened, _ = open_regular(file)
        with opened:
            result: Any = np.load(opened)
            return {name: result[name] for name in result.files} if file.suffix == ".npz" else np.asarray(result)
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError):
        raise Misuse(f"{str(file)!r} is not an {file.suffix} file, or holds objects of Python") from None


# ---------------------------------------------------------------------------- random numbers


def _random(
    network: trt.INetworkDefinition,
    tensors: Sequence[trt.ITensor],
    shapes: Mapping[str, Lengths],
    limits: Mapping[str, tuple[float, float]],
    seed: int,
) -> dict[str, Any]:
    """Random arrays for some inputs, and notes about what is chosen for the user."""
    generator, results, drawn = np.random.default_rng(seed), dict[str, Any](), _shapes(tensors, shapes)
    for tensor, shape in drawn.items():
        if tensor.name in limits and tensor.type.is_string:
            raise Misuse(f"input {tensor.name!r} is {tensor.type}, and --range has numbers for it")
        results[tensor.name] = _numbers(tensor, shape, generator, limits.get(tensor.name, limits.get("")))
    for tensor, trips in trip_inputs(network, drawn).items():
        if tensor.name not in limits and "" not in limits:
            results[tensor.name] = trips
            said = f"{tensor.name}={str(trips.flat[0]).lower()}" if trips.size else tensor.name
            how = f"--inputs {tensor.name}=... gives another number"
            note(f"{said} decides how often a loop runs; {how}")
    return results


def shapes_for(network: trt.INetworkDefinition, shapes: Mapping[str, Lengths]) -> dict[str, tuple[int, ...]]:
    """The shape of each input in a run, by name.

    Raises:
        Misuse: an input is unknown or no tensor, or a shape does not fit.
    """
    named = {tensor.name: tensor for tensor in network.inputs}
    for name in shapes:
        _input(named, name, "--shapes")
    return {tensor.name: shape for tensor, shape in _shapes(network.inputs, shapes).items()}


def _shapes(tensors: Sequence[trt.ITensor], shapes: Mapping[str, Lengths]) -> dict[trt.ITensor, tuple[int, ...]]:
    """The shapes of some inputs, with a note about lengths that nobody chose."""
    numbers = {tensor: shape_of(tensor, shapes.get(tensor.name)) for tensor in tensors}
    chosen = [
        f"{tensor.name}:{'x'.join(map(str, shape))}"
        for tensor, shape in numbers.items()
        if tensor.name not in shapes and -1 in tensor.shape
    ]
    if chosen:
        note(f"the model leaves lengths open, and they are {OPEN}: --shapes {','.join(chosen)}")
    return numbers


def shape_of(tensor: trt.ITensor, wanted: Lengths | None) -> tuple[int, ...]:
    """The shape of an input in a run: as wanted, or with 1 for each open length.

    Raises:
        Misuse: the input is no tensor, or has another rank or other lengths.
    """
    if not tensor.type.is_tensor:
        raise Misuse(f"input {tensor.name!r} is {tensor.type}, for which there are no random values")
    declared = tuple(tensor.shape)
    if wanted is None:
        return tuple(OPEN if length == -1 else length for length in declared)
    text = "x".join(map(str, wanted)) or "scalar"
    lengths = [length for length in wanted if isinstance(length, int) and length >= 0]
    if len(lengths) < len(wanted):
        raise Misuse(f"--shapes has {text} for input {tensor.name!r}, and a run needs a number for each length")
    fits = len(wanted) == len(declared) and all(
        length in (-1, number) for length, number in zip(declared, lengths, strict=True)
    )
    if not fits:
        raise Misuse(f"input {tensor.name!r} is {tensor.type}, and --shapes has {text} for it")
    return tuple(lengths)


def _numbers(
    tensor: trt.ITensor, shape: Sequence[int], generator: np.random.Generator, limits: tuple[float, float] | None
) -> Any:
    if tensor.type.is_string:
        return generator.choice(["a", "b"], shape)
    low, high = limits or (0, 1)
    if is_floating(tensor.type.dtype):
        return np.asarray(low + (high - low) * generator.random(shape)).astype(tensor.type.dtype)
    fits = {low, high} <= {0, 1} if tensor.type.is_bool else all(is_integer(tensor.type.dtype, x) for x in (low, high))
    if not fits:
        raise Misuse(f"input {tensor.name!r} is {tensor.type}, and --range has {low}:{high} for it")
    return np.asarray(generator.integers(int(low), int(high), shape, endpoint=True)).astype(tensor.type.dtype)
