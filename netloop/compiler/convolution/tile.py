"""The code of tiles: some positions of a line times some vectors of maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from netloop.compiler.convolution.convolution import NUMBER, ROW, SUM, WHOLE, Convolution
from netloop.compiler.machine_code.code import FLOAT_BYTES, ir
from netloop.compiler.machine_code.vectors import FUNCTIONS, Vectors

STEPS = 2, 1
"""The numbers of a window that are multiplied between two jumps: as many of these as divide the channels. More take
longer to compile, and save nothing."""

Sums = list[Any]
"""The vectors of sums of a tile: all vectors of its first position, then of the next."""


class TileShape(NamedTuple):
    """The shape of a tile.

    Attributes:
        positions: its positions, next to each other on a line.
        vectors: its vectors of maps.
        is_last: whether the last of these has only the maps that are left.
    """

    positions: int
    vectors: int
    is_last: bool


class TileCode:
    """The code of tiles of one shape.

    Its function has the arguments job, x, weights, place, offset, top, bottom, left and right: the addresses of the
    job, of the first number of the first window, which may be in the padding, and of the weights of the panel; the
    places of the maps and of the output in bytes; and the rows and columns of the windows that are not in the padding.

    Args:
        module: the module of LLVM that gets the code.
        convolution: the convolution.
        places: the places of the addresses of the arrays in a job.
        lanes: the numbers of a vector.
        shape: the shape.
    """

    def __init__(
        self, module: Any, convolution: Convolution, places: Sequence[int], lanes: int, shape: TileShape
    ) -> None:
        self._convolution, self._places, self._shape = convolution, places, shape
        self._bytes = lanes * FLOAT_BYTES
        name = f"tile_{shape.positions}_{shape.vectors}{'_last' * shape.is_last}"
        self._code = code = Vectors(module, name, 9, lanes=lanes)
        self.function = code.function
        self._job, self._x, self._weights, self._place, self._offset, *bounds = code.arguments
        self._top, self._bottom, self._left, self._right = bounds
        # as many elements as the weights of a number or, of a depthwise convolution, of an element of a window have
        padded = -(-convolution.maps // lanes) * lanes if convolution.is_depthwise else shape.vectors * lanes
        self._maps = convolution.maps if convolution.is_depthwise else convolution.maps_of_group
        self._weight_bytes = padded * FLOAT_BYTES
        self._columns = self._depthwise_columns if convolution.is_depthwise else self._product_columns
        sums = self._rows([code.constant(0.0)] * (shape.positions * shape.vectors))
        self._finish(sums)
        code.end()

    def _loop(self, count: Any, sums: Sums, body: Callable[[Any, Sums], Sums], step: int = 1) -> Sums:
        """The sums after a loop that adds to them: ``body`` gets the number of the repetition and the sums."""
        with self._code.repeating(count, step) as loop:
            variables = [loop.variable(value) for value in sums]
            after = body(loop.count, list(variables))
            for variable, value in zip(variables, after, strict=True):
                loop.set_next(variable, value)
        return after

    def _rows(self, sums: Sums) -> Sums:
        """The sums over the rows of the windows."""
        code, own = self._code, self._convolution
        row = own.rows.spread * own.columns.length * own.channels * FLOAT_BYTES
        weights = own.columns.size * own.channels_of_group * self._weight_bytes
        if own.rows.size == 1:
            return self._columns(sums, self._x, self._weights)

        def body(number: Any, sums: Sums) -> Sums:
            number = code.add(number, self._top)
            x = code.add(self._x, code.multiply(number, row))
            return self._columns(sums, x, code.add(self._weights, code.multiply(number, weights)))

        return self._loop(code.subtract(self._bottom, self._top), sums, body)

    # ------------------------------------------------------------------ products

    def _product_columns(self, sums: Sums, x: Any, weights: Any) -> Sums:
        """Add the products of a row of the windows."""
        code, own = self._code, self._convolution
        count = code.subtract(self._right, self._left)
        if own.columns.spread == own.groups == 1:
            # the columns of a window follow each other in memory
            start = code.multiply(self._left, own.channels)
            return self._products(sums, *self._at(x, weights, start, start), code.multiply(count, own.channels))

        def body(number: Any, sums: Sums) -> Sums:
            column = code.add(number, self._left)
            start, of_weights = (
                code.multiply(column, size) for size in (own.columns.spread * own.channels, own.channels_of_group)
            )
            return self._products(sums, *self._at(x, weights, start, of_weights), code.number(own.channels_of_group))

        return self._loop(count, sums, body)

    def _at(self, x: Any, weights: Any, number: Any, of_weights: Any) -> tuple[Any, Any]:
        """The addresses of a number of the input and of weights."""
        code = self._code
        return (
            code.add(x, code.multiply(number, FLOAT_BYTES)),
            code.add(weights, code.multiply(of_weights, self._weight_bytes)),
        )

    def _products(self, sums: Sums, x: Any, weights: Any, count: Any) -> Sums:
        """Add the products of numbers that follow each other."""
        code, own, (positions, vectors, _) = self._code, self._convolution, self._shape
        step = next(step for step in STEPS if own.channels_of_group % step == 0)
        stride = own.columns.step * own.channels * FLOAT_BYTES

        def body(number: Any, sums: Sums) -> Sums:
            place, of_weights = self._at(x, weights, number, number)
            for later in range(step):
                row = [
                    code.load_vector(of_weights, later * self._weight_bytes + vector * self._bytes)
                    for vector in range(vectors)
                ]
                for position in range(positions):
                    element = code.load_repeated(place, position * stride + later * FLOAT_BYTES)
                    for vector in range(vectors):
                        at = position * vectors + vector
                        sums[at] = code.fma(element, row[vector], sums[at])
            return sums

        return self._loop(count, sums, body, step)

    # ------------------------------------------------------------------ depthwise convolutions

    def _depthwise_columns(self, sums: Sums, x: Any, weights: Any) -> Sums:
        """Add a row of the windows, each of its elements times its weights."""
        code, own = self._code, self._convolution
        channels = own.columns.spread * own.channels * FLOAT_BYTES

        def body(number: Any, sums: Sums) -> Sums:
            column = code.multiply(number, channels)
            return self._times_weights(sums, x, column, code.add(weights, code.multiply(number, self._weight_bytes)))

        if self._shape.positions > 1:
            for number in range(own.columns.size):
                sums = body(number, sums)
            return sums
        left = self._left
        return self._loop(
            code.subtract(self._right, left), sums, lambda number, sums: body(code.add(number, left), sums)
        )

    def _times_weights(self, sums: Sums, x: Any, column: Any, weights: Any) -> Sums:
        code, own, (positions, vectors, _) = self._code, self._convolution, self._shape
        stride, sums = own.columns.step * own.channels * FLOAT_BYTES, list(sums)
        for vector in range(vectors):
            weight, mask = code.load_vector(weights, vector * self._bytes), self._mask(vector)
            for position in range(positions):
                place = code.add(column, position * stride + vector * self._bytes)
                at = position * vectors + vector
                sums[at] = code.fma(code.load_vector(x, place, mask), weight, sums[at])
        return sums

    # ------------------------------------------------------------------ what follows

    def _mask(self, vector: int) -> Any:
        """The mask of the maps that a vector has; None if it has as many as there are."""
        left = self._maps % self._code.lanes
        if not left or not self._shape.is_last or vector < self._shape.vectors - 1:
            return None
        bit = ir.IntType(1)
        bits = [ir.Constant(bit, int(lane < left)) for lane in range(self._code.lanes)]
        return ir.Constant(ir.VectorType(bit, self._code.lanes), bits)

    def _finish(self, sums: Sums) -> None:
        """Compute the elements of the output from the sums, and write them."""
        code, own, (positions, vectors, _) = self._code, self._convolution, self._shape
        _, _, *arrays, output = (code.load(self._job, place) for place in self._places)
        maps = {number: code.add(array, self._place) for number, array in enumerate(arrays)}
        elements = {number: code.add(array, self._offset) for number, array in enumerate(arrays)}
        output = code.add(output, self._offset)
        for vector in range(vectors):
            mask = self._mask(vector)
            shared = {
                number: code.load_repeated(arrays[number])
                if kind == NUMBER
                else code.load_vector(maps[number], vector * self._bytes, mask)
                for number, kind in enumerate(own.arrays)
                if kind != WHOLE
            }
            for position in range(positions):
                place = position * own.maps * FLOAT_BYTES + vector * self._bytes
                values: list[Any] = []
                for kind, of, numbers in own.values:
                    if kind == SUM:
                        value = sums[position * vectors + vector]
                    elif kind in (NUMBER, ROW):
                        value = shared[of[0]]
                    elif kind == WHOLE:
                        value = code.load_vector(elements[of[0]], place, mask)
                    else:
                        value = FUNCTIONS[kind](code, *(values[number] for number in of), *numbers)
                    values.append(value)
                code.store_vector(values[-1], output, place, mask)
