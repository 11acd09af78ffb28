"""Plans: files of networks with their weights, which load to the same network or not at all.

A plan is a zip that any zip tool opens (see ``container``): a manifest with the SHA-256 of every member, the network as
JSON (see ``network_json``) and the weights as ``.npy`` (see ``npy_arrays``). The same network gives the same bytes.
Nothing is unpickled, nothing is compressed, and hashes are verified before anything is decoded. So a file that is
damaged, truncated or malicious raises one FileFormatError. A hash is not a signature: whoever can write the file can
write another plan.
"""

import copyreg
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.model.plan import npy_arrays
from netloop.model.plan.container import NETWORK, Part, draw, pack, unpack
from netloop.model.plan.json_reader import JsonValue, from_json, to_json
from netloop.model.plan.network_json import BUILD, NetworkReader, NetworkWriter
from netloop.process.atomic_write import write_whole
from netloop.process.file_reading import memory_errors_as, read_regular
from netloop.values.diagnostics import FileFormatError, Finding, NetworkError, listed, reason

__all__ = ["Plan", "draw", "dumps", "load", "loads", "naming", "read", "read_file", "save"]


class Plan(NamedTuple):
    """The contents of a plan.

    Attributes:
        network: the network.
        build: the record of its build; None if there is none.
        absent: the constants whose weights were left out; they are zeros.
    """

    network: INetworkDefinition
    build: JsonValue | None
    absent: list[IConstantLayer]


def dumps(
    network: INetworkDefinition, build: Mapping[str, Any] | None = None, without: Sequence[IConstantLayer] = ()
) -> bytes:
    """Return the plan of a network, which may have errors; equal networks give equal bytes.

    Args:
        network: the network.
        build: the record of an engine's build, in the types of JSON; ``read`` returns it.
        without: constants whose weights are left out.

    Raises:
        NetworkError: a plan cannot hold something in it, such as a layer of a kind that netloop does not have.
    """
    return b"".join(_pieces(network, build, without))


def loads(data: bytes | bytearray | memoryview) -> INetworkDefinition:
    """Return the network of a plan; its weights are read-only, and equal ones are one array.

    Raises:
        FileFormatError: the plan is damaged, truncated, of a newer version, or not a plan.
    """
    plan = read(data)
    if plan.absent:
        what = f"the plan has no weights for {listed([constant.name for constant in plan.absent])}"
        fix = "load it with Runtime.deserialize_cuda_engine, and set the weights with a Refitter"
        raise FileFormatError(Finding("NL716", what, why=reason("NL716"), fix=fix))
    return plan.network


def read(data: bytes | bytearray | memoryview) -> Plan:
    """Return the contents of a plan.

    Raises:
        FileFormatError: the plan is damaged, truncated, of a newer version, or not a plan.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a plan must be bytes, not {type(data).__name__}")
    with memory_errors_as(FileFormatError, ""):
        document, files = unpack(data if isinstance(data, bytes) else bytes(data))
        reader = NetworkReader(from_json(document, NETWORK), files)
        network = reader.network()
    return Plan(network, reader.build, reader.absent)


def _reduced(network: INetworkDefinition) -> tuple[Callable[[bytes], INetworkDefinition], tuple[bytes]]:
    return loads, (dumps(network),)


# pickle asks this table before the class, which is of a lower level and knows nothing of plans
copyreg.pickle(INetworkDefinition, _reduced)  # pyright: ignore[reportArgumentType]


def save(network: INetworkDefinition, path: str | os.PathLike[str]) -> None:
    """Write the plan of a network.

    The file is written next to ``path`` and then renamed, so that at any time the old file or the new one exists.

    Raises:
        NetworkError: a plan cannot hold something in it.
        OSError: the file cannot be written; the old one is unchanged.
    """
    write_whole(Path(path), _pieces(network))


def load(path: str | os.PathLike[str]) -> INetworkDefinition:
    """Return the network of a plan in a file; see ``loads``.

    Raises:
        FileFormatError: the plan is damaged, truncated, of a newer version, or not a plan.
        OSError: the file cannot be read, or is not a regular file.
    """
    return read_file(path).network


def read_file(path: str | os.PathLike[str]) -> Plan:
    """Return the contents of a plan in a file.

    Raises:
        FileFormatError: the plan is damaged, truncated, of a newer version, or not a plan.
        OSError: the file cannot be read, or is not a regular file.
    """
    with memory_errors_as(FileFormatError, os.fspath(path)):
        data = read_regular(path)
    with naming(path):
        return read(data)


def _pieces(
    network: INetworkDefinition, build: Mapping[str, Any] | None = None, without: Sequence[IConstantLayer] = ()
) -> list[Part]:
    writer = NetworkWriter(network, without)
    document = to_json(writer.document() | ({} if build is None else {BUILD: dict(build)}))
    files = [npy_arrays.file_of(array, dtype) for dtype, array in writer.present]
    try:
        return pack(document, files)
    except ValueError as error:
        raise NetworkError(Finding("NL714", f"the network cannot be saved: {error}", at=network)) from None


@contextmanager
def naming(path: str | os.PathLike[str]) -> Generator[None]:
    """Make errors about a plan name its file."""
    try:
        yield
    except FileFormatError as error:
        raise FileFormatError(*(_in_file(finding, os.fspath(path)) for finding in error.findings)) from None


def _in_file(finding: Finding, path: str) -> Finding:
    return replace(finding, where=f"{path}, {finding.where}" if finding.where else path)
