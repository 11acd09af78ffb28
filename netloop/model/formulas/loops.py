"""Formulas with loops."""

from netloop.model.formulas.rearrange import Arranging
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop, IRecurrenceLayer
from netloop.values.enums import ElementWiseOperation, LoopOutput


class Looping(Arranging):
    """Counters and outputs of loops."""

    def counter(self, loop: ILoop) -> IRecurrenceLayer:
        """A recurrence that counts iterations from 0; int64, 0-D."""
        counter = loop.add_recurrence(self.constant(0))
        one = self.constant(1)
        counter.set_input(1, self.network.add_elementwise(counter.outputs[0], one, ElementWiseOperation.SUM).outputs[0])
        return counter

    def last(self, loop: ILoop, recurrence: IRecurrenceLayer) -> ITensor:
        """The value of a recurrence after the last iteration."""
        return loop.add_loop_output(recurrence.outputs[0], LoopOutput.LAST_VALUE).outputs[0]

    def stacked(self, loop: ILoop, x: ITensor, length: ITensor, axis: int = 0, reverse: bool = False) -> ITensor:
        """The values of all iterations along a new axis, in order or reversed, with zeros up to its length."""
        kind = LoopOutput.REVERSE if reverse else LoopOutput.CONCATENATE
        output = loop.add_loop_output(x, kind, axis)
        output.set_input(1, length)
        return output.outputs[0]
