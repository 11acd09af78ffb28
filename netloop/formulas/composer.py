"""All formulas in one."""

from netloop.formulas.blocks import Blocks
from netloop.formulas.loops import Looping
from netloop.formulas.sampling import Drawing
from netloop.formulas.sequences import Sequencing
from netloop.formulas.slice import Slicing


class FormulaBuilder(Slicing, Drawing, Blocks, Looping, Sequencing):
    """Adds layers to a network as formulas over tensors, with the conveniences of numpy.

    Operands are tensors, and where a tensor stands beside them also arrays and numbers, which take its element type.
    Axes of length 1 are stretched and missing ones added in front. Lengths, axes and shapes are numbers wherever they
    follow from constants and shapes, and tensors elsewhere.

    Its methods raise LayerError or NetworkError where a formula has no meaning.

    Attributes:
        network: the network that it adds to.
    """
