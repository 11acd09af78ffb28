"""Faults in passes."""

from tests.mutants.mutant import Mutant

AXES = "netloop/compiler/passes/carry_layout.py"
CACHE = "netloop/model/layers/cache.py"
CONTRACTION = "netloop/compiler/passes/matmul_recognition.py"
BUFFERS = "netloop/compiler/passes/buffer_layers.py"
LISTS = "netloop/compiler/passes/growing_lists.py"
BEGINNINGS = "netloop/compiler/passes/list_beginnings.py"
SIZES = "netloop/compiler/passes/fixed_sizes.py"
FORMS = "netloop/compiler/passes/gate_fusion.py"
COUNTERS = "netloop/compiler/passes/counters.py"
INDEXING = "netloop/compiler/passes/induction_variables.py"
LAYOUT = "netloop/compiler/passes/weight_prepacking.py"
READERS = "netloop/compiler/passes/growing_layers.py"
PARTS = "netloop/compiler/passes/matmul_partitioning.py"
PASSES = "tests/compiler/passes"
SHARING = "netloop/compiler/passes/horizontal_fusion.py"
STATES = "netloop/compiler/passes/redundant_carries.py"
TABLES = "netloop/compiler/passes/embedding_folding.py"


SPEED = "none: it changes how fast numbers are computed, and no number"
NO_SUCH_LIST = "none: random networks seldom have lists that only grow"
ROUNDING = "none: it changes numbers by less than rounding may"

