"""The passes that are forms of lowering: lowering takes a form if its pass is allowed."""

from enum import StrEnum
from typing import ClassVar

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.rewriter import Rewriter


class LoweringForm(StrEnum):
    """A form of lowering, named like its pass, in the order in which lowering takes them."""

    WEIGHT_FOLDING = "weight_folding"
    PREFIX_SCAN = "prefix_scan"
    LOOP_KERNELS = "loop_kernels"
    LOOP_FISSION = "loop_fission"
    IF_CONVERSION = "if_conversion"
    LOOP_UNROLLING = "loop_unrolling"
    LOOP_GRAPHS = "loop_graphs"
    BUCKETING = "bucketing"


class LoweringPass(Pass):
    """A pass that rewrites no network, as layers cannot express what it does.

    Lowering is above this package and has the thresholds; a test compares them with the numbers in the rules.
    """

    def rewrite(self, rewriter: Rewriter) -> bool:
        """Leave the network as it is."""
        return False


class WeightFolding(LoweringPass):
    """Constant folding at load time."""

    name = LoweringForm.WEIGHT_FOLDING.value
    level = 1
    rule = (
        "Layers that depend on weights only are computed once, when a program is made or refitted. Applies if they "
        "read 4 KiB or more, and their results are at most 4 times as large as what they read."
    )


class PrefixScan(LoweringPass):
    """Prefix scans instead of a loop."""

    name = LoweringForm.PREFIX_SCAN.value
    level = 2
    # on CPUs it takes up to 12 times as long as the loop (benchmarks/notes.md)
    platforms = frozenset({"gpu", "tpu"})
    rule = (
        "A loop of at least 16 iterations whose number is a compile-time constant, and whose states are all linear, "
        "runs for all iterations at once: the next value of a state is `a * s + b` element by element, or its maximum, "
        "minimum, AND, OR or XOR with a number of the iteration, where nothing else depends on the state. Up to four "
        "states that depend on each other are linear together, if each next value is a sum of them, multiplied by "
        "numbers of the iteration. Applies on GPUs and TPUs, `a * s + b` to float32, float64, int32 and int64, if all "
        "values take at most 1 GiB. The loop itself runs if a value is not finite. Sums and products are rounded in "
        "another order, and contributions are lost where the product of the factors after them is below the smallest "
        "normal number, 1e-38 in float32."
    )
    alternatives = (OFF,)


class LoopKernels(LoweringPass):
    """One kernel instead of a loop."""

    name = LoweringForm.LOOP_KERNELS.value
    level = 2
    platforms = frozenset({"gpu"})
    rule = (
        "A loop with all that is in it is one kernel: element-wise layers, small reductions, products and gathers, "
        "conditionals and other loops. Applies on GPUs to a loop of at least 20 iterations, or of a number that only "
        "the call knows, if it and the loops inside of it have a COUNT limit or `max_trips`. An iteration reads at "
        "most 128 KiB, and no layer computes more than 4,096 numbers that depend on each other. Prefix scans come "
        "first. A loop that is no kernel says why in its strategy."
    )
    alternatives = (OFF,)


class LoopFission(LoweringPass):
    """A prologue, a body and an epilogue instead of one body.

    Attributes:
        chunks: the bytes of a chunk of iterations in each form that is not the rule.
    """

    name = LoweringForm.LOOP_FISSION.value
    level = 2
    # a layer that load time computes needs no place before the loop
    after = (WeightFolding.name,)
    rule = (
        "Layers of a scan that depend on no state, if a product is among them, are computed for all iterations at once "
        "before the loop, and layers that only feed stacked outputs after it; on CPUs in chunks of about 2 MiB if all "
        "iterations would take more than 4 MiB."
    )
    chunks: ClassVar[dict[str, int]] = {"chunks_512k": 1 << 19, "chunks_8m": 1 << 23}
    alternatives = (OFF, *chunks)


class IfConversion(LoweringPass):
    """A selection instead of a branch."""

    name = LoweringForm.IF_CONVERSION.value
    level = 2
    rule = (
        "Both branches of a conditional are computed, and one result is selected, if the branches are a few small "
        "element-wise layers that cannot fail: of at most 64 elements, on GPUs of at most 65,536."
    )
    alternatives = (OFF,)


class LoopUnrolling(LoweringPass):
    """Several iterations in one of the compiled loop.

    Attributes:
        factors: the number of iterations in each form that is not the rule.
    """

    name = LoweringForm.LOOP_UNROLLING.value
    level = 2
    # what is left of a body after fission decides whether it is small, and a converted conditional counts as layers
    after = (LoopFission.name, IfConversion.name)
    rule = (
        "A scan whose body is a few small element-wise layers runs up to 16 iterations at a time, as long as they "
        "compute at most 512 elements; half as many if it stacks single numbers, and one at a time if it stacks more. "
        "On GPUs a loop of element-wise layers that stacks nothing runs up to 64 iterations at a time, of at most "
        "512 layers together, also one with a WHILE, and any other scan without a loop in it up to 8, of at most 256 "
        "layers, where a conditional counts with both branches."
    )
    factors: ClassVar[dict[str, int]] = {f"unroll_{number}": number for number in (2, 4, 8, 16, 32)}
    alternatives = (OFF, *factors)


class LoopGraphs(LoweringPass):
    """A CUDA graph with the loop in it, instead of one for each iteration."""

    name = LoweringForm.LOOP_GRAPHS.value
    level = 2
    platforms = frozenset({"gpu"})
    rule = (
        "On NVIDIA's GPUs a program is one CUDA graph, with its loops and conditionals, if it has a loop with a "
        "product in its body and a number of iterations that only the run knows: the device then looks at its "
        "condition, and the host waits once."
    )
    alternatives = (OFF,)


class Bucketing(LoweringPass):
    """Programs that lengths share, of inputs and of what only a run knows."""

    name = LoweringForm.BUCKETING.value
    level = 1
    on_host = True
    rule = (
        "Lengths are padded and share a program, to which they are numbers. Of inputs: the first two sets of shapes "
        "that differ along some axes have programs of their own, and later ones are padded to the next power of 2, "
        "until their calls have lost the time that it takes to compile one. Of a network that runs on the host: steps "
        "after lengths that only a run knows are compiled for the lengths that they meet first. Other lengths are "
        "padded to multiples of 8, from 64 on of a quarter of the power of 2 below them, and a length that is met 100 "
        "times gets a program of its own. Applies to layers of which the padding reaches no result, if it is 0 or "
        "another neutral number, and to loops and conditionals of such layers that cannot fail. On CPUs, up to "
        "1,024 pairs of box and class are selected by non-maximum suppression in one program with what follows."
    )
