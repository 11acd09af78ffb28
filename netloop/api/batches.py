"""Any number of rows by the programs of a few batch sizes."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import numpy as np

from netloop.api.engine import ICudaEngine
from netloop.compiler.execution.row_independence import CHANGED, dependent_rows
from netloop.model.call_inputs import array_named
from netloop.model.graph import ITensor, check_instance
from netloop.model.network import INetworkDefinition
from netloop.process.forked import require_jax
from netloop.values.diagnostics import Finding, InputError, NetworkError, did_you_mean, reason
from netloop.values.types import UNKNOWN, Array, TensorType

Arrays = dict[str, Array]


class Batches:
    """An engine that takes any number of rows, and compiles programs of a few batch sizes only.

    XLA's programs have fixed shapes, so an engine compiles once for each number of rows. Here rows are padded to the
    next of the sizes by copies of the last row, and more rows than the largest size are several calls.

    Row i of each output must depend on row i of the inputs, and on no other row nor their number. The first time that a
    size is padded, its call is repeated with other padding, and what depends on it is a NetworkError.

    Args:
        engine: the engine.
        sizes: the batch sizes, such as ``(1, 8, 64)``.
        shared: the names of inputs that are the same for all rows; every other input has rows, on its first axis.

    Raises:
        TypeError, ValueError: there is no size, one is not positive, or the engine has no input of a name.
        NetworkError: the first axis of another input, or of an output, has a fixed length.
    """

    def __init__(self, engine: ICudaEngine, sizes: Iterable[int], *, shared: Iterable[str] = ()) -> None:
        self.engine = check_instance("engine", engine, ICudaEngine)
        self.sizes = tuple(sorted({operator.index(size) for size in sizes}))
        if not self.sizes or self.sizes[0] < 1:
            raise ValueError("batch sizes are positive integers, such as (1, 8, 64)")
        inputs = {tensor.name: tensor for tensor in engine.network.inputs}
        self.shared = frozenset([shared] if isinstance(shared, str) else shared)
        for name in self.shared - inputs.keys():
            hint = did_you_mean(name, inputs)
            raise ValueError(f"the network has no input {name!r}" + (hint and f"; {hint}"))
        _require_rows(engine.network, self.shared)
        self._tried: set[int] = set()

    def __call__(self, inputs: Mapping[str, Any]) -> Arrays:
        """Run the engine for some rows; return the outputs by name, as numpy arrays with as many rows.

        Args:
            inputs: an array for each input, by name; those with rows have the same number of them.

        Raises:
            InputError: inputs have different numbers of rows, or the engine refuses them.
            NetworkError: rows depend on each other.
            ExecutionError: a computation failed in one of the rows.
        """
        count, rows, shared = self._split(inputs)
        if not count:
            return _as_numpy(self.engine({**rows, **shared}))
        parts = [self._run(piece, shared) for piece in self._pieces(rows, count)]
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def compile(self, inputs: Mapping[str, Any]) -> None:
        """Compile the programs of all sizes, for rows of the shapes of some inputs; their values do not matter."""
        _, rows, shared = self._split(inputs)
        for size in self.sizes:
            batch = {name: np.resize(row, (size, *row.shape[1:])) for name, row in rows.items()}
            # without a call: made-up numbers may keep a loop from ending
            self.engine.executable.prepare({**batch, **shared})

    def _split(self, inputs: Mapping[str, Any]) -> tuple[int, Arrays, dict[str, Any]]:
        """The number of rows, the arrays that have them, and the other inputs."""
        require_jax()
        shared = {name: tensor for name, tensor in inputs.items() if name in self.shared}
        others = {name: tensor for name, tensor in inputs.items() if name not in self.shared}
        rows = {name: np.asarray(array_named(name, tensor)) for name, tensor in others.items()}
        counts = {name: row.shape[0] if row.ndim else 0 for name, row in rows.items()}
        if len({*counts.values()}) > 1:
            listed = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
            fix = "pass as many rows in each, or list the inputs that are the same for all rows in shared"
            raise InputError(Finding("NL615", f"inputs have different numbers of rows: {listed}", "", REASON, fix))
        return max(counts.values(), default=0), rows, shared

    def _pieces(self, rows: Arrays, count: int) -> Iterator[Arrays]:
        largest = self.sizes[-1]
        for begin in range(0, count, largest):
            yield {name: row[begin : begin + largest] for name, row in rows.items()}

    def _run(self, rows: Arrays, shared: Mapping[str, Any]) -> Arrays:
        """The outputs of at most as many rows as the largest size has."""
        count = len(next(iter(rows.values())))
        size = next(size for size in self.sizes if size >= count)
        arrays = self._padded(rows, shared, count, size, count - 1)
        if size > count > 1 and size not in self._tried:
            _require_same(arrays, self._padded(rows, shared, count, size, 0))
            self._tried.add(size)
        return arrays

    def _padded(self, rows: Arrays, shared: Mapping[str, Any], count: int, size: int, copied: int) -> Arrays:
        """The outputs of some rows and of copies of one of them, without those of the copies."""
        chosen = [*range(count), *[copied] * (size - count)]
        arrays = rows if size == count else {name: row[chosen] for name, row in rows.items()}
        outputs = _as_numpy(self.engine({**arrays, **shared}))
        for name, array in outputs.items():
            if len(array) != size:
                raise dependent_rows(f"output {name!r} has {len(array)} rows for inputs of {size}", FIX)
        return {name: array[:count] for name, array in outputs.items()}


REASON = reason("NL615")
FIX = "call the engine itself, which compiles a program for each number of rows"


def _as_numpy(outputs: Mapping[str, Any]) -> Arrays:
    """Arrays on the host, where a slice of another length needs no program."""
    return {name: np.asarray(tensor) for name, tensor in outputs.items()}


def without_rows(network: INetworkDefinition, shared: Set[str] = frozenset()) -> list[ITensor]:
    """The inputs and outputs whose first axis is not one of any number of rows, without inputs that rows share."""
    inputs = [tensor for tensor in network.inputs if tensor.name not in shared]
    return [tensor for tensor in (*inputs, *network.outputs) if not has_rows(tensor)]


def has_rows(tensor: ITensor) -> bool:
    """Whether the first axis of a tensor has an open length."""
    return isinstance(tensor.type, TensorType) and tensor.type.shape[:1] == (UNKNOWN,)


def _require_rows(network: INetworkDefinition, shared: Set[str]) -> None:
    findings: list[Finding] = []
    for tensor in without_rows(network, shared):
        what = f"{tensor.name!r} is {tensor.type}, whose first axis is not one of any number of rows"
        fix = "give the inputs shapes that begin with -1, and list those that are the same for all rows in shared"
        findings.append(Finding("NL615", what, "", REASON, fix, at=tensor))
    if findings:
        raise NetworkError(*findings)


def _require_same(one: Arrays, other: Arrays) -> None:
    for name, array in one.items():
        if array.tobytes() != other[name].tobytes():
            raise dependent_rows(CHANGED.format(name), FIX)
