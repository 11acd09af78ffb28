"""The files of a model: the protobuf, and a separate file for large arrays."""

import hashlib
import os
from pathlib import Path

from onnx import ModelProto, TensorProto

from netloop.model.graph.attributes import check_instance
from netloop.process.atomic_write import Part, write_together

LARGEST_MODEL = (1 << 31) - 1
"""The greatest length of a protobuf, in bytes."""

LARGE = 1 << 10
ALIGNMENT = 1 << 12
"""The alignment of arrays in their file, in bytes, so that they can be mapped into memory."""


def write_model(model: ModelProto, path: str | os.PathLike[str], external_above: int | None) -> None:
    """Write a model, and a separate file for its large arrays if there are any.

    The file of the arrays is named by a hash of their content, so that an older model keeps its own.

    Raises:
        ValueError: ``external_above`` is negative.
        OSError: the files cannot be written; the old ones are unchanged.
    """
    path = Path(path)
    if external_above is not None:
        check_instance("external_above", external_above, int)
        if external_above < 0:
            raise ValueError(f"external_above is {external_above}, and is a number of bytes")
    total = sum(len(initializer.raw_data) for initializer in model.graph.initializer)
    least = LARGE if external_above is None else external_above
    outside = [initializer for initializer in model.graph.initializer if len(initializer.raw_data) > least]
    fits = external_above is None and total + LARGE * LARGE < LARGEST_MODEL
    arrays = {} if fits else _moved_out(outside, path)
    write_together({**arrays, path: [model.SerializeToString(deterministic=True)]})


def _moved_out(tensors: list[TensorProto], path: Path) -> dict[Path, list[Part]]:
    """Move the data of tensors into a file next to ``path``; return its path and content."""
    if not tensors:
        return {}
    digest = hashlib.sha256()
    pieces: list[Part] = []
    for tensor in tensors:
        padding = bytes(-len(tensor.raw_data) % ALIGNMENT)
        pieces += [tensor.raw_data, padding]
        digest.update(tensor.raw_data)
        digest.update(padding)
    name = f"{path.name}.{digest.hexdigest()[:16]}.data"
    offset = 0
    for tensor in tensors:
        length = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", name), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        offset += length + -length % ALIGNMENT
    return {path.with_name(name): pieces}
