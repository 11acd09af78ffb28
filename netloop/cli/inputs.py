"""Arrays for the inputs of a model: from files, or random."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import netloop as trt
from netloop.cli.failures import Misuse
from netloop.file_reading import open_regular

OPEN = 1
"""The length of an axis that the model leaves open and no argument gives, as in trtexec."""


def arrays_for(
    network: trt.INetworkDefinition, files: Sequence[str], shapes: Mapping[str, Sequence[int]], seed: int
) -> dict[str, Any]:
    """An array for each input of a network.

    Without files they are random: floats from 0 to 1, and 0 or 1 for integers and bools, which as indices and masks are
    valid nearly everywhere.

    Raises:
        Misuse: a file or a shape does not fit.
    """
    if files:
        if shapes:
            raise Misuse("--shapes are for random inputs, and --inputs has arrays with shapes")
        return _from_files(network, files)
    return _random(network, shapes, seed)


# ---------------------------------------------------------------------------- files


def _from_files(network: trt.INetworkDefinition, files: Sequence[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    # trtexec has commas between files
    for each in (part for text in files for part in ([text] if Path(text).exists() else text.split(","))):
        if each.endswith(".npz"):
            made.update(_read(Path(each)))
            continue
        name, colon, file = each.rpartition(":")
        if not colon and network.num_inputs != 1:
            known = ", ".join(repr(tensor.name) for tensor in network.inputs)
            raise Misuse(f"{each!r} is for the only input, and the model has {known}; write NAME:{each}")
        made[name or network.inputs[0].name] = _read(Path(file))
    return made


def _read(file: Path) -> Any:
    """The array of an .npy file, or the dict of arrays of an .npz file."""
    if file.suffix not in (".npy", ".npz"):
        raise Misuse(f"{str(file)!r} is neither an .npz nor an .npy file")
    try:
        # opened here, because numpy leaves a file open that it cannot read
        opened, _ = open_regular(file)
        with opened:
            found: Any = np.load(opened)
            return {name: found[name] for name in found.files} if file.suffix == ".npz" else np.asarray(found)
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError):
        raise Misuse(f"{str(file)!r} is not an {file.suffix} file, or holds objects of Python") from None


# ---------------------------------------------------------------------------- random numbers


def _random(network: trt.INetworkDefinition, shapes: Mapping[str, Sequence[int]], seed: int) -> dict[str, Any]:
    generator, made, is_open = np.random.default_rng(seed), dict[str, Any](), list[str]()
    names = {each.name for each in network.inputs}
    for name in shapes:
        if name not in names:
            raise Misuse(f"--shapes has {name!r}, which is no input; the model has {', '.join(map(repr, names))}")
    for tensor in network.inputs:
        shape = shape_of(tensor, shapes.get(tensor.name))
        if tensor.name not in shapes and -1 in tensor.shape:
            is_open.append(f"{tensor.name}:{'x'.join(map(str, shape))}")
        made[tensor.name] = _numbers(tensor, shape, generator)
    if is_open:
        print(
            f"note: the model leaves lengths open, and they are {OPEN}: --shapes {','.join(is_open)}", file=sys.stderr
        )
    return made


def shape_of(tensor: trt.ITensor, wanted: Sequence[int] | None) -> tuple[int, ...]:
    """The shape of an input in a run: as wanted, or with 1 for each open length.

    Raises:
        Misuse: the input is no tensor, or has another rank or other lengths.
    """
    if not tensor.type.is_tensor:
        raise Misuse(f"input {tensor.name!r} is {tensor.type}, for which there are no random values")
    declared = tuple(tensor.shape)
    if wanted is None:
        return tuple(OPEN if length == -1 else length for length in declared)
    fits = len(wanted) == len(declared) and all(
        length in (-1, given) for length, given in zip(declared, wanted, strict=True)
    )
    if not fits:
        given = "x".join(map(str, wanted)) or "scalar"
        raise Misuse(f"input {tensor.name!r} is {tensor.type}, and --shapes has {given} for it")
    return tuple(wanted)


def _numbers(tensor: trt.ITensor, shape: Sequence[int], generator: np.random.Generator) -> Any:
    if tensor.type.is_string:
        return generator.choice(["a", "b"], shape)
    if tensor.type.is_float:
        return np.asarray(generator.random(shape)).astype(tensor.type.dtype)
    return np.asarray(generator.integers(0, 2, shape)).astype(tensor.type.dtype)
