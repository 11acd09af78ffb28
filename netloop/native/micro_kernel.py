"""The micro-kernel: a few rows times one panel of a packed matrix, with all sums in registers."""

from __future__ import annotations

from typing import Any

from netloop.native.code import FLOAT, FLOAT_BYTES, INT32, Code, ir

VECTORS = 2
"""The vectors of a row of a panel."""
UNROLLED = 4
"""The rows of a panel that are multiplied between two jumps."""
CHAINS = 8
"""The sums that a core adds to at a time: an addition takes four cycles, and two begin in each."""


class MicroKernel:
    """The code for a number of rows.

    Its function takes the address of the rows and the bytes from one to the next, that of the panel and its length, and
    that of the results, the bytes from one row of them to the next, and the number of columns that are stored.

    Args:
        module: the module of its function.
        rows: the number of rows.
        lanes: the floats of a vector.
    """

    def __init__(self, module: Any, rows: int, lanes: int) -> None:
        self.rows, self.lanes = rows, lanes
        self.vector = ir.VectorType(FLOAT, lanes)
        self.vector_bytes = lanes * FLOAT_BYTES
        self.width = lanes * VECTORS
        # with few rows, several sums for each result keep the core busy
        self.splits = max(1, min(UNROLLED, CHAINS // (rows * VECTORS)))
        self.code = Code(module, f"rows_{rows}", 7)
        self.function = self.code.function
        fma = f"llvm.fma.v{lanes}f32"
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        self.fma = module.globals.get(fma) or ir.Function(module, kind, fma)
        self._write()

    def _write(self) -> None:
        code, (rows, stride, panel, length, out, out_stride, columns) = self.code, self.code.arguments
        starts = [code.add(rows, code.multiply(stride, row)) for row in range(self.rows)]
        sums = [ir.Constant(self.vector, [0.0] * self.lanes)] * (self.rows * VECTORS * self.splits)
        whole = code.subtract(length, code.builder.urem(length, code.number(UNROLLED)))
        sums = self._summed(sums, starts, panel, 0, whole, UNROLLED)
        sums = self._summed(sums, starts, panel, whole, length, 1)
        self._store(self._joined(sums), out, out_stride, columns)
        code.end()

    def _summed(self, sums: list[Any], starts: list[Any], panel: Any, begin: Any, end: Any, unrolled: int) -> list[Any]:
        """The sums after the rows of a panel from one number to another."""
        code, builder = self.code, self.code.builder
        before, begin = builder.block, code.number(begin)
        start, after = self.code.function.append_basic_block(), self.code.function.append_basic_block()
        builder.cbranch(code.is_less(begin, end), start, after)
        builder.position_at_end(start)
        place = builder.phi(begin.type)
        place.add_incoming(begin, before)
        carried = [self._phi(each, before) for each in sums]
        made = carried
        for step in range(unrolled):
            made = self._multiplied(made, starts, panel, code.add(place, step), step % self.splits)
        following = code.add(place, unrolled)
        place.add_incoming(following, start)
        for phi, value in zip(carried, made, strict=True):
            phi.add_incoming(value, start)
        builder.cbranch(code.is_less(following, end), start, after)
        builder.position_at_end(after)
        results = [self._phi(each, before) for each in sums]
        for phi, value in zip(results, made, strict=True):
            phi.add_incoming(value, start)
        return results

    def _phi(self, value: Any, block: Any) -> Any:
        phi = self.code.builder.phi(self.vector)
        phi.add_incoming(value, block)
        return phi

    def _multiplied(self, sums: list[Any], starts: list[Any], panel: Any, place: Any, split: int) -> list[Any]:
        """The sums after one row of the panel."""
        code, made = self.code, list(sums)
        at = code.add(panel, code.multiply(place, self.width * FLOAT_BYTES))
        weights = [code.load(at, each * self.vector_bytes, self.vector, FLOAT_BYTES) for each in range(VECTORS)]
        offset = code.multiply(place, FLOAT_BYTES)
        for row, start in enumerate(starts):
            value = self._in_all_lanes(code.load(start, offset, FLOAT, FLOAT_BYTES))
            for vector, weight in enumerate(weights):
                position = (split * self.rows + row) * VECTORS + vector
                made[position] = code.builder.call(self.fma, [value, weight, made[position]])
        return made

    def _in_all_lanes(self, value: Any) -> Any:
        builder, undefined = self.code.builder, ir.Constant(self.vector, ir.Undefined)
        first = builder.insert_element(undefined, value, INT32(0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INT32, self.lanes), [0] * self.lanes))

    def _joined(self, sums: list[Any]) -> list[Any]:
        """The sums of the splits."""
        size = self.rows * VECTORS
        made = sums[:size]
        for split in range(1, self.splits):
            parts = sums[split * size : (split + 1) * size]
            made = [self.code.builder.fadd(a, b) for a, b in zip(made, parts, strict=True)]
        return made

    def _store(self, sums: list[Any], out: Any, out_stride: Any, columns: Any) -> None:
        """Store the columns that are there; those that fill up a panel go to memory of the function."""
        code, row_bytes = self.code, self.width * FLOAT_BYTES
        tile = code.memory(self.rows * row_bytes)
        is_part = code.is_less(columns, self.width)
        to = code.builder.select(is_part, tile, out)
        stride = code.builder.select(is_part, code.number(row_bytes), out_stride)
        for position, value in enumerate(sums):
            row, vector = divmod(position, VECTORS)
            code.store(value, to, code.add(code.multiply(stride, row), vector * self.vector_bytes), FLOAT_BYTES)
        with code.builder.if_then(is_part), code.counting(0, self.rows) as row, code.counting(0, columns) as column:
            place = code.multiply(column, FLOAT_BYTES)
            value = code.load(tile, code.add(code.multiply(row, row_bytes), place), FLOAT, FLOAT_BYTES)
            code.store(value, out, code.add(code.multiply(row, out_stride), place), FLOAT_BYTES)
