"""Collective communication between the ranks that run a network."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from netloop.model.graph import ILayer, ITensor, NetworkBase, Operation, check_member, layer
from netloop.model.manual_axes import all_gather
from netloop.values.diagnostics import NetworkError, require
from netloop.values.dims import PermutationLike
from netloop.values.enums import CollectiveOperation, LayerType, ReduceOperation
from netloop.values.types import UNKNOWN, Array, TensorType, wide

AXIS_NAME = "ranks"
"""The default name of the JAX axis of the ranks; the metadata of a layer can name another."""

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
    ReduceOperation.PROD: lambda x, axis: all_gather(x, axis).prod(0),
    ReduceOperation.MAX:  lax.pmax,
    ReduceOperation.MIN:  lax.pmin,
    ReduceOperation.AVG:  lax.pmean,
}
# fmt: on


@layer(LayerType.DIST_COLLECTIVE, "DistCollective")
class IDistCollectiveLayer(Operation):
    """Exchange tensors between ranks, each of which runs the network on its own inputs.

    With n ranks, x[r] the input of rank r, and chunks along axis 0, the output of rank r is:

    ==============  =================================================================
    ALL_REDUCE      the sum, product, maximum, minimum or mean of x[0], ..., x[n - 1]
    REDUCE          the same, on the root
    REDUCE_SCATTER  chunk r of n of the same
    ALL_GATHER      the concatenation of x[0], ..., x[n - 1]
    GATHER          the same, on the root
    BROADCAST       x[root]
    SCATTER         chunk r of n of x[root]
    ALL_TO_ALL      the concatenation of chunk r of n of x[0], ..., x[n - 1]
    ==============  =================================================================

    Any element type; for a reduction any except BOOL, and for the mean only floating-point. Half types are reduced in
    float32. The outputs of REDUCE and GATHER are undefined on ranks other than the root. With one rank, all
    operations are the identity.

    The reference supports only one rank. ``netloop.shard`` runs the network on a mesh, with an axis for the ranks; the
    function of ``to_jax`` runs under ``jax.shard_map`` or ``jax.vmap`` with an axis of that name.

    Attributes:
        operation: the kind of exchange.
        reduce_operation: the reduction; NONE for operations without one.
        root: the rank that sends or receives; -1 for none.
        groups: the ranks that take part, () for all; netloop supports only groups of all ranks.
        num_ranks: the number of ranks.
        metadata: the name of the axis; empty for ``ranks``, or in ``netloop.shard`` for the only axis that there is.
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
        require(
            x.rank > 0,
            f"{self.operation.name} needs an axis 0, but the input is {x}",
            why="it is split or joined along axis 0",
        )
        length = x.shape[0]
        require(
            self.operation not in SPLITTING or length == UNKNOWN or length % self.num_ranks == 0,
            f"axis 0 has {length} elements, which cannot be divided evenly among {self.num_ranks} ranks",
            why="each rank gets an equal part",
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
        require(ranks > 0, f"num_ranks is {ranks}, but must be positive", why="each rank is a process that takes part")
        require(
            tuple(self.groups) in ((), tuple(range(min(ranks, len(self.groups) + 1)))),
            f"groups are {tuple(self.groups)}, but there are {ranks} ranks",
            why="netloop supports only the group of all ranks, in order",
            fix="pass [], or set num_ranks",
        )
        require(
            self.operation not in ROOTED or 0 <= self.root < ranks,
            f"the root of {self.operation.name} is {self.root}, but the ranks are 0 to {ranks - 1}",
            fix="choose another root, or set num_ranks",
            why="one of the ranks has the result, or the value to send",
        )

    def _check_reduction(self, x: TensorType) -> None:
        kind = self.reduce_operation
        require(kind in REDUCTIONS, f"{self.operation.name} has the reduction {kind.name}", "it needs a reduction")
        takes = x.is_float or (x.is_integer and kind is not ReduceOperation.AVG)
        require(takes, f"{kind.name} does not reduce {x}", fix="convert the input with add_cast")

    def evaluate(self, x: Array) -> Array:
        require_one_rank(self)
        return x

    def lower(self, x: Any) -> Any:
        x = jnp.asarray(x)
        if self.num_ranks == 1:
            return x
        axis = axis_of_ranks(self)
        match self.operation:
            case CollectiveOperation.ALL_REDUCE | CollectiveOperation.REDUCE:
                return self._reduced(x, axis)
            case CollectiveOperation.REDUCE_SCATTER:
                return self._reduced_piece(x, axis)
            case CollectiveOperation.ALL_GATHER | CollectiveOperation.GATHER:
                return all_gather(x, axis, tiled=True)
            case CollectiveOperation.BROADCAST:
                return all_gather(x, axis)[self.root]
            case CollectiveOperation.SCATTER:
                length = self._length(len(x))
                return lax.all_to_all(x, axis, 0, 0, tiled=True)[self.root * length :][:length]
            case CollectiveOperation.ALL_TO_ALL:
                return lax.all_to_all(x, axis, 0, 0, tiled=True)

    def _reduced(self, x: Any, axis: str) -> Any:
        return REDUCTIONS[self.reduce_operation](wide(x), axis).astype(x.dtype)

    def _reduced_piece(self, x: Any, axis: str) -> Any:
        if self.reduce_operation is ReduceOperation.SUM:
            return lax.psum_scatter(wide(x), axis, tiled=True).astype(x.dtype)
        length = self._length(len(x))
        return lax.dynamic_slice_in_dim(self._reduced(x, axis), lax.axis_index(axis) * length, length)


def name_of_axis(layer: ILayer) -> str:
    """The name that the axis of JAX has, along which the ranks of a layer are."""
    return layer.metadata or AXIS_NAME


def axis_of_ranks(layer: ILayer) -> str:
    """The name of the axis of JAX along which the ranks of a layer are.

    Raises:
        NetworkError: there is none, or one of another size.
    """
    name = name_of_axis(layer)
    try:
        size = lax.axis_size(name)
    except NameError:
        size = None
    if size == layer.num_ranks:
        return name
    what = f"{layer.name!r} runs on {layer.num_ranks} ranks, but "
    what += f"there is no axis {name!r}" if size is None else f"the axis {name!r} has {size}"
    why = "the ranks are an axis of JAX, named by the metadata of the layer"
    fix = f"call netloop.shard(network, mesh) with a mesh that has an axis {name!r} of {layer.num_ranks} devices"
    raise NetworkError(layer.finding("NL401", what, why, fix))


def require_one_rank(layer: ILayer) -> None:
    """Check that the reference can compute a layer.

    Raises:
        LayerError: it runs on several ranks.
    """
    require(
        layer.num_ranks == 1,
        f"the network runs on {layer.num_ranks} ranks",
        why="the reference has only the inputs of one rank",
        fix="call netloop.shard(network, mesh) with a mesh of devices, one for each rank",
    )


class CollectiveMethods(NetworkBase):
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
        """An exchange between ranks; set the attribute ``num_ranks`` of the layer to their number.

        With n ranks, x[r] the input of rank r, and chunks along axis 0, the output of rank r is:

        ==============  =================================================================
        ALL_REDUCE      the sum, product, maximum, minimum or mean of x[0], ..., x[n - 1]
        REDUCE          the same, on the root
        REDUCE_SCATTER  chunk r of n of the same
        ALL_GATHER      the concatenation of x[0], ..., x[n - 1]
        GATHER          the same, on the root
        BROADCAST       x[root]
        SCATTER         chunk r of n of x[root]
        ALL_TO_ALL      the concatenation of chunk r of n of x[0], ..., x[n - 1]
        ==============  =================================================================

        Any element type; for a reduction any except BOOL, and for the mean only floating-point. Half types are
        reduced in float32. The outputs of REDUCE and GATHER are undefined on ranks other than the root. With one rank,
        all operations are the identity.

        The reference supports only one rank. ``netloop.shard`` runs the network on a mesh, with an axis for the
        ranks; the function of ``to_jax`` runs under ``jax.shard_map`` or ``jax.vmap`` with an axis of that name.

        Args:
            input: the input.
            dist_collective_op: the kind of exchange.
            reduce_op: the reduction; NONE for operations without one.
            root: the rank that sends or receives; -1 for none.
            groups: the ranks that take part, () for all; netloop supports only groups of all ranks.

        Further attributes of the layer, which have defaults: ``num_ranks``.
        """
        result = IDistCollectiveLayer(
            operation=check_member("dist_collective_op", dist_collective_op, CollectiveOperation),
            root=NO_ROOT if root is None else root,
            groups=() if groups is None else groups,
        )
        if reduce_op is not None:
            result.reduce_operation = check_member("reduce_op", reduce_op, ReduceOperation)
        return self.add(result, input=input)
