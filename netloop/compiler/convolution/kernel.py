"""The kernel of a convolution: its parts, shared by threads."""

from __future__ import annotations

from typing import Any, NamedTuple

from netloop.compiler.convolution.convolution import Convolution, WindowAxis
from netloop.compiler.convolution.division import divided, packed_size
from netloop.compiler.convolution.tile import TileCode, TileShape
from netloop.compiler.machine_code import jobs
from netloop.compiler.machine_code.code import FLOAT_BYTES, FunctionCode
from netloop.compiler.machine_code.compilation import HANDLER
from netloop.compiler.machine_code.handler import ARGUMENTS, RESULTS, Handler
from netloop.compiler.machine_code.jobs import FIELDS, LINE
from netloop.compiler.machine_code.processor import FLOAT32, MOST_THREADS, Processor

COME, THREADS, DONE, BEGUN = FIELDS, FIELDS + 8, LINE, 2 * LINE
"""The fields of a job: the threads that have come, those that share it, the parts that are done, and those of each
thread that have been begun. Behind them are the addresses of the arrays."""
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
        self._module, self._convolution, self._processor = module, convolution, processor
        self._division = divided(convolution, processor)
        self._places = [ARRAYS + 8 * number for number in range(3 + len(convolution.arrays))]
        self._tiles: dict[TileShape, Any] = {}
        work = self._work(self._part(self._line()))
        release = jobs.release_function(module)
        self._handler(work, self._help(work, release), release)

    def _tile(self, shape: TileShape) -> Any:
        """The function that computes a tile."""
        if shape not in self._tiles:
            code = TileCode(self._module, self._convolution, self._places, self._processor.lanes, shape)
            self._tiles[shape] = code.function
        return self._tiles[shape]

    def _line(self) -> Any:
        """The function that computes a panel of a line: of a job and the numbers of the line and of the panel."""
        own, panels = self._convolution, self._division.panels
        code = FunctionCode(self._module, "line", 3)
        job, number, panel = code.arguments
        x, weights = code.load(job, self._places[0]), code.load(job, self._places[1])
        lanes = self._processor.lanes
        group, in_group = code.divide(panel, len(panels)), code.remainder(panel, len(panels))
        first = code.multiply(in_group, self._division.width * lanes * FLOAT_BYTES)
        maps = own.maps // self._division.groups
        place = code.add(first, code.multiply(group, maps * FLOAT_BYTES))
        if own.is_depthwise:
            weights = code.add(weights, place)
        else:
            padded = code.multiply(group, -(-maps // lanes) * lanes * FLOAT_BYTES)
            weights = code.add(weights, code.multiply(code.add(first, padded), own.depth))
        line = self._flat_line(code, x, number) if own.is_flat else self._row(code, x, number)
        channels = place if own.is_depthwise else code.multiply(group, own.channels_of_group * FLOAT_BYTES)
        line = line._replace(x=code.add(line.x, channels))
        is_last = code.equals(in_group, len(panels) - 1)
        # the last panel may have fewer vectors, and its last vector fewer maps
        kinds = {False: panels[0], True: panels[-1]}
        if len(panels) == 1 or maps % (panels[0] * lanes) == 0:
            self._tiles_of(code, line, panels[0], len(panels) == 1, weights, place)
        else:
            for last, vectors in kinds.items():
                with code.builder.if_then(is_last if last else code.builder.not_(is_last)):
                    self._tiles_of(code, line, vectors, last, weights, place)
        code.end()
        return code.function

    def _flat_line(self, code: FunctionCode, x: Any, number: Any) -> OutputLine:
        own, length = self._convolution, self._division.length
        start = code.least(code.multiply(number, length), own.positions - length)
        at = (code.multiply(start, size * FLOAT_BYTES) for size in (own.channels, own.maps))
        return OutputLine(code.add(x, next(at)), next(at), 0, 1)

    def _row(self, code: FunctionCode, x: Any, number: Any) -> OutputLine:
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
        """Compute the tiles of a panel of a line."""
        own, division = self._convolution, self._division
        axis = WindowAxis(division.length, 1, 1, 1, 0, 0) if own.is_flat else own.columns
        x_bytes, bytes_ = own.columns.step * own.channels * FLOAT_BYTES, own.maps * FLOAT_BYTES

        def compute(position: Any, positions: int, columns: range) -> None:
            x = code.add(line.x, code.multiply(position, x_bytes))
            offset = code.add(code.add(line.offset, place), code.multiply(position, bytes_))
            tile = self._tile(TileShape(positions, vectors, is_last))
            code.call(tile, code.arguments[0], x, weights, place, offset, *line[2:], columns.start, columns.stop)

        whole, size = axis.whole, min(division.positions, max(1, len(axis.whole)))
        with code.counting(whole.start, whole.start + len(whole) // size * size, size) as position:
            compute(position, size, range(own.columns.size))
        if len(whole) % size:
            # it overlaps the one before
            compute(whole.stop - size, size, range(own.columns.size))
        for position in range(axis.count):
            if position not in whole:
                compute(position, 1, axis.inside(position))

    def _part(self, line: Any) -> Any:
        """The function that computes a part that one thread takes: of a job and the number of the part."""
        code = FunctionCode(self._module, "part", 2)
        job, part = code.arguments
        division = self._division
        with code.counting(0, division.lines if division.is_by_panel else division.number_of_panels) as other:
            code.call(line, job, *((other, part) if division.is_by_panel else (part, other)))
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

    def _help(self, work: Any, release: Any) -> Any:
        """The function of another thread: of a job."""
        code = FunctionCode(self._module, "help", 1)
        (job,) = code.arguments
        # threads have the numbers in which they come
        code.call(work, job, code.fetch_and_add(job, 1, COME))
        code.call(release, job)
        code.end()
        return code.function

    def _handler(self, work: Any, help_: Any, release: Any) -> None:
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
        for value, place in ((1, COME), (0, DONE), (threads, THREADS)):
            code.store(value, job, place)
        with code.counting(0, threads) as thread:
            code.store(0, code.add(job, code.multiply(thread, LINE)), BEGUN)
        if most > 1:
            jobs.share(handler, job, threads, help_)
        code.call(work, job, 0)
        jobs.wait(code, job, DONE, self._division.parts)
        code.call(release, job)
        code.end(0)
