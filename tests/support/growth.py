"""Random networks with what the passes look for."""

from collections.abc import Sequence
from random import Random

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.layer_specs import NONE, VECTOR
from tests.support.strategies import Grower
from tests.support.tensor_drawing import FLOATS, Act, Op

TRANSPOSE = trt.MatrixOperation.TRANSPOSE


class CellGrower(Grower):
    """Grows networks with products of one operand, gates, embeddings, reads at counters, memories and equal states.

    Attributes:
        passes: the passes that find something to rewrite in these networks.
        most_of: the largest number of iterations for which each loop's values are computed.
        counters: counters of the loops that are being grown, with numbers that they stay below.
        given: the outputs of iterators.
        cells: the names of the methods that come next, the last one first.
        loops: the same of those that grow loops.
    """

    passes = (
        "redundant_carries",
        "induction_variables",
        "matmul_recognition",
        "carry_layout",
        "horizontal_fusion",
        "embedding_folding",
        "gate_fusion",
        "matmul_partitioning",
        "weight_prepacking",
    )

    CELLS = "products", "gates", "parted_gates", "rows", "read", "parted_gates", "sum_of_products", "einsums"
    LOOPS = "memory", "batches", "projections", "small_loop", "counted_reads", "written", "split", "twins", "noises"

    shapes = [(3,), (2, 3), (1, 4), (9, 2), (7, 1, 3)]
    most_trips = 9
    limit_kinds = [*["count"] * 6, *Grower.limit_kinds]
    share_on_host = 0.1

    def __init__(self, chance: Random, depth: int, most: int, is_risky: bool = False) -> None:
        super().__init__(chance, depth, most, is_risky)
        self.most_of: dict[trt.ILoop, int] = {}
        self.counters: list[tuple[ITensor, int]] = []
        self.given: list[ITensor] = []
        self.cells: list[str] = []
        self.loops: list[str] = []
        self.always += ["closed"] * 2

    def type(self) -> tuple[trt.DataType, tuple[int, ...]]:
        return self.choose(trt.float32, self.choose(*self.dtypes)), self.choose(*self.shapes)

    def layer(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        given = [tensor for tensor in self.given if tensor in pool]
        tensor = self.pick(given if given and self.coin() else pool, self.is_handy)
        if tensor is None or not self.between(0, 3):
            return super().layer(pool, depth)
        return self.cell(tensor, pool) if self.between(0, 2) else self.closed(pool, depth)

    def body(self, inside: list[ITensor], outside: int, depth: int) -> list[ITensor]:
        """Two cells of what varies in the loop, and what any loop has."""
        for _ in range(2):
            tensor = self.pick_exact(inside[outside:], self.is_handy)
            inside += [] if tensor is None else self.cell(tensor, inside)
        return super().body(inside, outside, depth)

    def closed(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        """A loop that reads one tensor of those around it."""
        tensor = self.pick_exact(pool, self.is_handy)
        name = self.next_name(self.loops, self.LOOPS)
        return [] if tensor is None else getattr(self, name)(tensor, pool)

    def cell(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        if tensor in self.rough:
            return self.gates(tensor, pool)
        return getattr(self, self.next_name(self.cells, self.CELLS))(tensor, pool)

    def next_name(self, names: list[str], every: Sequence[str]) -> str:
        if not names:
            names += self.chance.sample(every, len(every))
        return names.pop()

    # ------------------------------------------------------------------ products

    def weights(self, dtype: trt.DataType, shape: tuple[int, ...]) -> ITensor:
        made = self.constant(dtype, shape, -1, 1)
        return self.combine(made, self.filled(made, 1), Op.SUM) if self.coin() else made

    def operand(self, tensor: ITensor) -> ITensor:
        """A tensor as a matrix or a vector."""
        matrix = self.matrix(tensor if self.coin() else self.small(tensor))
        return self.reshape(matrix, self.size(matrix)) if self.coin() else matrix

    def product(self, x: ITensor, width: int, other: int, op: trt.MatrixOperation) -> ITensor:
        """A product of weights and an operand, on either side."""
        op_x = VECTOR if len(x.shape) == 1 else op
        length = x.shape[0 if op_x is VECTOR or (op_x is TRANSPOSE) == (other == 1) else 1]
        op_w = self.choose(NONE, TRANSPOSE)
        is_kept_first = (op_w is NONE) == (other == 0)
        w = self.weights(x.dtype, (width, length) if is_kept_first else (length, width))
        sides = [(x, op_x), (w, op_w)] if other else [(w, op_w), (x, op_x)]
        return self.network.add_matrix_multiply(*sides[0], *sides[1]).get_output(0)

    def products(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """Products of one or two operands, and layers that do the same with all of them, or not quite."""
        x = self.operand(tensor)
        other, op, number = self.between(0, 1), self.choose(NONE, TRANSPOSE), self.between(2, 4)
        widths = [self.between(1, 3)] * number if self.coin() else [self.between(1, 3) for _ in range(number)]
        made = [self.product(x, width, other, op) for width in widths]
        if self.between(0, 3):
            y = self.pick_exact(pool, lambda tensor: self.is_handy(tensor) and self.size(tensor) == self.size(x))
            y = self.reshape(self.small(y, x.dtype), *x.shape) if y else self.combine(x, self.filled(x, 2), Op.SUM)
            more = [self.product(y, width, other, op) for width in widths]
            more = more[::-1] if len(set(widths)) == 1 and self.coin() else more
            made = self.all_alike(made, more, self.choose(Op.SUM, Op.MAX))
        if self.between(0, 3):
            shared = [self.constant(x.dtype, (1,) * len(made[0].shape))] * number
            own = [self.constant(x.dtype, tuple(tensor.shape)) for tensor in made]
            made = self.all_alike(made, self.choose(shared, own, own), self.choose(Op.SUM, Op.SUB, Op.SUB))
        return [self.tame(tensor) for tensor in made]

    def all_alike(self, tensors: list[ITensor], others: list[ITensor], op: Op) -> list[ITensor]:
        """Tensors, each combined with another one in the same order; at times the last one is not."""
        turn, end = self.choose(1, -1), len(tensors) - (not self.between(0, 3))
        pairs = zip(tensors[:end], others[:end], strict=True)
        return [self.combine(*pair[::turn], op) for pair in pairs] + tensors[end:]

    def gates(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """Sigmoids and tanhs of products, most of which multiply something."""
        x = self.soft(tensor if tensor in self.rough else self.small(tensor))
        x = self.reshape(x, *((1, self.size(x)) if self.coin() else (self.size(x),)))
        made = []
        for width in [self.between(1, 3) for _ in range(self.between(2, 4))]:
            product = self.product(x, width, 1, NONE)
            small = self.combine(product, self.filled(product, 1 / 8), Op.PROD) if self.coin() else product
            gate = self.network.add_activation(small, self.choose(Act.SIGMOID, Act.SIGMOID, Act.TANH)).get_output(0)
            factor = self.constant(x.dtype, tuple(gate.shape), -1, 1)
            made.append(self.roughen(self.combine(gate, factor, self.choose(Op.PROD, Op.PROD, Op.SUM))))
        return made

    def parted_gates(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """Gates of parts of one product that are adjacent, or apart, or of every second element."""
        x = self.small(tensor) if tensor not in self.rough else tensor
        x = self.reshape(x, 1, self.size(x))
        product = self.product(x, 6, 1, NONE)
        small = self.combine(product, self.filled(product, 1 / 8), Op.PROD)
        starts, size, stride = self.choose(
            ((0, 2), 2, 1), ((0, 2, 4), 2, 1), ((0, 3), 2, 1), ((0, 3), 2, 1), ((0, 2), 2, 2)
        )
        made = []
        for start in starts:
            part = self.network.add_slice(small, (0, start), (1, size), (1, stride)).get_output(0)
            gate = self.network.add_activation(part, self.choose(Act.SIGMOID, Act.SIGMOID, Act.TANH)).get_output(0)
            made.append(self.roughen(self.combine(gate, self.constant(x.dtype, (1, size), -1, 1), Op.PROD)))
        return made

    def rows(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """Products of the rows, or columns, of an embedding."""
        index = self.one(tensor, self.fixed(np.int32(0)))
        index = self.clip_index(self.reshape(index, *self.choose((), (1,))))
        table = self.weights(trt.float32, (5, 5))
        rows = self.network.add_gather(table, index, self.choose(0, 0, 1)).get_output(0)
        return [self.product(rows, self.between(1, 3), 1, NONE) for _ in range(2)]

    def clip_index(self, index: ITensor) -> ITensor:
        return self.combine(self.combine(index, self.filled(index, 0), Op.MAX), self.filled(index, 4), Op.MIN)

    def sum_of_products(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """Sums along an axis, mostly the last one, of the products of rows with one vector."""
        row = self.reshape(self.small(tensor), 1, self.size(tensor))
        row = self.concatenated([row, row], 1) if self.size(tensor) == 1 else row
        matrix = self.concatenated([row, self.combine(row, self.filled(row, 2), Op.SUM)], 0)
        vector = self.weights(matrix.dtype, (1, matrix.shape[1]))
        product = self.combine(*self.chance.sample([matrix, vector], 2), Op.PROD)
        axes = self.choose(0b10, 0b10, 0b01)
        return [self.network.add_reduce(product, trt.ReduceOperation.SUM, axes, self.coin()).get_output(0)]

    def einsums(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """Products of a matrix and another one along some axes, with and without sums."""
        matrix = self.matrix(tensor)
        rows, columns = matrix.shape
        equation, shape = self.choose(
            ("ij,ji->ij", (columns, rows)), ("ij,ji->ji", (columns, rows)), ("ij,ii->ij", (rows, rows)),
            ("ij,jk->kij", (columns, 2)), ("ij,jk->kj", (columns, 2)), ("ij,ij->ij", (rows, columns)),
        )  # fmt: skip
        other = self.weights(matrix.dtype, shape)
        return [self.tame(self.network.add_einsum([matrix, other], equation).get_output(0))]

    # ------------------------------------------------------------------ loops

    def iterators(self, loop: trt.ILoop, pool: list[ITensor]) -> tuple[list[trt.IIteratorLayer], int]:
        made, bound = super().iterators(loop, pool)
        self.given += [iterator.get_output(0) for iterator in made]
        return made, bound

    def states(self, loop: trt.ILoop, pool: list[ITensor]) -> list[trt.IRecurrenceLayer]:
        for _ in range(self.between(0, 2)):
            start, step, dtype = self.between(0, 2), self.choose(1, 1, 2), self.choose(np.int32, np.int64)
            now = loop.add_recurrence(self.fixed(np.full(self.choose((), (1,)), start, dtype)))
            now.set_input(1, self.combine(now.get_output(0), self.filled(now.get_output(0), step), Op.SUM))
            self.counters.append((now.get_output(0), start + step * self.most_of[loop]))
        return super().states(loop, pool)

    def loop(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        before = len(self.counters)
        made = super().loop(pool, depth)
        del self.counters[before:]
        return made

    def limits(self, loop: trt.ILoop, pool: list[ITensor], inside: list[ITensor], bound: int) -> bool:
        counted = super().limits(loop, pool, inside, bound)
        self.most_of[loop] = bound + (loop in self.within)
        return counted

    def handed(self, ring: list[trt.IRecurrenceLayer]) -> dict[trt.IRecurrenceLayer, ITensor]:
        """Next values as in any loop, or the same for all states of a type; or constant states, or products."""
        first = ring[0].get_output(0)
        is_exact = first not in self.rough and first.dtype in FLOATS
        if is_exact and len(first.shape) == 2 and self.coin():
            return super().handed(ring[1:]) | {ring[0]: self.tame(self.product(first, first.shape[1], 1, NONE))}
        if is_exact and self.coin():
            states = (recurrence.get_output(0) for recurrence in self.chance.sample(ring, len(ring)))
            sums = (self.tame(self.combine(state, self.filled(state, 1), Op.SUM)) for state in states)
            return dict(zip(ring, sums, strict=True))
        if self.coin():
            return super().handed(ring[1:]) | {ring[0]: self.network.add_identity(first).get_output(0)}
        return super().handed(ring)

    def read(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """Elements of a tensor at a counter that stays inside the axis."""
        if not self.counters:
            return self.products(tensor, pool)
        now, end = self.choose(*self.counters)
        fitting = [(tensor, axis) for axis, length in enumerate(tensor.shape) if length >= end]
        source, axis = self.choose(*fitting) if fitting else (self.constant(tensor.dtype, (end, 2)), 0)
        spare = source.shape[axis] - end
        index = self.combine(now, self.filled(now, self.between(0, spare)), Op.SUM) if self.coin() else now
        return [self.network.add_gather(source, index, axis).get_output(0)]

    # ------------------------------------------------------------------ memories

    def memory(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """A loop that carries a narrow matrix, and changes it by columns, rows, sums and products of itself."""
        loop, rows, columns = self.network.add_loop(), self.between(4, 5), self.between(2, 3)
        loop.add_trip_limit(self.fixed(np.int32(self.between(0, 4))), trt.TripLimit.COUNT)
        state = loop.add_recurrence(self.constant(trt.float32, (rows, columns)))
        made = [self.tame(self.combine(state.get_output(0), self.one(tensor, state.get_output(0)), Op.SUM))]
        for _ in range(self.between(1, 4)):
            part = self.choose(self.broadcast, self.reduced, self.multiplied)(self.choose(*made))
            made.append(self.tame(self.combine(self.choose(*made), part, self.choose(Op.SUM, Op.SUB, Op.MAX))))
        for other in made[:-1]:
            if not other.uses:
                made.append(self.tame(self.combine(made[-1], other, Op.SUM)))
        state.set_input(1, made[-1])
        column = self.tame(self.column(self.choose(*made)))
        leaving = [column, state.get_output(0)] if self.coin() else [column]
        last = loop.add_loop_output(self.choose(state.get_output(0), made[0]), trt.LoopOutput.LAST_VALUE)
        return [*(self.stacked(loop, tensor) for tensor in leaving), last.get_output(0)]

    def stacked(self, loop: trt.ILoop, tensor: ITensor) -> ITensor:
        """The rows of up to four iterations."""
        output = loop.add_loop_output(tensor, trt.LoopOutput.CONCATENATE)
        output.set_input(1, self.fixed(np.int32(4)))
        return output.get_output(0)

    def batches(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """A loop that carries two narrow matrices, and reduces them along any axes."""
        loop, trips = self.network.add_loop(), self.between(1, 4)
        loop.add_trip_limit(self.fixed(np.int32(trips)), trt.TripLimit.COUNT)
        state = loop.add_recurrence(self.constant(trt.float32, (2, 5, 3)))
        now, most, total = state.get_output(0), trt.ReduceOperation.MAX, trt.ReduceOperation.SUM
        largest = self.network.add_reduce(now, most, self.choose(0b100, 0b010), True).get_output(0)
        moved = self.combine(now, self.one(tensor, now), Op.SUM)
        state.set_input(1, self.tame(self.combine(moved, largest, Op.SUB)))
        row = self.network.add_reduce(now, total, self.choose(0b001, 0b001, 0b101, 0b110), self.coin()).get_output(0)
        return [self.output(loop, self.tame(row), trips, pool)]

    def projections(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """A loop that multiplies a state of a few rows by weights."""
        loop, rows = self.network.add_loop(), self.between(1, 3)
        loop.add_trip_limit(self.fixed(np.int32(self.between(1, 3))), trt.TripLimit.COUNT)
        state = loop.add_recurrence(self.constant(trt.float32, (rows, 3)))
        now, weights = state.get_output(0), self.constant(trt.float32, (3, 3), -1, 1)
        product = self.network.add_matrix_multiply(now, NONE, weights, self.choose(NONE, TRANSPOSE)).get_output(0)
        state.set_input(1, self.tame(self.combine(product, self.one(tensor, product), Op.SUM)))
        return [self.last_value(loop, now)]

    def counted_reads(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """A loop that reads what it counts, from any element on, by ones or twos, often to the end of the axis."""
        loop, trips = self.network.add_loop(), self.between(1, 4)
        loop.add_trip_limit(self.fixed(np.int32(trips)), trt.TripLimit.COUNT)
        start, step = self.between(0, 2), self.choose(1, 1, 2)
        counter = loop.add_recurrence(self.fixed(np.full(self.choose((), (1,)), start, np.int32)))
        now = counter.get_output(0)
        counter.set_input(1, self.combine(now, self.filled(now, step), Op.SUM))
        length = start + step * (trips - 1) + self.choose(1, 1, 2)
        axis = self.between(0, 1)
        source = self.constant(trt.float32, (2, length) if axis else (length, 2))
        element = self.network.add_gather(source, now, axis).get_output(0)
        after = self.combine(now, self.filled(now, 1), Op.SUM)
        more = [self.last_value(loop, after)] if self.coin() else []
        return [self.output(loop, self.stir(element, tensor), trips, pool), *more]

    def written(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """A state of which each iteration writes the row of its number; some rows may never be written."""
        loop, trips, start = self.network.add_loop(), self.choose(0, 2, 3, 4), self.choose(0, 0, -1, -1, 1)
        rows = max(1, trips + start, self.choose(trips, trips, trips + 1, trips + 2))
        loop.add_trip_limit(self.fixed(np.int32(trips)), trt.TripLimit.COUNT)
        counter = loop.add_recurrence(self.fixed(np.full((1, 1), start, np.int32)))
        place = counter.get_output(0)
        counter.set_input(1, self.combine(place, self.filled(place, 1), Op.SUM))
        total = loop.add_recurrence(self.constant(trt.float32, (2,)))
        row = self.tame(self.combine(total.get_output(0), self.one(tensor, total.get_output(0)), Op.SUM))
        total.set_input(1, self.tame(self.combine(row, self.constant(trt.float32, (2,)), Op.SUM)))
        buffer = loop.add_recurrence(self.constant(trt.float32, (rows, 2)))
        update = self.reshape(row, 1, 2)
        scatter = self.network.add_scatter(buffer.get_output(0), place, update, trt.ScatterMode.ND)
        buffer.set_input(1, scatter.get_output(0))
        return [self.last_value(loop, recurrence.get_output(0)) for recurrence in (buffer, total)]

    # ------------------------------------------------------------------ products that may leave the iterations

    def split(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """A loop with products of rows and of states, and layers before and after them; one of these may stay in it."""
        loop, trips = self.network.add_loop(), self.choose(4, 5, 7, 7, 9)
        loop.add_trip_limit(self.fixed(np.int32(trips)), trt.TripLimit.COUNT)
        row = loop.add_iterator(self.constant(trt.float32, (9, 1, 2)), 0, self.coin()).get_output(0)
        state, earlier = (loop.add_recurrence(self.constant(trt.float32, (1, 2))) for _ in range(2))
        now = state.get_output(0)
        state.set_input(1, self.tame(self.combine(now, row, self.choose(Op.SUM, Op.SUB))))
        moved = self.combine(row, self.one(tensor, row), Op.SUM) if self.coin() else row
        ahead, late = self.weighed(moved), self.weighed(now)
        before = earlier.get_output(0)
        earlier.set_input(1, self.choose(ahead, ahead, late, now))
        made = [late, self.tame(self.combine(late, self.choose(now, ahead, row, before), Op.SUM))]
        made += [self.stays(*made)] if self.coin() else []
        rows = [tensor for tensor in (ahead, *made) if not tensor.uses or self.coin()]
        rows += [self.one(tensor, row)] if self.coin() else []  # the same in each iteration
        return [self.output(loop, row, trips, pool) for row in (*rows, before)] + [self.last_value(loop, now)]

    def weighed(self, row: ITensor) -> ITensor:
        """A product of a row and a matrix."""
        weights = self.constant(trt.float32, (2, 2), -1, 1)
        return self.tame(self.network.add_matrix_multiply(row, NONE, weights, NONE).get_output(0))

    def stays(self, a: ITensor, b: ITensor) -> ITensor:
        """What is made of two tensors in each iteration by itself: a choice, or a loop."""
        if self.coin():
            conditional = self.network.add_if_conditional()
            conditional.set_condition(self.combine(self.reshape(self.one(a, a)), self.fixed(np.float32(0)), Op.LESS))
            return conditional.add_output(a, b).get_output(0)
        loop = self.network.add_loop()
        loop.add_trip_limit(self.fixed(np.int32(2)), trt.TripLimit.COUNT)
        state = loop.add_recurrence(a)
        state.set_input(1, self.tame(self.combine(state.get_output(0), b, Op.SUM)))
        return self.last_value(loop, state.get_output(0))

    # ------------------------------------------------------------------ states that may be equal

    def twins(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """States that begin alike, and change alike or differ in one respect, with iterators over one tensor."""
        loop = self.network.add_loop()
        loop.add_trip_limit(self.fixed(np.int32(self.between(2, 4))), trt.TripLimit.COUNT)
        given, first = self.constant(trt.int32, (4, 3)), self.constant(trt.int32, (3,))
        first = self.combine(first, self.one(tensor, first), Op.SUM)
        rows = [loop.add_iterator(given, 0, flag).get_output(0) for flag in (False, True, self.coin())]
        ways = [rows, [Op.SUM, Op.SUB], [*trt.TopKOperation], [0, 1]]
        usual, has_top = [self.choose(*way) for way in ways], self.between(0, 3) > 0
        states = [loop.add_recurrence(first) for _ in range(4)]
        for state, place in zip(states, (None, None, self.between(0, 1), self.between(2, 3)), strict=True):
            own = [self.choose(*way) if number == place else usual[number] for number, way in enumerate(ways)]
            state.set_input(1, self.changed(state.get_output(0), has_top, *own))
        return [self.last_value(loop, state.get_output(0)) for state in states]

    def changed(
        self, now: ITensor, has_top: bool, row: ITensor, op: Op, top: trt.TopKOperation, output: int
    ) -> ITensor:
        mixed = self.combine(now, row, op)
        return self.network.add_topk(mixed, top, 3, 1).get_output(output) if has_top else mixed

    def noises(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """Random numbers that follow a state that never changes, and those of two states that begin alike."""
        loop, trips = self.network.add_loop(), self.between(2, 4)
        loop.add_trip_limit(self.fixed(np.int32(trips)), trt.TripLimit.COUNT)
        first = self.soft(self.reshape(self.one(tensor, self.fixed(np.zeros(1, np.float32))), 1))
        states = [loop.add_recurrence(first) for _ in range(3)]
        drawn = [self.drawn(self.as_rough_as(state.get_output(0), first)) for state in states]
        states[0].set_input(1, states[0].get_output(0))
        for state, other in zip(states[1:], drawn[1:], strict=True):
            self.rough.add(state.get_output(0))
            state.set_input(1, other)
        return [self.output(loop, drawn[0], trips, pool), *(self.last_value(loop, tensor) for tensor in drawn[1:])]

    def drawn(self, like: ITensor) -> ITensor:
        """Random numbers of the shape of another tensor, drawn anew where it varies, and no constants."""
        fill = self.network.add_fill((), trt.FillOperation.RANDOM_UNIFORM)
        fill.set_input(0, self.network.add_shape(like).get_output(0))
        made = self.combine(fill.get_output(0), like, Op.MAX)
        self.rough.add(made)
        return made

    # ------------------------------------------------------------------ small bodies

    def small_loop(self, tensor: ITensor, pool: list[ITensor]) -> list[ITensor]:
        """A loop of a few element-wise layers and small conditionals, with up to twenty iterations."""
        x, narrow = self.small(tensor), self.choose(None, trt.int2, trt.uint2, trt.e8m0)
        x = self.reshape(self.one(x, x)) if narrow or self.coin() else x
        outside = self.small(tensor, narrow) if narrow else None
        loop, trips = self.network.add_loop(), self.between(0, 20)
        loop.add_trip_limit(self.fixed(np.int32(trips)), trt.TripLimit.COUNT)
        scalar = self.reshape(self.one(x, self.filled(x, 0)))
        row = loop.add_iterator(self.constant(trt.float32, (20,)), 0, self.coin()).get_output(0)
        state, other = loop.add_recurrence(x), loop.add_recurrence(scalar)
        now, number = state.get_output(0), other.get_output(0)
        flag = self.combine(number, row, Op.LESS)
        conditional = self.network.add_if_conditional()
        conditional.set_condition(flag)
        ways = [self.tame(self.combine(now, self.filled(now, number), Op.SUM)) for number in (1, -2)]
        state.set_input(1, conditional.add_output(*ways).get_output(0))
        other.set_input(1, self.tame(self.combine(number, row, self.choose(Op.SUM, Op.SUB))))
        made = [self.last_value(loop, tensor) for tensor in (now, number)]
        if narrow is None and self.coin():
            return made
        rows = [self.output(loop, self.small(number, narrow) if narrow else number, trips, pool)]
        return [*made, *rows, *([] if outside is None else [self.repeated(outside, pool)])]

    def repeated(self, row: ITensor, pool: list[ITensor]) -> ITensor:
        """The same row of each iteration, of which there is one more than are made at a time."""
        loop = self.network.add_loop()
        loop.add_trip_limit(self.fixed(np.int32(9)), trt.TripLimit.COUNT)
        return self.output(loop, row, 9, pool)

    def broadcast(self, matrix: ITensor) -> ITensor:
        rows, columns = matrix.shape
        return self.constant(trt.float32, self.choose((rows, 1), (1, columns), (1, 1), (rows, columns)), -1, 1)

    def reduced(self, matrix: ITensor) -> ITensor:
        op = self.choose(trt.ReduceOperation.SUM, trt.ReduceOperation.MAX)
        return self.tame(self.network.add_reduce(matrix, op, self.between(1, 3), True).get_output(0))

    def column(self, matrix: ITensor) -> ITensor:
        """A product of a matrix and a vector, in either order."""
        rows, columns = matrix.shape
        vector = self.constant(trt.float32, (columns, 1), -1, 1)
        if not self.between(0, 3):
            return self.network.add_einsum([vector, matrix], self.choose("ba, cb -> c", "ba, cb -> bc")).get_output(0)
        ways = [
            (matrix, NONE, vector, NONE),
            (matrix, NONE, self.reshape(vector, columns), VECTOR),
            (matrix, NONE, self.constant(trt.float32, (columns, 3), -1, 1), NONE),
            (vector, TRANSPOSE, matrix, TRANSPOSE),
            (self.constant(trt.float32, (rows,)), VECTOR, matrix, NONE),
        ]
        return self.network.add_matrix_multiply(*self.choose(*ways)).get_output(0)

    def multiplied(self, matrix: ITensor) -> ITensor:
        """A product of a column, which may depend on the matrix, and a row."""
        rows, columns = matrix.shape
        of_it = self.network.add_reduce(matrix, trt.ReduceOperation.MAX, 0b10, True).get_output(0)
        column = self.choose(of_it, self.constant(trt.float32, (rows, 1), -1, 1))
        row = self.constant(trt.float32, (columns, 1), -1, 1)
        return self.tame(self.network.add_matrix_multiply(column, NONE, row, TRANSPOSE).get_output(0))
