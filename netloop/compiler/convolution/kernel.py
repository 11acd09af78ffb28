"""The kernel of a convolution: its parts, shared by threads."""

from __future__ import annotations

from typing import Any, NamedTuple

from netloop.compiler.convolution.convolution import Convolution
from netloop.compiler.convolution.division import divided, packed_size
from netloop.compiler.convolution.tile import TileCode, TileShape
from netloop.compiler.machine_code import jobs
from netloop.compiler.machine_code.code import FLOAT_BYTES, FunctionCode
from netloop.compiler.machine_code.compilation import HANDLER
from netloop.compiler.machine_code.handler import ARGUMENTS, RESULTS, Handler
from netloop.compiler.machine_code.jobs import FIELDS, LINE
from netloop.compiler.machine_code.processor import FLOAT32, MOST_THREADS, Processor

THREADS, DONE, BEGUN = FIELDS, LINE, 2 * LINE
"""The fields of a job: the threads that share it, the parts that are done, and those of each thread that have been
begun. Behind them are the addresses of the arrays."""
ARRAYS = BEGUN + MOST_THREADS * LINE
WORK_OF_THREAD = 1 << 18
"""The multiplications that are worth a thread, which take 4 us."""


class OutputLine(NamedTuple):
    """A line of the output, while its code is written.

    Attributes:
        x: the address of the first window, which may be in the padding.
        offset: the place of its first position in the output, in bytes.
        top, bottom: the rows of its windows that are not in the padding.
    """

    x: Any
    offset: Any
    top: Any
    bottom: Any


