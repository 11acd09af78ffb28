"""Weights in files of safetensors, the format in which PyTorch's and JAX's models are shared.

The package safetensors reads and writes the files: ``pip install "netloop[weights]"``.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as written

from netloop.model.graph.attributes import check_instance
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.process.atomic_write import write_whole
from netloop.process.file_reading import memory_errors_as, read_regular
from netloop.values.diagnostics import FileFormatError, Finding, did_you_mean, quoted, reason
from netloop.values.enums import DataType
from netloop.values.string_arrays import type_name
from netloop.values.types import Array, numpy_type

TYPES = {
    "F64": DataType.DOUBLE,
    "F32": DataType.FLOAT,
    "F16": DataType.HALF,
    "BF16": DataType.BF16,
    "F8_E4M3": DataType.FP8,
    "F8_E5M2": DataType.E5M2,
    "I64": DataType.INT64,
    "I32": DataType.INT32,
    "I16": DataType.INT16,
    "I8": DataType.INT8,
    "U64": DataType.UINT64,
    "U32": DataType.UINT32,
    "U16": DataType.UINT16,
    "U8": DataType.UINT8,
    "BOOL": DataType.BOOL,
}
"""The element types by their words in files."""


def load(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The arrays of a file by name.

    Raises:
        FileFormatError: the file is damaged, truncated or no file of safetensors, or numpy lacks an element type.
        OSError: the file cannot be read, or is not a regular file.
    """
    name = os.fspath(path)
    with memory_errors_as(FileFormatError, name):
        try:
            tensors = deserialize(bytes(read_regular(path, copies=2)))
        except SafetensorError as error:
            fix = "get the file again, or write it with netloop.safetensors.save"
            raise FileFormatError(Finding("NL718", str(error), name, reason("NL718"), fix)) from None
        return {key: _array(tensor, name, key) for key, tensor in tensors}


def _array(tensor: Mapping[str, Any], file: str, name: str) -> Array:
    word = tensor["dtype"]
    if word not in TYPES:
        what = f"{quoted(name)} has the element type {word}, and there are {', '.join(TYPES)}"
        raise FileFormatError(Finding("NL718", what, file, reason("NL718"), "convert it to another type"))
    return np.frombuffer(tensor["data"], numpy_type(TYPES[word])).reshape(tensor["shape"])


def save(path: str | os.PathLike[str], weights: Mapping[str, Any]) -> None:
    """Write arrays, by name, into a file, which is replaced if it exists; for instance the weights of ``to_jax``.

    The file is written next to ``path`` and then renamed, so that there is never half a file.

    Raises:
        ValueError: the format lacks an element type.
        OSError: the file cannot be written; the old one is unchanged.
    """
    arrays = {name: np.asarray(array, order="C") for name, array in weights.items()}
    lacking = [f"{quoted(name)} is {type_name(array.dtype)}" for name, array in arrays.items() if not _has(array.dtype)]
    if lacking:
        raise ValueError(f"{'; '.join(lacking)}: netloop reads {', '.join(TYPES)} from files of safetensors")
    write_whole(Path(path), [written(arrays)])


def _has(dtype: np.dtype[Any]) -> bool:
    return any(dtype == numpy_type(kind) for kind in TYPES.values())


def weights_of(network: INetworkDefinition) -> dict[str, Array]:
    """The arrays of the constants of a network that have names, by name, of the element types that files can have."""
    arrays = {
        name: layer.evaluate() for name, layer in _named(check_instance("network", network, INetworkDefinition)).items()
    }
    return {name: array for name, array in arrays.items() if _has(array.dtype)}


def set_weights(network: INetworkDefinition, path: str | os.PathLike[str]) -> list[str]:
    """Give constants of a network the arrays of a file, by name; return the names of the file that the network lacks.

    Args:
        network: the network, before it is compiled; a ``Refitter`` gives an engine the arrays of ``load``.
        path: the file.

    Raises:
        FileFormatError: the file is damaged, or an array has another element type or shape than the constant; it lists
            all of them.
        OSError: the file cannot be read, or is not a regular file.
    """
    arrays, constants = load(path), _named(check_instance("network", network, INetworkDefinition))
    misfits = [_misfit(name, array, constants[name]) for name, array in arrays.items() if name in constants]
    findings = [Finding("NL718", what, os.fspath(path), reason("NL718")) for what in misfits if what]
    unknown = [name for name in arrays if name not in constants]
    if unknown and len(unknown) == len(arrays):
        what = f"the network has none of the {len(arrays)} names of the file, such as {quoted(unknown[0])}"
        fix = did_you_mean(unknown[0], constants)
        findings.append(Finding("NL718", what, os.fspath(path), reason("NL718"), fix))
    if findings:
        raise FileFormatError(*findings)
    for name, array in arrays.items():
        if name in constants:
            constants[name].weights = array.reshape(-1)
    return unknown


def _named(network: INetworkDefinition) -> dict[str, IConstantLayer]:
    constants = (layer for layer in network.layers if isinstance(layer, IConstantLayer))
    return {layer.name: layer for layer in constants if layer.name != layer.default_name}


def _misfit(name: str, array: Array, constant: IConstantLayer) -> str:
    """The difference between an array and the type of a constant; empty if there is none."""
    wanted = constant.outputs[0].type
    if (array.dtype, array.shape) == (wanted.dtype, wanted.shape):
        return ""
    dims = ",".join(map(str, array.shape))
    return f"{quoted(name)} is {type_name(array.dtype)}[{dims}] in the file, and {wanted} in the network"
