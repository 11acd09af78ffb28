"""The formula builder."""

from netloop.model.formulas.blocks import Blocks
from netloop.model.formulas.loops import Looping
from netloop.model.formulas.sequences import Sequencing
from netloop.model.formulas.slice import Slicing
from netloop.model.formulas.sources import Filling


class FormulaBuilder(Slicing, Filling, Blocks, Looping, Sequencing):
    """Adds layers to a network as formulas over tensors, with the conveniences of numpy.

    Operands are tensors. Together with a tensor they may also be arrays and numbers, which take its element type.
    Operands broadcast as in numpy. Lengths, axes and shapes are numbers wherever they are compile-time constants, and
    tensors elsewhere.

    The methods raise LayerError or NetworkError where a formula has no meaning.

    Attributes:
        network: the network.
    """