class ConvolutionKernel:
    """The code of a convolution's kernel, whose function ``HANDLER`` XLA calls.

    The arguments are x, the weights as ``packed`` returns them, and the arrays of the values.

    Args:
        module: the module of LLVM that gets the code.
        convolution: the convolution.
        processor: the vectors of the processor.
    """

    def __init__(self, module: Any, convolution: Convolution, processor: Processor) -> None:
        self._module, self._convolution, self._processor = module, convolution.flat, processor
        self._division = divided(self._convolution, processor)
        self._places = [ARRAYS + 8 * number for number in range(3 + len(convolution.arrays))]
        self._tiles: dict[TileShape, Any] = {}
        self._handler(self._work(self._part(self._stripe())))

    def _tile(self, shape: TileShape) -> Any:
        """The function that computes a tile."""
        if shape not in self._tiles:
            code = TileCode(self._module, self._convolution, self._places, self._processor.lanes, shape)
            self._tiles[shape] = code.function
        return self._tiles[shape]

    def _stripe(self) -> Any:
        """The function that computes a panel of a stripe: of a job and the numbers of line, stripe and panel."""
        own, (groups, panels), lanes = self._convolution, self._division.panels, self._processor.lanes
        code = FunctionCode(self._module, "stripe", 4)
        job, line, _, panel = code.arguments
        x, weights = code.load(job, self._places[0]), code.load(job, self._places[1])
        group, in_group = code.divide(panel, len(panels)), code.remainder(panel, len(panels))
        first, maps = code.multiply(in_group, panels[0] * lanes * FLOAT_BYTES), own.maps // groups
        place = code.add(first, code.multiply(group, maps * FLOAT_BYTES))
        if own.is_depthwise:
            channels, weights = place, code.add(weights, place)
        else:
            channels = code.multiply(group, own.channels_of_group * FLOAT_BYTES)
            before = code.add(first, code.multiply(group, sum(panels) * lanes * FLOAT_BYTES))
            weights = code.add(weights, code.multiply(before, own.depth))
        output = self._line(code, code.add(x, channels), line)
        # the last panel may have fewer vectors, and its last vector fewer maps
        if len(panels) == 1 or maps % (panels[0] * lanes) == 0:
            self._tiles_of(code, output, panels[0], len(panels) == 1, weights, place)
        else:
            with code.builder.if_else(code.equals(in_group, len(panels) - 1)) as branches:
                for is_last, branch in zip((True, False), branches, strict=True):
                    with branch:
                        self._tiles_of(code, output, panels[-1 if is_last else 0], is_last, weights, place)
        code.end()
        return code.function

    def _line(self, code: FunctionCode, x: Any, number: Any) -> OutputLine:
        own, axis = self._convolution, self._convolution.rows
        image, row = code.divide(number, axis.count), code.remainder(number, axis.count)
        start = code.subtract(code.multiply(row, axis.step), axis.before)
        # quotients of numbers that are not negative, rounded up
        above = code.divide(code.add(code.subtract(0, start), axis.spread - 1), axis.spread)
        below = code.divide(code.add(code.subtract(axis.length, start), axis.spread - 1), axis.spread)
        top = code.builder.select(code.is_less(start, 0), above, code.number(0))
        first = code.multiply(code.add(code.multiply(image, axis.length), start), own.columns.length)
        place = code.multiply(code.subtract(first, own.columns.before), own.channels * FLOAT_BYTES)
        offset = code.multiply(number, own.columns.count * own.maps * FLOAT_BYTES)
        return OutputLine(code.add(x, place), offset, top, code.least(below, axis.size))

    def _tiles_of(
        self, code: FunctionCode, line: OutputLine, vectors: int, is_last: bool, weights: Any, place: Any
    ) -> None:
        """Compute the tiles of a panel of a stripe."""
        own, stripes, (job, _, stripe, _) = self._convolution, self._division.stripes, code.arguments
        x_bytes, bytes_ = own.columns.step * own.channels * FLOAT_BYTES, own.maps * FLOAT_BYTES
        for positions, inside in own.columns.runs:
            # of depthwise convolutions, tiles of several positions have all columns of their windows
            may_be_wide = len(inside) == own.columns.size or not own.is_depthwise
            size = self._division.positions if may_be_wide and len(positions) >= self._division.positions else 1
            tile, count = self._tile(TileShape(size, vectors, is_last)), -(-len(positions) // size)
            first, end = (code.divide(code.multiply(code.add(stripe, at), count), stripes) for at in (0, 1))
            with code.counting(first, end) as number:
                # the last one overlaps the one before
                at = code.add(code.least(code.multiply(number, size), len(positions) - size), positions.start)
                own_x, offset = code.add(line.x, code.multiply(at, x_bytes)), code.add(line.offset, place)
                offset = code.add(offset, code.multiply(at, bytes_))
                code.call(tile, job, own_x, weights, place, offset, *line[2:], inside.start, inside.stop)

    def _part(self, stripe: Any) -> Any:
        """The function that computes a part that one thread takes: of a job and the number of the part."""
        code, division = FunctionCode(self._module, "part", 2), self._division
        job, part = code.arguments
        if division.is_by_panel:
            with code.counting(0, division.lines) as line:
                code.call(stripe, job, line, 0, part)
        else:
            line, own = code.divide(part, division.stripes), code.remainder(part, division.stripes)
            with code.counting(0, division.panels.number) as panel:
                code.call(stripe, job, line, own, panel)
        code.end()
        return code.function

    def _work(self, part: Any) -> Any:
        """The function that computes parts until none is left: of a job and the number of the thread.

        A thread begins with its own parts, which are next to each other: the layer before left what they read in its
        cache.
        """
        code = FunctionCode(self._module, "work", 2)
        job, thread = code.arguments
        parts, threads = self._division.parts, code.load(job, THREADS)
        with code.counting(0, threads) as other:
            lane = code.remainder(code.add(thread, other), threads)
            first, end = (code.divide(code.multiply(code.add(lane, at), parts), threads) for at in (0, 1))
            field = code.add(job, code.add(code.multiply(lane, LINE), BEGUN))
            next_ = code.memory(8)
            code.store(code.add(first, code.fetch_and_add(field, 1)), next_)
            with code.builder.if_then(code.is_less(code.load(next_), end)):
                start = code.new_block()
                code.call(part, job, code.load(next_))
                code.fetch_and_add(job, 1, DONE)
                code.store(code.add(first, code.fetch_and_add(field, 1)), next_)
                code.jump_back(code.is_less(code.load(next_), end), start)
        code.end()
        return code.function

    def _handler(self, work: Any) -> None:
        """The function that XLA calls."""
        own, code = self._convolution, FunctionCode(self._module, HANDLER, 1, returns=True, is_public=True)
        weights = packed_size(own, self._processor)
        sizes = [own.input_size, weights, *map(own.array_size, own.arrays)]
        handler = Handler(code, [(FLOAT32, size) for size in sizes], [(FLOAT32, own.positions * own.maps)])
        job = jobs.allocated(handler, ARRAYS + 8 * len(self._places))
        for number, place in enumerate(self._places):
            is_argument = number < len(sizes)
            code.store(handler.data(ARGUMENTS, number) if is_argument else handler.data(RESULTS, 0), job, place)
        most = min(MOST_THREADS, self._division.parts, own.work // WORK_OF_THREAD)
        threads = code.least(handler.number_of_threads(), most) if most > 1 else code.number(1)
        for value, place in ((0, DONE), (threads, THREADS)):
            code.store(value, job, place)
        with code.counting(0, threads) as thread:
            code.store(0, code.add(job, code.multiply(thread, LINE)), BEGUN)
        jobs.work_together(handler, job, work, threads if most > 1 else None)
        jobs.wait(code, job, DONE, self._division.parts)
        jobs.release(code, job)
        code.end(0)
