"""Conversion of ONNX tensors and types to arrays and numpy types, and back."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from netloop.formats.onnx.importer.external_data import read_external
from netloop.model.formulas import as_dtype
from netloop.process.file_reading import require_memory
from netloop.values.diagnostics import LayerError, reason, require
from netloop.values.map_types import MapType
from netloop.values.string_arrays import STRING
from netloop.values.types import LARGEST_TENSOR, UNKNOWN, Array, OptionalType, SequenceType, TensorType


def element_type(code: int) -> np.dtype[Any]:
    """The numpy type of an element type of ONNX.

    Raises:
        LayerError: netloop does not support the type.
    """
    if code == TensorProto.STRING:
        return STRING
    if code == TensorProto.UNDEFINED or code not in TensorProto.DataType.values():
        raise LayerError(f"netloop has no tensors of {_name(code)} elements", reason("NL746"), "", "NL746")
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(code))
    as_dtype(dtype)
    return dtype


def type_code(dtype: np.dtype[Any]) -> int:
    """ONNX's number of an element type."""
    return TensorProto.STRING if dtype == STRING else int(helper.np_dtype_to_tensor_dtype(dtype))


def proto_of(type: TensorType) -> onnx.TypeProto:
    """Convert a type to ONNX."""
    if isinstance(type, OptionalType):
        return helper.make_optional_type_proto(proto_of(type.present))
    if isinstance(type, MapType):
        proto = helper.make_map_type_proto(
            type_code(type.key), helper.make_tensor_type_proto(type_code(type.dtype), [])
        )
        return helper.make_sequence_type_proto(proto) if type.is_sequence else proto
    shape = type.held_shape
    dims = None if shape is None else [None if length == UNKNOWN else length for length in shape]
    tensor = helper.make_tensor_type_proto(type_code(type.dtype), dims)
    return helper.make_sequence_type_proto(tensor) if isinstance(type, SequenceType) else tensor


def _name(code: int) -> str:
    return TensorProto.DataType.Name(code).lower() if code in TensorProto.DataType.values() else f"type {code}"


def array_of(proto: TensorProto, directory: Path | None = None) -> Array:
    """Convert a tensor of a model to an array; ``directory`` is the folder of external tensors, if there is one.

    Raises:
        LayerError: its data do not match its shape, or are in a file that must not be read.
    """
    dtype = element_type(proto.data_type)
    if dtype == STRING:
        return _strings_of(proto)
    size = _bytes_of_shape(proto.dims, dtype)
    if proto.data_location == TensorProto.EXTERNAL:
        raw = read_external(proto, size, directory)
        if as_dtype(dtype).itemsize >= 1:  # without the copies that a message makes
            return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(tuple(proto.dims))
        proto = TensorProto(data_type=proto.data_type, dims=proto.dims, raw_data=raw)
    if proto.HasField("raw_data"):
        require(len(proto.raw_data) == size, f"the tensor has {len(proto.raw_data)} bytes, and its shape {size}")
    try:
        return np.ascontiguousarray(numpy_helper.to_array(proto)).reshape(tuple(proto.dims))
    except (ValueError, TypeError, OverflowError) as error:
        raise LayerError(f"the data of the tensor do not match its shape: {error}") from error


def _strings_of(proto: TensorProto) -> Array:
    _bytes_of_shape(proto.dims, STRING)
    fits = len(proto.string_data) == math.prod(proto.dims)
    require(fits, f"the tensor has {len(proto.string_data)} strings, and the shape {tuple(proto.dims)}")
    return np.array(texts(proto.string_data), STRING).reshape(tuple(proto.dims))


def texts(encoded: Iterable[bytes]) -> list[str]:
    """The texts that a model gives as bytes.

    Raises:
        LayerError: one is not valid UTF-8.
    """
    try:
        return [data.decode() for data in encoded]
    except UnicodeDecodeError as error:
        raise LayerError("a string is not valid UTF-8", str(error)) from None


def _bytes_of_shape(dims: Sequence[int], dtype: np.dtype[Any]) -> int:
    require(min(dims, default=0) >= 0, f"the tensor has the shape {tuple(dims)}, with a negative length")
    count = math.prod(dims)
    require(count * dtype.itemsize <= LARGEST_TENSOR, f"the tensor has {count} elements, which is too many")
    return math.ceil(count * as_dtype(dtype).itemsize)


def dense_of(proto: onnx.SparseTensorProto, directory: Path | None = None) -> Array:
    """Convert a sparse tensor of a model to a dense array.

    Raises:
        LayerError: its values, indices and shape do not match, or it is too large.
    """
    values, indices = array_of(proto.values, directory), array_of(proto.indices, directory)
    dims = tuple(proto.dims)
    _bytes_of_shape(dims, values.dtype)
    require(values.ndim == 1 and indices.dtype == np.int64, "a sparse tensor must have 1-D values and int64 indices")
    require(len(indices) == len(values), f"there are {len(indices)} indices for {len(values)} values")
    places = indices if indices.ndim == 1 else _linear(indices, dims)
    volume = math.prod(dims)
    require(bool(np.all((places >= 0) & (places < volume))), f"an index is outside of the shape {dims}")
    require(volume * values.itemsize <= LARGEST_DENSE, f"a sparse tensor of {volume} elements is too large to be dense")
    require_memory(volume * values.itemsize, "the sparse tensor")
    dense = np.zeros(volume, values.dtype)
    dense[places] = values
    return dense.reshape(dims)


LARGEST_DENSE = 1 << 30
"""The largest sparse tensor to be converted, in bytes of the dense array."""


def _linear(indices: Array, dims: Sequence[int]) -> Array:
    require(indices.ndim == 2 and indices.shape[1] == len(dims), "the indices must have one number for each axis")
    require(bool(np.all((indices >= 0) & (indices < np.array(dims)))), f"an index is outside of the shape {dims}")
    strides = [math.prod(dims[axis + 1 :]) for axis in range(len(dims))]
    return indices @ np.array(strides, np.int64)
