"""The outputs of a run: as a table, and as a file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from netloop.process.atomic_write import write_whole

VALUES = 6
"""The most elements of an array that are printed one by one."""


def as_numpy(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of an engine as arrays of numpy; values that are no tensors stay as they are."""
    return {
        name: value if value is None or isinstance(value, dict | list) else np.asarray(value)
        for name, value in outputs.items()
    }


def lines_of(outputs: Mapping[str, Any]) -> Iterator[str]:
    """A line for each array of the outputs."""
    for name, array in _arrays(outputs):
        shape = f"[{','.join(map(str, array.shape))}]"
        yield f"{name}: {_kind(array)}{shape}{_numbers(array)}"


def _kind(array: Any) -> str:
    """The name of the element type."""
    return "string" if array.dtype.kind in "OTU" else str(array.dtype)


def records_of(outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A record for each array of the outputs, for JSON: with all elements if they are few, else with their extremes."""
    results = list[dict[str, Any]]()
    for name, array in _arrays(outputs):
        record: dict[str, Any] = {"name": name, "type": _kind(array), "shape": [*array.shape]}
        numbers = array.astype(np.float64) if array.dtype.kind not in "OTUb" else np.empty(0)
        finite = numbers[np.isfinite(numbers)]
        if array.size <= VALUES:
            record["values"] = [number if isinstance(number, bool | int | str) else in_json(number)
                                for number in array.reshape(-1).tolist()]  # fmt: skip
        if finite.size:
            record |= {"min": float(finite.min()), "max": float(finite.max()), "mean": float(finite.mean())}
        results.append(record | {"not_finite": numbers.size - finite.size})
    return results


def in_json(number: Any) -> float | str:
    """A number; as text where JSON has none, which is for infinities and NaN."""
    return float(number) if np.isfinite(float(number)) else str(float(number))


def save(outputs: Mapping[str, Any], path: Path) -> None:
    """Write outputs as an .npz file, which is whole or not there; maps and sequences have a part for each array.

    Raises:
        OSError: it cannot be written.
    """
    archived = io.BytesIO()
    with zipfile.ZipFile(archived, "w") as archive:  # not numpy.savez, in which an output cannot have the name file
        for name, array in _arrays(outputs):
            # numpy's files have neither the element types of ml_dtypes nor strings of any length
            plain = array.astype(np.float32) if array.dtype.kind == "V" else array
            plain = plain.astype(str) if plain.dtype.kind in "OT" else plain
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, plain, allow_pickle=False)
    # not getbuffer(): a view in a reference cycle, as of an exception, ends the process in Python 3.12.1
    write_whole(path, [archived.getvalue()])


def _arrays(outputs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in outputs.items():
        if isinstance(value, dict):
            yield from _arrays({f"{name}.keys": np.asarray([*value]), f"{name}.values": np.asarray([*value.values()])})
        elif isinstance(value, list):
            items: list[Any] = value
            yield from _arrays({f"{name}.{number}": value for number, value in enumerate(items)})
        elif value is not None:
            yield name, np.asarray(value)


def _numbers(array: Any) -> str:
    """A summary of the elements: all of them if they are few, else the least, the mean and the greatest."""
    if array.size <= VALUES:
        return f" = {', '.join(str(number) for number in array.reshape(-1).tolist())}" if array.size else ""
    if array.dtype.kind in "OTUb":
        return ""
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    odd = array.size - finite.size
    more = f", {odd} not finite" if odd else ""
    if not finite.size:
        return more
    return f", from {finite.min():.6g} to {finite.max():.6g}, mean {finite.mean():.6g}{more}"
