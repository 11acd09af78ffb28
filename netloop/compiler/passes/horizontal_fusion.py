"""Fuse matrix products that share an operand, and the element-wise layers behind them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.rewriter import Rewriter, layer_steps, operand
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.pointwise import IElementWiseLayer
from netloop.model.nest import Block
from netloop.values.dims import Dims
from netloop.values.enums import MatrixOperation

MAX_PACKED_BYTES = 1 << 28
"""The largest packed matrix. Its parts stay in memory too, as a refit needs them."""
LEAST_APART = 8_000_000
"""The multiplications from which a product outside of loops stays apart. It keeps the threads busy alone, and the
slices of a joined one are copied: with two threads, three products of 16 rows by 768 x 768 took 1.18 times as long with
attention behind them, of 256 rows 1.19 times, and of 4 rows 0.82 times."""


class HorizontalFusion(Pass):
    """Compute one product where one operand is multiplied by several matrices that are known in advance.

    x A, x B, .. become slices of x [A B ..]: one pass over the memory, and one start of a loop of products. Sums and
    other element-wise layers over all slices become one layer too. Over some of them only they are faster apart, as XLA
    makes no vectors of what reads several slices of one tensor.
    """

    name = "horizontal_fusion"
    level = 2
    # sums that become products may share operands, and slices of a fused product would keep states from being swapped;
    # a product for a kernel that is fused with another is not for the kernel alone
    after = ("matmul_recognition", "carry_layout", "recurrent_steps")
    rule = (
        "Products of one operand with several matrices, which are weights or inputs, become one product, and so do "
        f"sums over all their results. Up to {MAX_PACKED_BYTES >> 20} MiB of matrices; outside of loops, only "
        f"products of fewer than {LEAST_APART:,} multiplications each."
    )
    sizes: ClassVar[dict[str, int]] = {f"up_to_{number}m": number << 20 for number in (1, 4)}
    """The bytes of the largest packed matrix in each form that is not the rule."""
    alternatives = (OFF, *sizes)

    def rewrite(self, rewriter: Rewriter) -> bool:
        is_changed = False
        for block in list(rewriter.blocks()):
            packs: list[_Pack] = []
            for position, layers in _siblings(rewriter, block):
                rewriter.note(f"{len(layers)} products of {operand(layers[0], position).name!r} became one")
                packs.append(_fuse(rewriter, position, layers))
            _ElementwiseFusion(rewriter, block, packs).fuse()
            is_changed |= bool(packs)
        return is_changed


@dataclass(eq=False)
class _Pack:
    """Tensors that are joined along an axis.

    Attributes:
        whole: the joined tensor.
        axis: the axis, counted from the end.
        bounds: the begin and end of each tensor on this axis.
        parts: the slices that replace the tensors.
    """

    whole: ITensor
    axis: int
    bounds: list[tuple[int, int]]
    parts: list[ITensor]

    @staticmethod
    def of(rewriter: Rewriter, whole: ITensor, axis: int, before: Sequence[ITensor]) -> _Pack:
        """Replace tensors by slices of a joined one."""
        pack, begin = _Pack(whole, axis, [], []), 0
        for tensor in before:
            end = begin + tensor.type.shape[axis]
            layer = rewriter.network.add_slice(whole, (begin,), (end - begin,), (1,))
            layer.axes = Dims((whole.type.rank + axis,))
            part = layer.outputs[0]
            rewriter.replace(tensor, part)
            pack.bounds.append((begin, end))
            pack.parts.append(part)
            begin = end
        return pack


def _siblings(rewriter: Rewriter, block: Block) -> Iterator[tuple[int, list[IMatrixMultiplyLayer]]]:
    """The groups of products of a block that share an operand, with the position of that operand."""
    groups: dict[tuple[int, ITensor, Hashable], list[IMatrixMultiplyLayer]] = defaultdict(list)
    for step in layer_steps(block):
        layer = step.layer
        if isinstance(layer, IMatrixMultiplyLayer) and rewriter.may_replace(layer.outputs[0]):
            for position in (0, 1):
                if _may_widen(rewriter, layer, 1 - position) and not _is_large(rewriter, layer, position):
                    groups[position, operand(layer, position), _packing_key(layer, 1 - position)].append(layer)
                    break  # a product joins one group
    most = HorizontalFusion.sizes.get(rewriter.form, MAX_PACKED_BYTES)
    for (position, _, _), layers in groups.items():
        if len(layers) > 1 and sum(operand(layer, 1 - position).type.nbytes for layer in layers) <= most:
            yield position, layers


def _may_widen(rewriter: Rewriter, layer: IMatrixMultiplyLayer, position: int) -> bool:
    """Whether an operand of a product can be joined with others before the loop that computes the product."""
    wide, shared = operand(layer, position), operand(layer, 1 - position)
    # a matrix that may be missing would take the products of the others with it
    is_matrix = _op(layer, position) is not MatrixOperation.VECTOR and rewriter.always_exists(wide)
    return is_matrix and rewriter.is_loop_invariant(wide, layer) and not rewriter.is_loop_invariant(shared, layer)


def _is_large(rewriter: Rewriter, layer: IMatrixMultiplyLayer, position: int) -> bool:
    """Whether a product is outside of loops and large enough to be faster by itself."""
    matrix = operand(layer, 1 - position).type.shape
    kept = matrix[_kept_axis(layer, 1 - position)]
    return not rewriter.scopes.depth(layer) and operand(layer, position).type.volume * kept >= LEAST_APART


def _packing_key(layer: IMatrixMultiplyLayer, position: int) -> Hashable:
    """The key that operands must share to be joined."""
    shape = list(operand(layer, position).type.shape)
    del shape[_kept_axis(layer, position)]
    # matrices are joined along the axis that their products keep, so that the others have to agree
    return layer.op0, layer.op1, tuple(shape)


def _op(layer: IMatrixMultiplyLayer, position: int) -> MatrixOperation:
    return (layer.op0, layer.op1)[position]


def _kept_axis(layer: IMatrixMultiplyLayer, position: int) -> int:
    """The axis of a matrix that a product keeps."""
    return (-2, -1)[position] if _op(layer, position) is MatrixOperation.NONE else (-1, -2)[position]


def _fuse(rewriter: Rewriter, position: int, layers: Sequence[IMatrixMultiplyLayer]) -> _Pack:
    first, other = layers[0], 1 - position
    parts = [operand(layer, other) for layer in layers]
    wide = rewriter.make.concat(parts, parts[0].type.rank + _kept_axis(first, other))
    a, b = (operand(first, 0), wide) if position == 0 else (wide, operand(first, 1))
    product = rewriter.network.add_matrix_multiply(a, first.op0, b, first.op1).outputs[0]
    axis = -1 if other == 1 or first.op1 is MatrixOperation.VECTOR else -2
    return _Pack.of(rewriter, product, axis, [layer.outputs[0] for layer in layers])


class _ElementwiseFusion:
    """Fuses the element-wise layers that do the same with every part of a pack.

    Attributes:
        open: the layers that are not fused yet.
        places: the pack and the number of each part.
    """

    def __init__(self, rewriter: Rewriter, block: Block, packs: list[_Pack]) -> None:
        self.rewriter = rewriter
        self.packs = packs
        self.open = {step.layer for step in layer_steps(block) if isinstance(step.layer, IElementWiseLayer)}
        self.places = {part: (pack, place) for pack in packs for place, part in enumerate(pack.parts)}

    def fuse(self) -> None:
        """Fuse layers over packs, and then those over the packs that this gives, which join the end of the list."""
        for pack in self.packs:
            for position, layers in self._alike(pack):
                self._join(pack, position, layers)

    def _alike(self, pack: _Pack) -> Iterator[tuple[int, list[IElementWiseLayer]]]:
        """Layers that do the same with all parts of a pack, in their order, and the position at which they read it."""
        groups: dict[tuple[int, Hashable, Hashable | None], dict[int, IElementWiseLayer]] = defaultdict(dict)
        for place, part in enumerate(pack.parts):
            for layer, position in part.uses:
                if isinstance(layer, IElementWiseLayer) and layer in self.open and self._may_join(layer, pack, part):
                    partner = operand(layer, 1 - position)
                    # of several layers that do the same with one part, the first joins
                    groups[position, layer.op, self._kind(layer, partner, pack, place)].setdefault(place, layer)
        for (position, _, kind), layers in groups.items():
            if kind is not None and len(layers) == len(pack.parts):
                yield position, list(layers.values())

    def _may_join(self, layer: ILayer, pack: _Pack, part: ITensor) -> bool:
        (output,) = layer.outputs
        return self.rewriter.may_replace(output) and output.type.shape == part.type.shape

    def _kind(self, layer: ILayer, partner: ITensor, pack: _Pack, place: int) -> Hashable | None:
        """The key that the other operands must share to be joined; None if this one cannot be."""
        if partner in self.places:
            other, its_place = self.places[partner]
            # one layer computes all sections, so both packs have them in the same places
            same = other is not pack and its_place == place and other.bounds == pack.bounds and other.axis == pack.axis
            return ("pack", other) if same else None
        length = partner.type.shape[pack.axis] if partner.type.rank >= -pack.axis else 1
        # one number along the axis serves all sections as it is
        if length == 1:
            return "broadcast", partner
        shape = list(partner.type.shape)
        del shape[pack.axis]
        # it is joined with those of the other sections before the loop begins
        is_known = self.rewriter.always_exists(partner) and self.rewriter.is_loop_invariant(partner, layer)
        return ("known", *shape) if is_known else None

    def _join(self, pack: _Pack, position: int, layers: list[IElementWiseLayer]) -> None:
        if not self.open.issuperset(layers):  # an operand of a layer may be a part of two packs
            return
        theirs = self._partner([operand(layer, 1 - position) for layer in layers], pack)
        a, b = (pack.whole, theirs) if position == 0 else (theirs, pack.whole)
        whole = self.rewriter.network.add_elementwise(a, b, layers[0].op).outputs[0]
        self.open.difference_update(layers)
        result = _Pack.of(self.rewriter, whole, pack.axis, [layer.outputs[0] for layer in layers])
        self.places.update({part: (result, place) for place, part in enumerate(result.parts)})
        self.packs.append(result)

    def _partner(self, partners: list[ITensor], pack: _Pack) -> ITensor:
        """Return the other operands as one tensor."""
        if partners[0] in self.places:
            return self.places[partners[0]][0].whole
        is_one = partners[0].type.shape[pack.axis] == 1
        return partners[0] if is_one else self.rewriter.make.concat(partners, partners[0].type.rank + pack.axis)
