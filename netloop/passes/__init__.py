"""The same network, better: what is done to a network for the shapes of a call before it is lowered.

A pass either rewrites the network here, so that the reference still gives the same, or allows a form of lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from netloop.check import ValidatedNetwork, require_valid
from netloop.diagnostics import did_you_mean
from netloop.graph.infer import TypeTable
from netloop.network import INetworkDefinition
from netloop.passes.carry_layout import swap_axes
from netloop.passes.embedding_folding import multiply_tables
from netloop.passes.gate_fusion import choose_forms
from netloop.passes.horizontal_fusion import share_products
from netloop.passes.induction_variables import use_loop_boundaries
from netloop.passes.matmul_partitioning import multiply_in_parts
from netloop.passes.matmul_recognition import contract
from netloop.passes.note import Note
from netloop.passes.redundant_carries import merge_states
from netloop.passes.rewriter import Rewriter
from netloop.passes.weight_prepacking import lay_out_weights

__all__ = ["PASSES", "Improved", "Note", "Pass", "chosen", "improve", "of_level", "of_platform"]


class Pass(NamedTuple):
    """Something that makes networks faster.

    Attributes:
        level: the optimization level from which on it is used.
        rule: what it does, and when it pays.
        gain: how many times as fast a workload of the benchmarks was with it as without it.
        rewrite: how it rewrites a network; None if it is a form of lowering.
        platform: the platform of JAX for which alone it is; None if it is for all.
    """

    level: int
    rule: str
    gain: str
    rewrite: Callable[[Rewriter], None] | None = None
    platform: str | None = None


PASSES: dict[str, Pass] = {
    "redundant_carries": Pass(
        1,
        "A state that is always equal to another is not carried; nor one that stays what it is, where its loop draws "
        "no random numbers and has no assertions.",
        "1.3, an imported recurrence of 256",
        merge_states,
    ),
    "induction_variables": Pass(
        2,
        "A gather by the number of the trip is an iterator, where the COUNT is known not to pass the axis. A state "
        "whose row of that number is written in each trip, and which is read after the loop alone, is a stacked "
        "output, where the COUNT is the number of its rows. There is no WHILE.",
        "1.3, an imported recurrence of 256",
        use_loop_boundaries,
    ),
    "matmul_recognition": Pass(
        2,
        "A sum along the last axis of the products of rows with one vector, in a loop, is a product of a matrix and "
        "this vector, in float32; an einsum there that sums over nothing is an element-wise product. Always.",
        "8.9, a selective scan of 256 x 16",
        contract,
    ),
    "carry_layout": Pass(
        2,
        "A state whose last axis has at most 16 elements, and the one before it 32 or more, is carried with the two "
        "swapped, and so is what is computed of it element by element. Where something is summed or stretched along "
        "one of them, and only sums and products leave a trip. Float32 and half types only.",
        "2.5, a selective scan of 256 x 16",
        swap_axes,
    ),
    "horizontal_fusion": Pass(
        2,
        "Products of one operand with several matrices, weights or inputs, are one product; so are sums over all their "
        "results. Always, up to 256 MiB of matrices.",
        "1.6, a decoder of 2 x 256; 1.4, a GRU of 512 of one row",
        share_products,
    ),
    "embedding_folding": Pass(
        2,
        "A table of weights is multiplied beforehand by the matrix of weights that its rows would be. Where what comes "
        "out has at most 1 MiB, or at most the size of the matrix.",
        "1.3, a char-RNN of 2 x 512",
        multiply_tables,
    ),
    "matmul_partitioning": Pass(
        2,
        "On CPUs, a product in a loop of at most 8 rows, which depend on a state, with a matrix of weights of 128,000 "
        "elements or more is formed in parts, where there are several cores. Of one row in as many as there are cores, "
        "with up to 1,000,000 elements, if the matrices of the loop have more than 2 MiB; of several rows in parts of "
        "64,000 elements, with up to 262,144.",
        "1.7, a decoder of 2 x 256; 1.3, a beam search of 4",
        multiply_in_parts,
        platform="cpu",
    ),
    "weight_prepacking": Pass(
        2,
        "On CPUs, a matrix of weights is transposed beforehand, so that it is summed along its rows where it "
        "multiplies one row that depends on a state or a call and has 262,144 elements or more, and along its columns "
        "elsewhere. Where it multiplies 8 to 64 such rows and has 524,288 elements of float32 or more, it is the left "
        "operand.",
        "1.2, an LSTM of 512 of 16 rows",
        lay_out_weights,
        platform="cpu",
    ),
    "gate_fusion": Pass(
        3,
        "A logistic function in a loop that only multiplies is computed through tanh, within 1.2e-7; gates side by "
        "side are one layer. Float32 only.",
        "1.3, an LSTM of 256 of 32 rows",
        choose_forms,
    ),
    "weight_folding": Pass(
        1,
        "What follows from weights alone is computed once, when the program is made or refitted. Where it reads 4 KiB "
        "or more, and is at most 4 times as large as what it reads.",
        "5.2, a char-RNN of 2 x 512 by one step a call",
    ),
    "loop_fission": Pass(
        2,
        "Layers of a scan that depend on no state, if there is a product among them, are computed for all trips at "
        "once before it, and layers that feed stacked outputs alone after it; in chunks of about 2 MiB where all would "
        "take more than 4 MiB.",
        "2.3, an LSTM of 512 of one row; 1.4, of 16 rows",
    ),
    "if_conversion": Pass(
        2,
        "Both branches of a conditional are computed where they are a few small element-wise layers that cannot fail.",
        "39, a conditional in a loop",
    ),
    "loop_unrolling": Pass(
        2,
        "A scan whose body is a few small element-wise layers makes up to 16 trips at a time, as long as they compute "
        "at most 512 elements; half as many if it stacks single numbers, and one by one if it stacks more.",
        "1.8, 100,000 trips of eight numbers; 3.0, a conditional in a loop",
    ),
}
"""What there is, in the order in which it is applied."""


class Improved(NamedTuple):
    """A network after the passes.

    Attributes:
        network: a rewritten copy, whose layers begin with those of the original in their order; or the original.
        types: the types of its tensors.
        validated: its steps.
        notes: what was done.
    """

    network: INetworkDefinition
    types: TypeTable
    validated: ValidatedNetwork
    notes: list[Note]


def chosen(passes: Iterable[str] | None) -> frozenset[str]:
    """The names of passes, all if None is given.

    Raises:
        TypeError: they are no strings.
        ValueError: there is no such pass.
    """
    if passes is None:
        return frozenset(PASSES)
    if isinstance(passes, str) or not all(isinstance(each, str) for each in passes):
        raise TypeError("passes is a collection of names, such as netloop.PASSES")
    found = frozenset(passes)
    for name in sorted(found.difference(PASSES)):
        hint = did_you_mean(name, PASSES)
        raise ValueError(f"there is no pass {name!r}" + (hint and f"; {hint}"))
    return found


def of_level(level: int) -> frozenset[str]:
    """The passes of an optimization level, 0 to 5."""
    return frozenset(name for name, each in PASSES.items() if each.level <= level)


def of_platform(passes: Iterable[str], platform: str) -> frozenset[str]:
    """Those passes that are for a platform of JAX, such as ``"cpu"``."""
    return frozenset(name for name in passes if PASSES[name].platform in (None, platform))


def improve(
    network: INetworkDefinition, types: TypeTable, validated: ValidatedNetwork, passes: Collection[str]
) -> Improved:
    """A network, rewritten for inputs of certain types."""
    rewrites = {name: each.rewrite for name, each in PASSES.items() if name in passes and each.rewrite is not None}
    if not rewrites:
        return Improved(network, types, validated, [])
    rewriter, notes = Rewriter(network, types), list[Note]()
    for name, rewrite in rewrites.items():
        rewrite(rewriter)
        if rewriter.notes:
            notes += [Note(name, each) for each in rewriter.notes]
            rewriter.read()
    if not notes:
        return Improved(network, types, validated, [])
    return Improved(rewriter.network, rewriter.network.types, require_valid(rewriter.network), notes)
