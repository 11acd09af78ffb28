"""Layers that let the ranks of a network, each with tensors of its own, exchange them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from netloop.diagnostics import NetworkError, require
from netloop.dims import PermutationLike
from netloop.enums import CollectiveOperation, LayerType, ReduceOperation
from netloop.graph.adding import AddsLayers
from netloop.graph.layer import Operation, check_member, check_tensor, layer
from netloop.graph.tensor import ITensor
from netloop.types import UNKNOWN, Array, TensorType, wide

AXIS_NAME = "ranks"
"""The name of the JAX axis along which the ranks lie, unless the metadata of the layer name another."""

NO_ROOT = -1

REDUCING = {CollectiveOperation.ALL_REDUCE, CollectiveOperation.REDUCE, CollectiveOperation.REDUCE_SCATTER}
ROOTED = {
    CollectiveOperation.BROADCAST,
    CollectiveOperation.REDUCE,
    CollectiveOperation.GATHER,
    CollectiveOperation.SCATTER,
}
GROWING = {CollectiveOperation.ALL_GATHER, CollectiveOperation.GATHER}
SHRINKING = {CollectiveOperation.REDUCE_SCATTER, CollectiveOperation.SCATTER}
SPLITTING = SHRINKING | {CollectiveOperation.ALL_TO_ALL}

# fmt: off
REDUCTIONS: dict[ReduceOperation, Callable[[Any, str], Any]] = {
    ReduceOperation.SUM:  lax.psum,
    ReduceOperation.PROD: lambda x, axis: lax.all_gather(x, axis).prod(0),
    ReduceOperation.MAX:  lax.pmax,
    ReduceOperation.MIN:  lax.pmin,
    ReduceOperation.AVG:  lax.pmean,
}
# fmt: on


@layer(LayerType.DIST_COLLECTIVE, "DistCollective")
class IDistCollectiveLayer(Operation):
    """Exchange tensors between ranks, of which each runs the network on inputs of its own.

    With n ranks, x[r] the input of rank r, and pieces along axis 0:

    ==============  ==============================================================
    ALL_REDUCE      the sum, product, maximum, minimum or mean of x[0], ..., x[n - 1]
    REDUCE          the same, on the root
    REDUCE_SCATTER  piece r of n of the same
    ALL_GATHER      x[0], ..., x[n - 1] one after the other
    GATHER          the same, on the root
    BROADCAST       x[root]
    SCATTER         piece r of n of x[root]
    ALL_TO_ALL      piece r of n of x[0], ..., of x[n - 1] one after the other
    ==============  ==============================================================

    Any element type, but for BOOL and, for the mean, integers where numbers are reduced; half types are reduced in
    float32. What REDUCE and GATHER give elsewhere than on the root has no meaning. With one rank all are the identity.

    The reference knows one rank only. In JAX the ranks lie along an axis: run the function of ``to_jax`` under
    ``jax.shard_map`` or ``jax.vmap`` with an axis of that name.

    Attributes:
        operation: what is exchanged.
        reduce_operation: how numbers are reduced; NONE where none are.
        root: the rank that gives or gets; -1 for none.
        groups: the ranks that take part, () for all; netloop knows no other groups than all.
        num_ranks: the number of ranks.
        metadata: the name of the axis; ``ranks`` if it is empty.
    """

    operation: CollectiveOperation
    reduce_operation: ReduceOperation = ReduceOperation.NONE
    root: int = NO_ROOT
    groups: PermutationLike = ()
    num_ranks: int = 1

    @property
    def is_foldable(self) -> bool:
        return self.num_ranks == 1

    def infer(self, x: TensorType) -> TensorType:
        self._check_ranks()
        if self.operation in REDUCING:
            self._check_reduction(x)
        if self.operation not in GROWING | SPLITTING:
            return x.without_value()
        require(x.rank > 0, f"{self.operation.name} works along axis 0, and the input is {x}")
        length = x.shape[0]
        require(
            self.operation not in SPLITTING or length == UNKNOWN or length % self.num_ranks == 0,
            f"axis 0 has {length} elements, which {self.num_ranks} ranks cannot share evenly",
        )
        return x.with_shape((self._length(length), *x.shape[1:]))

    def _length(self, length: int) -> int:
        if length == UNKNOWN:
            return UNKNOWN
        if self.operation in GROWING:
            return length * self.num_ranks
        return length // self.num_ranks if self.operation in SHRINKING else length

    def _check_ranks(self) -> None:
        ranks = self.num_ranks
        require(ranks > 0, f"num_ranks is {ranks}, but must be positive")
        require(
            tuple(self.groups) in ((), tuple(range(min(ranks, len(self.groups) + 1)))),
            f"groups are {tuple(self.groups)}, and there are {ranks} ranks",
            why="netloop lets all ranks take part, in their order",
            fix="give [], or set num_ranks",
        )
        require(
            self.operation not in ROOTED or 0 <= self.root < ranks,
            f"the root of {self.operation.name} is {self.root}, and the ranks are 0 to {ranks - 1}",
            fix="give another root, or set num_ranks",
        )

    def _check_reduction(self, x: TensorType) -> None:
        kind = self.reduce_operation
        require(kind in REDUCTIONS, f"{self.operation.name} has the reduction {kind.name}", "it reduces numbers")
        takes = x.is_float or (x.is_integer and kind is not ReduceOperation.AVG)
        require(takes, f"{kind.name} does not reduce {x}", fix="convert the input with add_cast")

    def evaluate(self, x: Array) -> Array:
        require(
            self.num_ranks == 1,
            f"the network runs on {self.num_ranks} ranks",
            why="the reference has the inputs of one rank only",
            fix="run netloop.to_jax(network) under jax.shard_map or jax.vmap with an axis for the ranks",
        )
        return x

    def lower(self, x: Any) -> Any:
        x = jnp.asarray(x)
        if self.num_ranks == 1:
            return x
        axis = self._axis()
        match self.operation:
            case CollectiveOperation.ALL_REDUCE | CollectiveOperation.REDUCE:
                return self._reduced(x, axis)
            case CollectiveOperation.REDUCE_SCATTER:
                return self._reduced_piece(x, axis)
            case CollectiveOperation.ALL_GATHER | CollectiveOperation.GATHER:
                return lax.all_gather(x, axis, tiled=True)
            case CollectiveOperation.BROADCAST:
                return lax.all_gather(x, axis)[self.root]
            case CollectiveOperation.SCATTER:
                length = self._length(len(x))
                return lax.all_to_all(x, axis, 0, 0, tiled=True)[self.root * length :][:length]
            case CollectiveOperation.ALL_TO_ALL:
                return lax.all_to_all(x, axis, 0, 0, tiled=True)

    def _axis(self) -> str:
        """The name of the axis of the ranks, which is there and has as many as there are ranks."""
        name = self.metadata or AXIS_NAME
        try:
            size = lax.axis_size(name)
        except NameError:
            size = None
        if size == self.num_ranks:
            return name
        what = f"{self.name!r} runs on {self.num_ranks} ranks, and "
        what += f"there is no axis {name!r}" if size is None else f"the axis {name!r} has {size}"
        why = "the ranks lie along an axis of JAX, whose name the metadata of the layer give"
        fix = f"run netloop.to_jax(network) under jax.shard_map or jax.vmap with an axis {name!r} of {self.num_ranks}"
        raise NetworkError(self.finding("NL401", what, why, fix))

    def _reduced(self, x: Any, axis: str) -> Any:
        return REDUCTIONS[self.reduce_operation](wide(x), axis).astype(x.dtype)

    def _reduced_piece(self, x: Any, axis: str) -> Any:
        if self.reduce_operation is ReduceOperation.SUM:
            return lax.psum_scatter(wide(x), axis, tiled=True).astype(x.dtype)
        length = self._length(len(x))
        return lax.dynamic_slice_in_dim(self._reduced(x, axis), lax.axis_index(axis) * length, length)


class CollectiveMethods(AddsLayers):
    """The ``add_`` methods of this family."""

    FAMILY = "several devices"

    def add_dist_collective(
        self,
        input: ITensor,
        dist_collective_op: CollectiveOperation,
        reduce_op: ReduceOperation | None,
        root: int | None,
        groups: Sequence[int] | None,
    ) -> IDistCollectiveLayer:
        """An exchange between ranks, whose number is ``num_ranks`` of the layer."""
        made = IDistCollectiveLayer(
            operation=check_member("dist_collective_op", dist_collective_op, CollectiveOperation),
            root=NO_ROOT if root is None else root,
            groups=() if groups is None else groups,
        )
        if reduce_op is not None:
            made.reduce_operation = check_member("reduce_op", reduce_op, ReduceOperation)
        return self.add(made, [check_tensor(input, "input")])
