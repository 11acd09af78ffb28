"""Rows of a batch that must not depend on each other, as they run in parts."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from netloop.compiler.execution.program_cache import MOST_PROGRAMS
from netloop.compiler.execution.sharding import Sharding, axes_of
from netloop.compiler.lru_cache import LruCache
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import ExecutionError, Finding, InputError, NetworkError, reason
from netloop.values.types import UNKNOWN

CHANGED = "rows of output {!r} change with rows that are none of theirs"
FIX = "pass dependent_rows=True if each device shall compute its block by itself"
CLOSE = {"rtol": 1e-2, "atol": 1e-3}
"""How far the results of programs for other numbers of rows may differ, by rounding."""

Run = Callable[[list[jax.Array]], list[jax.Array]]
Places = dict[int, int]
"""The axis along which an array has rows, by the number of the input or output."""


def dependent_rows(what: str, fix: str) -> NetworkError:
    """The error that rows depend on each other."""
    return NetworkError(Finding("NL615", what, "", reason("NL615"), fix))


class _Cut(NamedTuple):
    """A cut of inputs and outputs along axes of a mesh, where the inputs may have any number of rows.

    Attributes:
        parts: the number of devices along these axes.
        inputs, outputs: the axes of rows.
    """

    parts: int
    inputs: Places
    outputs: Places


class RowCheck:
    """Find out whether rows of the blocks of a batch depend on each other: on one device, they would on all rows.

    Every second row of each block is replaced by one of the next block, which must not change the results of the
    others. A block of one row gets the one of the next block as well, which takes another program.

    Args:
        network: the network.
        sharding: how its inputs and outputs are cut.
        rounds: whether the devices round the operands of float32 products, which other programs may do otherwise.
    """

    def __init__(self, network: INetworkDefinition, sharding: Sharding, rounds: bool) -> None:
        self._sharding, self._rounds = sharding, rounds
        self._names = [tensor.name for tensor in network.outputs]
        self._draws = any(getattr(layer, "draws", False) for layer in network.layers)
        inputs, outputs = ([*entry.values()] for entry in (sharding.inputs, sharding.outputs))
        shapes = [tensor.type.shape for tensor in network.inputs]
        self._cuts: list[_Cut] = []
        # equal rows show nothing, so that calls with them are checked again, which is to compile nothing
        self._others = LruCache[tuple[_Rows, int, int, int], Callable[[jax.Array], jax.Array]](MOST_PROGRAMS)
        for axes in {entry for spec in inputs for entry in self._entries(spec) if entry}:
            places = self._places(inputs, axes).items()
            rows = {number: place for number, place in places if shapes[number][place : place + 1] == (UNKNOWN,)}
            parts = math.prod(sharding.mesh.shape[axis] for axis in axes)
            if rows and parts > 1:
                self._cuts.append(_Cut(parts, rows, self._places(outputs, axes)))

    def _entries(self, spec: PartitionSpec) -> list[tuple[str, ...]]:
        return [axes_of(PartitionSpec(entry)) for entry in self._sharding.own_part(spec)]

    def _places(self, specs: Sequence[PartitionSpec], axes: tuple[str, ...]) -> Places:
        entries = [self._entries(spec) for spec in specs]
        return {number: found.index(axes) for number, found in enumerate(entries) if axes in found}

    def __call__(self, run: Run, run_longer: Run, arrays: list[jax.Array], outputs: list[jax.Array]) -> bool:
        """Compare outputs with those of other rows; return whether there were any to compare with.

        Args:
            run: runs the program of the arrays.
            run_longer: runs the network with other numbers of rows.
            arrays: the inputs.
            outputs: the outputs for them.

        Raises:
            NetworkError: rows depend on each other.
        """
        return all(self._is_tried(cut, run, run_longer, arrays, outputs) for cut in self._cuts)

    def _is_tried(
        self, cut: _Cut, run: Run, run_longer: Run, arrays: list[jax.Array], outputs: list[jax.Array]
    ) -> bool:
        # an input may have several rows for each row of another one
        groups = math.gcd(*(arrays[number].shape[place] // cut.parts for number, place in cut.inputs.items()))
        self._require_rows(cut, groups, outputs)
        # a program for other numbers of rows draws other numbers
        if groups == 0 or (groups == 1 and self._draws):
            return True
        rows = _Rows(cut.parts, groups)
        # a row may depend on those before it only, or on those after it
        for kept in (0, 1):
            others = self._mapped(rows, kept, cut.inputs, arrays)
            # equal rows show nothing, and the next call may have others
            if groups > 1 and all(bool(_equal(arrays[number], others[number])) for number in cut.inputs):
                return False
            try:
                result = (run if groups > 1 else run_longer)(others)
            except (InputError, NetworkError, ExecutionError):
                return True  # the network is one of a single row, or takes no such rows
            for number, place in cut.outputs.items():
                if not rows.are_same(outputs[number], result[number], place, kept, self._rounds):
                    raise dependent_rows(CHANGED.format(self._names[number]), FIX)
        return True

    def _require_rows(self, cut: _Cut, groups: int, outputs: list[jax.Array]) -> None:
        """Raise a NetworkError unless each output has rows for those of the inputs."""
        for number, place in cut.outputs.items():
            length = outputs[number].shape[place]
            if groups and length // cut.parts % groups:
                what = f"output {self._names[number]!r} has {length} rows for inputs of {groups * cut.parts}"
                raise dependent_rows(what, FIX)

    def _mapped(self, rows: "_Rows", kept: int, places: Places, arrays: list[jax.Array]) -> list[jax.Array]:
        """The arrays, those with rows made anew, on the same devices."""
        specs = [*self._sharding.inputs.values()]
        result = list(arrays)
        for number, place in places.items():
            make = partial(rows.others, kept=kept, place=place)
            where = NamedSharding(self._sharding.mesh, specs[number])
            others = self._others.find((rows, kept, number, place), partial(jax.jit, make, out_shardings=where))
            result[number] = others(arrays[number])
        return result


class _Rows(NamedTuple):
    """The rows of arrays that are cut into ``parts`` blocks, in ``groups`` of each block."""

    parts: int
    groups: int

    def others(self, x: jax.Array, place: int, kept: int) -> jax.Array:
        """The even groups with odd ones of the next block, or with ``kept`` 1 the odd ones with even ones of it.

        A single group is lengthened by that of the next block.
        """
        places = self._places(x.shape[place])
        following = np.roll(places, -1, 0)
        if self.groups == 1:
            places = np.concatenate([following, places] if kept else [places, following], 1)
        else:
            places[:, 1 - kept :: 2] = following[:, 1 - kept :: 2]
        return jnp.take(x, places.reshape(-1), place)

    def are_same(self, before: jax.Array, after: jax.Array, place: int, kept: int, rounds: bool) -> bool:
        """Whether the rows that are kept have the same results: the very same, if it is by the same program."""
        if self.groups == 1:
            longer = _Rows(self.parts, 2)
            is_twice = 2 * before.shape[place] == after.shape[place]
            return is_twice and _close(before, longer._chosen(after, place, kept), rounds)
        return bool(_equal(*(self._chosen(array, place, kept) for array in (before, after))))

    def _places(self, length: int) -> Any:
        return np.arange(length).reshape(self.parts, self.groups, -1)

    def _chosen(self, x: jax.Array, place: int, kept: int) -> jax.Array:
        places = self._places(x.shape[place])[:, kept::2].reshape(-1)
        return jax.jit(lambda x: jnp.take(x, places, place))(x)


@jax.jit
def _equal(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.all((a == b) | ((a != a) & (b != b)))


def _close(a: jax.Array, b: jax.Array, rounds: bool) -> bool:
    return a.shape == b.shape and bool(jax.jit(partial(_are_close, rounds=rounds))(a, b))


def _are_close(a: jax.Array, b: jax.Array, rounds: bool) -> jax.Array:
    atol: Any = CLOSE["atol"]
    if rounds:
        # a sum of large products that nearly cancels has the error of its terms
        sizes = jnp.where(jnp.isfinite(a), jnp.abs(a), 0)
        atol = jnp.maximum(atol, CLOSE["rtol"] * jnp.sqrt(jnp.mean(sizes.astype(np.float32) ** 2)))
    return jnp.allclose(a, b, rtol=CLOSE["rtol"], atol=atol, equal_nan=True)