# fmt: off
FAULTS = [
    # ------------------------------------------------------------------ passes
    Mutant("two states with the same initial value are taken for equal", STATES,
           "while len(set(self.groups.values())) > before:", "while False:", PASSES),
    Mutant("iterators in both directions become one", STATES,
           "(iterator.tensor(0), iterator.axis, iterator.reverse) for", "(iterator.tensor(0), iterator.axis) for",
           PASSES),
    Mutant("the random numbers of two layers are taken for equal", STATES,
           "if isinstance(layer, Operation) and layer.is_foldable:", "if isinstance(layer, Operation):", PASSES),
    Mutant("a constant state is moved out of a loop that draws random numbers", STATES,
           " if own and _may_move_out(step) for", " for", PASSES),
    Mutant("a constant state is moved out of a loop that has an assertion", STATES,
           "else not isinstance(layer, IAssertionLayer)", "else True", PASSES),
    Mutant("a matrix that may be missing is joined with others", SHARING,
           "is not MatrixOperation.VECTOR and rewriter.always_exists(wide)", "is not MatrixOperation.VECTOR", PASSES),
    Mutant("an iterator that replaces a gather may pass the end of the axis", INDEXING,
           "if first < 0 or first + elements > data", "if first < 0 or first + elements - 1 > data", PASSES),
    Mutant("rows that are written from the last one on are stacked", INDEXING,
           "first_of_counter(step, operand(layer, 1)) == 0", "first_of_counter(step, operand(layer, 1)) is not None",
           PASSES),
    Mutant("rows are stacked although some are never written", INDEXING,
           "trips == rows.type.shape[0] > 0", "trips > 0", PASSES),
    Mutant("a sum along any axis becomes a matrix product", CONTRACTION,
           "and layer.axes == 1 << (x.type.rank - 1) and", "and", PASSES),
    Mutant("an einsum that sums becomes an element-wise product", CONTRACTION,
           "set().union(*operands) == set(result)", "set().union(*operands) >= set(result)", PASSES),
    Mutant("an einsum of a diagonal becomes an element-wise product", CONTRACTION,
           "if not is_plain or any(len(set(own)) < len(own) for own in operands):", "if not is_plain:", PASSES),
    Mutant("a stacked state is transposed", AXES,
           "isinstance(layer, ILoopOutputLayer) and layer.kind is LoopOutput.LAST_VALUE\n\n    def _can",
           "isinstance(layer, ILoopOutputLayer)\n\n    def _can", PASSES, SPEED),
    Mutant("a sum of a transposed state is along the wrong axis", AXES,
           "if layer.axes & both not in (0, both) else", "if layer.axes & both == 0 else", PASSES),
    Mutant("the result of a sum that keeps its axes is read with them swapped", AXES,
           "if isinstance(layer, COMBINING) and not", "if False and not", PASSES),
    Mutant("a matrix product ignores that a state is transposed", AXES,
           "[FLIPPED[op] if tensor in self.members else op for", "[op for", PASSES),
    Mutant("an einsum ignores that a state is transposed", AXES,
           "own[:-2] + own[:-3:-1] if tensor in", "own if tensor in", PASSES),
    Mutant("products with a matrix and with its transpose become one", SHARING,
           "return layer.op0, layer.op1, tuple(shape)", "return tuple(shape)", PASSES),
    Mutant("sums over some parts of a pack become one", SHARING,
           "kind is not None and len(layers) == len(pack.parts)", "kind is not None", PASSES),
    Mutant("a gather of columns of a table is folded like one of rows", TABLES,
           "gather.axis in (0, -2)", "gather.axis in (0, 1, -2)", PASSES),
    Mutant("a matrix that multiplies a state is prepacked for many rows", LAYOUT,
           "if rows in varying else 0", "if rows not in varying else 0", PASSES, SPEED),
    Mutant("a product that runs after the iterations has its weights on the left", LAYOUT,
           "size >= MIN_ELEMENTS_LEFT and step in repeated", "size >= MIN_ELEMENTS_LEFT", PASSES, SPEED),
    Mutant("matrices of several rows are transposed for GPUs", LAYOUT, "|= count == 1 and _transpose", "|= _transpose",
           f"{PASSES}/test_weight_prepacking.py::"
           "test_matrices_that_multiply_one_row_of_a_state_are_transposed_for_gpus", SPEED),
    Mutant("a slice of an input that an iterator reads is taken for a state", LAYOUT,
           "or by_state.isdisjoint(step.reads)", "or (by_state | outside).isdisjoint(step.reads)", PASSES, SPEED),
    Mutant("the parts of a product of several rows are joined from the last to the first", PARTS,
           "for part in make.split(matrix, 1, widths)]", "for part in make.split(matrix, 1, widths)[::-1]]",
           PASSES),
    Mutant("a product that no state needs is computed in parts", PARTS,
           "step.body.needed(following)", "step.body.steps", PASSES, SPEED),
    Mutant("a token before the beginning of the cache is written into it", CACHE,
           "(number >= 0) & (number < tokens)", "number < tokens", "tests/model/layers/test_cache.py"),
    Mutant("tokens that begin before the cache are written from the first one on", CACHE,
           "narrow_indices(number, tokens - 1)", "narrow_indices(number - number[0], tokens - 1)",
           "tests/model/layers/test_cache.py"),
    Mutant("a sigmoid that is also added is computed through tanh", FORMS,
           "return bool(readers) and all(", "return bool(readers) and any(", PASSES, ROUNDING),
    Mutant("gates with a gap between them are taken for adjacent", FORMS,
           "section.begin != runs[-1][-1].end:", "section.begin < runs[-1][-1].end:", PASSES),

    # ------------------------------------------------------------------ conditions and order of operands
    Mutant("layers with other attributes are taken for equal", STATES,
           "numbers.setdefault((type(layer), attributes, inputs), len(numbers))",
           "numbers.setdefault((type(layer), inputs), len(numbers))",
           f"{PASSES}/test_redundant_carries.py"),
    Mutant("all outputs of a layer are taken for equal", STATES,
           "{tensor: (\"layer\", number, tensor.position) for", "{tensor: (\"layer\", number) for",
           f"{PASSES}/test_redundant_carries.py"),
    Mutant("an iterator that replaces a gather starts at the first element", INDEXING,
           "axes=[axis]) if first else data", "axes=[axis]) if False else data",
           "tests/compiler/passes/test_induction_variables.py "
           "tests/compiler/passes/test_pipeline.py::test_reference_stays_the_same"),
    Mutant("a counter may count by any number", COUNTERS,
           "operand(following, 1 - position).type.ints() == [1]", "operand(following, 1 - position).type.ints()",
           f"{PASSES}/test_negative_cases.py::test_counter_by_twos_reads_every_second_row"),
    Mutant("an operand of an einsum without a sum keeps the order of its axes", CONTRACTION,
           "[own.index(label) for label in result if label in own]", "[own.index(label) for label in own]",
           f"{PASSES}/test_negative_cases.py::test_einsum_without_a_sum_transposes_its_operands"),
    Mutant("a reduction of a batch axis alone may read a transposed state", AXES,
           "layer.axes >> (operand(layer, 0).type.rank - 2) > 0", "layer.axes > 0",
           f"{PASSES}/test_negative_cases.py::test_sum_over_a_batch_keeps_the_axes_of_a_state"),
    Mutant("what several products share is the operand on the other side", SHARING,
           "a, b = (pack.whole, theirs) if position == 0 else (theirs, pack.whole)", "a, b = pack.whole, theirs",
           f"{PASSES}/test_negative_cases.py::test_products_keep_their_operands_and_their_order"),
    Mutant("parts of two packs are combined in the order of the second", SHARING,
           "same = other is not pack and its_place == place and", "same = other is not pack and",
           f"{PASSES}/test_negative_cases.py::test_products_keep_their_operands_and_their_order"),
    Mutant("all parts of a pack are combined with what the first one is", SHARING,
           "return \"broadcast\", partner", "return \"broadcast\"",
           f"{PASSES}/test_negative_cases.py::test_products_keep_their_operands_and_their_order"),
    Mutant("an embedding is multiplied by a matrix as if it were not transposed", TABLES,
           "add_matrix_multiply(table, MatrixOperation.NONE, matrix, layer.op1)",
           "add_matrix_multiply(table, MatrixOperation.NONE, matrix, MatrixOperation.NONE)",
           f"{PASSES}/test_negative_cases.py::test_embedding_is_multiplied_by_a_transposed_matrix"),
    Mutant("the kinds of fused gates are in reverse order", FORMS,
           "logistic = [int(section.gate.type is SIGMOID) for section in run]",
           "logistic = [int(section.gate.type is SIGMOID) for section in run[::-1]]",
           f"{PASSES}/test_gate_fusion.py {PASSES}/test_pipeline.py"),
    Mutant("a gate of every second element is taken for one of adjacent elements", FORMS,
           "if len(cut) != 1 or any(number != 1 for number in slice.stride):", "if len(cut) != 1:",
           f"{PASSES}/test_gate_fusion.py {PASSES}/test_pipeline.py"),
    Mutant("a transposed matrix is transposed again for its parts", PARTS,
           "if layer.op1 is NONE:", "if layer.op1 is TRANSPOSE:",
           "tests/compiler/passes/test_matmul_partitioning.py "
           "tests/compiler/passes/test_pipeline.py::test_reference_stays_the_same"),
    Mutant("a list that the loop reads is stacked", LISTS,
           "return all(\n        isinstance(reader, ILoop", "return any(\n        isinstance(reader, ILoop",
           "tests/compiler/passes/test_growing_lists.py", NO_SUCH_LIST),
    Mutant("a tensor inserted at a position is appended", BEGINNINGS,
           "return [*insertion.inputs, None][2] is None", "return True",
           "tests/compiler/passes/test_growing_lists.py", NO_SUCH_LIST),
    Mutant("a list begins with all rows of the buffer of another one", BEGINNINGS,
           "if counted.type.ints() == [rows.type.shape[0]]:", "if True:",
           "tests/compiler/passes/test_growing_lists.py", NO_SUCH_LIST),
    Mutant("the tensors with which a list begins are not counted", BEGINNINGS,
           "np.int64(1)", "np.int64(0)", "tests/compiler/passes/test_growing_lists.py", NO_SUCH_LIST),
    Mutant("a negative COUNT takes elements away from a list", BEGINNINGS,
           "make.maximum(make.cast(number, np.int64), 0), *flags]", "make.cast(number, np.int64), *flags]",
           "tests/compiler/passes/test_growing_lists.py", NO_SUCH_LIST),
    Mutant("a list has all rows of its buffer", BUFFERS,
           "return rows[:count] if flags is None", "return rows if flags is None",
           "tests/compiler/passes/test_growing_lists.py", NO_SUCH_LIST),
    Mutant("a list has the rows of iterations that append none", BUFFERS,
           "rows[:count][flags[:count]]", "rows[:count]",
           "tests/compiler/passes/test_growing_lists.py", NO_SUCH_LIST),
    Mutant("a size is that of the first iteration", SIZES,
           "np.array_equal(values.setdefault(tensor, value), value)", "values.setdefault(tensor, value) is not None",
           "tests/compiler/passes/test_fixed_sizes.py", NO_SUCH_LIST),
    Mutant("a softmax reads the garbage of a buffer", READERS,
           "return [buffers.mask(reader, 0, along, -np.inf)] if along else []", "return []",
           "tests/compiler/passes/test_growing_states.py", NO_SUCH_LIST),
    Mutant("a sum of products reads the garbage of its second operand", READERS,
           "edits += [buffers.mask(reader, position, summed, 0)] if summed else []",
           "edits += [buffers.mask(reader, position, summed, 0)] if summed and not position else []",
           "tests/compiler/passes/test_growing_states.py", NO_SUCH_LIST),
    Mutant("a position from the end counts from the end of a buffer", READERS,
           "return [] if is_inside else [lambda: _read_inside(buffers, reader, line)]", "return []",
           "tests/compiler/passes/test_growing_states.py", NO_SUCH_LIST),
]
# fmt: on
