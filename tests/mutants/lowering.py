"""Faults in the lowering of loops and conditionals, in host execution and in calls."""

from tests.mutants.mutant import Mutant

CALLS = "tests/compiler/execution/test_program_cache.py"
CHUNKED = "netloop/compiler/lower/loop/chunked_while.py"
ENTRY = "netloop/compiler/lower/loop/entry.py"
FACTS = "netloop/compiler/lower/loop/facts.py"
FAILURES = "tests/compiler/execution/test_failures.py"
FISSION = "netloop/compiler/lower/loop/fission.py"
FLAGS = "netloop/compiler/lower/frame.py"
HOST = "netloop/compiler/host/layers.py"
HOST_FRAME = "netloop/compiler/host/frame.py"
HOST_LOOP = "netloop/compiler/host/loop.py"
PADDED, PADDING = "netloop/compiler/host/padded_pieces.py", "netloop/compiler/host/padding.py"
SHAPE_VALUES = "netloop/compiler/lower/shape_values.py"
IFS = "tests/model/layers/test_conditional.py"
ITERATORS = "netloop/compiler/lower/loop/iterators.py"
LOAD = "netloop/compiler/lower/weight_folding.py"
LINEAR = "netloop/compiler/lower/loop/linear_scan.py"
LOADED = "tests/compiler/lower/test_weight_folding.py"
LOOPS = "tests/model/layers/test_loop.py"
LOWER_IF = "netloop/compiler/lower/conditional.py"
OUTPUTS = "netloop/compiler/lower/loop/outputs.py"
PASSES = "tests/compiler/passes"
PROGRAM = "netloop/compiler/lower/program.py"
PROGRAMS = "netloop/compiler/execution/program_cache.py"
READY = "netloop/compiler/execution/compiled_program.py"
PREFIX, PREFIXES = "netloop/compiler/lower/loop/prefix_scan.py", "tests/compiler/lower/loop/test_prefix_scan.py"
ROWS = "netloop/compiler/lower/loop/rows.py"
SCAN = "netloop/compiler/lower/loop/scan.py"
SPLIT = "tests/compiler/lower/loop/test_fission.py"
STATE = "netloop/compiler/lower/loop/state.py"
STEPS = "netloop/model/nest/steps.py"
STRATEGY = "netloop/compiler/lower/loop/strategy.py"
SUPPRESSION = "netloop/model/layers/suppression.py"
UNROLLING = "netloop/compiler/lower/loop/unroll_heuristic.py"
WHILE_LOOP = "netloop/compiler/lower/loop/while_loop.py"

CALLED_TWICE = "none: it shows in a second call, or with donated inputs"
OF_GPUS = "none: the forms are for GPUs, and random networks run on a CPU"
SPEED = "none: it changes how fast numbers are computed, and no number"
MEMORY = "none: it changes how much memory is used, and no number"
PADS = "tests/compiler/host/test_padding.py"
PADDED_LAYERS = "tests/compiler/host/test_padded_layers.py"
INPUT_LENGTHS = "netloop/compiler/execution/input_lengths.py"
OF_INPUTS = "tests/compiler/execution/test_input_lengths.py"
UNPADDED = "none: random networks run once, and a first length is not padded"
UNDRAWN = "none: random networks have no suppression of boxes"

# fmt: off
FAULTS = [
    # ------------------------------------------------------------------ lowering
    Mutant("a scan passes rows to reverse iterators in forward order", ITERATORS,
           "return jnp.flip(rows, 0) if layer.reverse else rows", "return rows", LOOPS),
    Mutant("a reverse scan starts at the end of the axis in place of the COUNT", ITERATORS,
           "jnp.moveaxis(array, layer.axis, 0)[:trips]", "jnp.moveaxis(array, layer.axis, 0)[-trips:]",
           LOOPS),
    Mutant("a while loop writes its rows one position too late", WHILE_LOOP,
           "write_rows(carry.buffers, stored, carry.trip)", "write_rows(carry.buffers, stored, carry.trip + 1)", LOOPS),
    Mutant("an engine pads REVERSE at its beginning", OUTPUTS,
           "jnp.roll(rows, trips - length, 0)", "rows", LOOPS),
    Mutant("an engine pads E8M0 with NaN", OUTPUTS,
           "return np.zeros((), dtype)", "return jnp.zeros((), dtype)", LOOPS),
    Mutant("a loop with a WHILE and a known COUNT is a scan", STRATEGY,
           "    if loop.limit(TripLimit.WHILE) is not None:\n",
           "    if loop.limit(TripLimit.WHILE) is not None and facts.count(loop) is None:\n", LOOPS),
    Mutant("a COUNT known only at run time is one too large", WHILE_LOOP,
           "within = carry.trip < jnp.asarray(", "within = carry.trip <= jnp.asarray(", LOOPS),
    Mutant("a while loop drops the error flag of a state after an iteration", STATE,
           "states = [first_error(0, inside.error_flag([state])) for state in self.step.next_states]",
           "states = [first_error(0) for _ in self.step.next_states]", FAILURES),
    Mutant("an iterator past the end of its axis sets no error flag", ITERATORS,
           "(position < 0) | (position >= length)", "position < 0", LOOPS),
    Mutant("an engine takes the other branch of a conditional", LOWER_IF,
           "_take(lowering, step, frame, 0 if value else 1)", "_take(lowering, step, frame, 1 if value else 0)", IFS),
    Mutant("the error flag of the condition of a conditional is lost", LOWER_IF,
           "frame.poison([tensor], first_error(decided, flag))", "frame.poison([tensor], flag)",
           FAILURES),
    Mutant("an assertion in a branch is lost", LOWER_IF,
           "first_error(frame.status, decided, status)", "first_error(frame.status, decided)",
           "tests/model/layers/test_assertion.py tests/model/layers/test_conditional.py"),
    Mutant("of two failures the last is reported", FLAGS,
           "result = jnp.where(result == 0, flag, result)", "result = jnp.where(flag == 0, result, flag)", FAILURES),
    Mutant("an iterator over an axis that is one too short is not checked", FACTS,
           "count <= self._types[iterator.tensor(0)].shape[iterator.axis]",
           "count <= self._types[iterator.tensor(0)].shape[iterator.axis] + 1", LOOPS),
    Mutant("random numbers of all iterations are the same", PROGRAM,
           'named["trips"] = tuple(frame.trips[loop] for loop in self.scopes.chain_of(layer.outputs[0]))',
           'named["trips"] = ()',
           "tests/model/layers/test_sources.py tests/model/layers/test_loop.py"),
    Mutant("a reverse iterator of host execution starts one element too late", HOST,
           "max(0, int(count)) - 1 - trip", "max(0, int(count)) - trip", "tests/compiler/host"),
    Mutant("pieces of host execution do not get the COUNT of a reverse iterator", STEPS,
           "for tensor in (*layer.inputs, trips) if", "for tensor in layer.inputs if", "tests/compiler/host"),

    # ------------------------------------------------------------------ loop fission and load time
    Mutant("the iterations after the last chunk read the first rows", SCAN,
           "lambda value: value[whole:], inputs", "lambda value: value[: self._trips - whole], inputs", PASSES),
    Mutant("a state that the epilogue reads is not stacked", FISSION,
           "{*_writes(core), *loop.states, *(", "{*_writes(core), *(", SPLIT),
    Mutant("a row from outside the loop is not stacked where layers move", FISSION,
           "if row not in moved)}", "if row in _writes(body) and row not in moved)}", SPLIT),
    Mutant("layers move to the epilogue although one of them must stay in the body", FISSION,
           "return layers if len(layers) == len(result) else []", "return layers", SPLIT),
    Mutant("a layer with a much larger output is folded at load time", LOAD,
           "if ready and _bytes(step.writes, types) <= MOST_GROWTH * _bytes(step.reads, types):", "if ready:",
           LOADED, MEMORY),
    Mutant("an output that depends on weights only is lost", LOAD,
           "{*read_by_others(block, steps), *outputs}", "{*read_by_others(block, steps)}", LOADED, SPEED),
    Mutant("if-conversion selects the other branch", LOWER_IF,
           "jnp.where(condition, one, other)", "jnp.where(condition, other, one)", IFS),

    # ------------------------------------------------------------------ calls
    Mutant("a program is reused for inputs of another element type", PROGRAMS,
           "return value.shape, value.dtype, None if", "return value.shape, None if", CALLS, CALLED_TWICE),
    Mutant("a call donates the memory of the preceding input", READY,
           "enumerate(lowered.inputs, 1)", "enumerate(lowered.inputs)", CALLS, CALLED_TWICE),

    # ------------------------------------------------------------------ flags, conditions and state of loops
    Mutant("the error flags of states are given to states in reverse order", STATE,
           "zip(self.step.states, carry.errors.states, strict=True)",
           "zip(self.step.states, carry.errors.states[::-1], strict=True)", FAILURES),
    Mutant("the error flag of the assertions of earlier iterations is lost", STATE,
           "inside.status = carry.errors.status", "inside.status = 0",
           "tests/model/layers/test_assertion.py::test_assertion_that_holds_again_later_is_an_error"),
    Mutant("the error flag of the rows of earlier iterations is lost", STATE,
           "first_error(old, inside.error_flag([row])) for old, row",
           "first_error(0, inside.error_flag([row])) for old, row",
           f"{FAILURES} {LOOPS}"),
    Mutant("an error in a WHILE counts after the COUNT has ended the loop", WHILE_LOOP,
           "flag = jnp.where(within, flag, 0)", "flag = jnp.int32(flag)",
           f"{LOOPS}::test_while_that_would_read_past_the_end_is_not_needed_after_the_count"),
    Mutant("LAST_VALUE of an iterator past the end of its axis sets no error flag", OUTPUTS,
           "inside.ended.add(state.step.loop)", "inside.ended.update()",
           "tests/model/layers/test_loop.py::test_last_value_of_an_iterator_at_the_end_of_its_axis_is_an_error"),
    Mutant("REVERSE with one row of room is padded at its beginning", OUTPUTS,
           "isinstance(trips, int) and trips >= length else", "isinstance(trips, int) and trips >= length - 1 else",
           "tests/support/test_networks.py"),
    Mutant("a negative axis of a stacked output counts from the end of a row", OUTPUTS,
           "jnp.moveaxis(rows, 0, normal_axis(layer.axis, rows.ndim))",
           "jnp.moveaxis(rows, 0, layer.axis if layer.axis >= 0 else layer.axis + rows.ndim - 1)",
           "tests/model/layers/test_loop.py::test_new_axis_goes_where_it_is_asked_for"),
    Mutant("the axis of an iterator changes places with axis 0", ITERATORS,
           "jnp.moveaxis(array, layer.axis, 0)[:trips]", "jnp.swapaxes(array, layer.axis, 0)[:trips]",
           f"{LOOPS}::test_iterator_keeps_the_order_of_the_other_axes"),
    Mutant("a stacked output is short of the COUNT of a loop that its WHILE ends earlier", ENTRY,
           "if trips is None or step.loop.limit(TripLimit.WHILE) is not None:", "if trips is None:",
           f"{LOOPS}::test_length_may_be_below_a_count_that_a_while_cuts_short"),
    Mutant("a LAST_VALUE that reads past the end of an axis cannot fail", FACTS,
           "self.can_fail(step.body.needed([output.tensor(0)]), {step.loop})",
           "self.can_fail(step.body.needed([output.tensor(0)]))",
           f"{FAILURES} -k past_the_end"),
    Mutant("a poisoned value that a branch reads is valid after the conditional", LOWER_IF,
           "can_fail([step], frame.ended) or frame.error_flag(step.reads) is not None",
           "can_fail([step], frame.ended)",
           "tests/model/layers/test_conditional.py::test_error_that_both_branches_need_appears "
           "tests/model/layers/test_conditional.py::test_error_in_the_branch_taken_appears "
           "tests/model/layers/test_conditional.py::test_error_in_one_output_of_a_conditional_does_not_appear_in_another"),
    Mutant("if-conversion drops the error flags of branches that can fail", LOWER_IF,
           "if not tracks_errors and LoweringForm.IF_CONVERSION", "if LoweringForm.IF_CONVERSION",
           "tests/model/layers/test_conditional.py::test_error_in_the_branch_taken_appears "
           "tests/model/layers/test_conditional.py::test_error_in_the_branch_not_taken_never_appears "
           "tests/model/layers/test_conditional.py::test_error_that_both_branches_need_appears "
           "tests/model/layers/test_conditional.py::test_error_in_one_output_of_a_conditional_does_not_appear_in_another"),
    Mutant("the error flag of a branch that is known to be taken is lost", LOWER_IF,
           "frame.poison([tensor], frame.error_flag([result]))", "frame.poison([tensor], None)",
           f"{IFS}::test_error_in_the_branch_of_a_known_condition_appears"),
    Mutant("an input of a conditional loses its error flag", PROGRAM,
           "frame)\n            frame.poison(layer.outputs, frame.error_flag(layer.inputs))", "frame)",
           f"{IFS}::test_error_in_an_input_of_a_conditional_appears"),
    Mutant("a layer passes on the error flag of its first input only", PROGRAM,
           "strict=True))\n        frame.poison(layer.outputs, frame.error_flag(layer.inputs))",
           "strict=True))\n        frame.poison(layer.outputs, frame.error_flag(layer.inputs[:1]))",
           "tests/model/layers/test_loop.py::test_error_of_one_output_is_not_forgotten_for_the_next "
           "tests/compiler/execution/test_failures.py::test_of_two_errors_the_first_is_raised "
           "tests/compiler/execution/test_failures.py::test_error_has_the_same_message"),

    # ------------------------------------------------------------------ scans, fission, unrolling and weight folding
    Mutant("rows of the iterations after the last chunk come first", SCAN,
           "for pair in zip(rows, rest, strict=True)", "for pair in zip(rest, rows, strict=True)",
           "tests/compiler/passes/test_lowering_forms.py::test_chunks_of_iterations_give_the_same_results"),
    Mutant("states after the last whole chunk leave the loop", SCAN,
           "            carry, rest = self._chunk(carry, jax", "            _, rest = self._chunk(carry, jax",
           "tests/compiler/passes/test_lowering_forms.py::test_chunks_of_iterations_give_the_same_results"),
    Mutant("a loop with error flags is split", SCAN,
           " or self._state.tracks_errors or self._trips < 2:", " or self._trips < 2:",
           "tests/compiler/lower/loop/test_fission.py "
           "tests/compiler/passes/test_negative_cases.py "
           "tests/compiler/passes/test_lowering_forms.py"),
    Mutant("rows of 2 bits are stacked as they are", ROWS,
           "    if rows.dtype in TINY:\n", "    if False:\n", "tests/compiler/lower/loop/test_rows.py", OF_GPUS),
    Mutant("rows of 2 bits are joined by unrolling", SCAN,
           "any(types[tensor].dtype in TINY for tensor in kept):", "False:",
           "tests/compiler/passes/test_lowering_forms.py::test_chunks_of_sub_byte_types_are_joined "
           "tests/compiler/execution/test_element_types.py"),
    Mutant("a next state that the prologue computes is not kept", FISSION,
           "*(tensor for step in core for tensor in step.reads), *following, *wanted}",
           "*(tensor for step in core for tensor in step.reads), *wanted}", SPLIT),

    Mutant("a prefix scan keeps values that are not finite", PREFIX,
           "if is_finite is not None:", "if is_finite is None:", PREFIXES, OF_GPUS),
    Mutant("states that depend on each other are computed one by one", PREFIX,
           "for other in unknown if other in reached]", "for other in unknown if other is recurrence]",
           f"{PREFIXES}::test_states_that_are_linear_together_have_the_values_of_the_loop", OF_GPUS),
    Mutant("the terms of the last step are lost where states are linear together", LINEAR,
           "before[:, None]) + own", "before[:, None])",
           f"{PREFIXES}::test_states_that_are_linear_together_have_the_values_of_the_loop", OF_GPUS),
    Mutant("any loop of products is part of a CUDA graph", STRATEGY, "return is_open and any(", "return any(",
           "tests/compiler/passes/test_lowering_forms.py::"
           "test_loops_of_products_and_unknown_length_are_part_of_a_graph", OF_GPUS),
    Mutant("bodies with a loop in a branch are unrolled on GPUs", UNROLLING,
           "if any(isinstance(step, LoopStep) for step in walk(Block(steps))):", "if False:",
           "tests/compiler/lower/loop/test_unroll_heuristic.py::test_bodies_with_branches_of_layers_are_unrolled",
           OF_GPUS),
    Mutant("a quotient by a state is linear", PREFIX, "places == {0} and", "places and", PREFIXES, OF_GPUS),
    Mutant("the state after an iteration is read in it", PREFIX,
           "jnp.concatenate([first[None], elements[:-1]])", "elements", PREFIXES, OF_GPUS),
    Mutant("iterations after the end of a WHILE loop change its states", WHILE_LOOP,
           "jax.tree.map(partial(jnp.where, goes_on), self.iterate(carry), carry)", "self.iterate(carry)",
           "tests/compiler/lower/loop/test_unroll_heuristic.py", OF_GPUS),

    # ------------------------------------------------------------------ host execution and chunked loops
    Mutant("a piece is reused for another value that decides a shape", HOST_FRAME,
           "return value.dtype, value.shape, None if shape_value is None else shape_value.tobytes()",
           "return value.dtype, value.shape", "tests/compiler/host/test_program.py"),
    Mutant("a program is made for each value of an input that is lost in large tensors", SHAPE_VALUES,
           "lambda tensor: tensor not in lost", "lambda tensor: True",
           "tests/compiler/lower/test_shape_values.py tests/compiler/host/test_padding.py", SPEED),
    Mutant("values are lost in the branch that is not taken", SHAPE_VALUES,
           "for layer, _ in tensor.uses if isinstance(layer, Operation))", "for layer, _ in tensor.uses)",
           "tests/compiler/lower/test_shape_values.py", SPEED),
    Mutant("a piece is made for each number that is rounded to the same length", SHAPE_VALUES,
           "lambda tensor: not _is_float(network.types.of(tensor))", "lambda tensor: True",
           "tests/compiler/lower/test_shape_values.py", SPEED),
    Mutant("what is behind the end of an axis is read", "netloop/model/graph/padded_axes.py",
           "x = jnp.where(within.reshape(shape), x, np.asarray(neutral.value, x.dtype))",
           "x = jnp.where(within.reshape(shape), x, x)", PADS, UNPADDED),
    Mutant("the first length decides which axes are padded", PADDING,
           "enumerate(before.shape) if length == UNKNOWN)",
           "enumerate(before.shape) if length == UNKNOWN and bucket(exact[axis]) != exact[axis])", PADS, UNPADDED),
    Mutant("a maximum along a padded axis is at least 0", "netloop/model/layers/reduce.py",
           "nothing = NOTHING.get(self.op, lambda _: 0)(x.dtype)", "nothing = 0", PADDED_LAYERS, UNPADDED),
    Mutant("a mean divides by the padded length", "netloop/model/layers/reduce.py",
           "length_along(x, axis, lengths) for axis in over", "x.shape[axis] for axis in over",
           PADDED_LAYERS, UNPADDED),
    Mutant("a position past the end of a padded axis reads 0 whatever the mode is", "netloop/model/layers/slice.py",
           "has_zeros = self.mode is SampleMode.FILL and ", "has_zeros = ", PADS, UNPADDED),
    Mutant("tensors are joined behind their padding", "netloop/model/layers/rearrange.py",
           "position = position + length", "position = position + part.shape[axis]", PADDED_LAYERS, UNPADDED),
    Mutant("a product sums over padding", "netloop/model/layers/matrix.py",
           "frozenset({type.rank - _own_axes(operation) + _summed_axis(operation, plain)}) & axes", "frozenset[int]()",
           PADDED_LAYERS, UNPADDED),
    Mutant("an index among the padding scatters its update", "netloop/model/layers/gather.py",
           "return neutral(1, padded[1], np.iinfo(types[1].dtype).max)", "return NO_NEUTRALS", PADDED_LAYERS, UNPADDED),
    Mutant("a negative index counts from the end of the padding", "netloop/model/layers/gather_forms.py",
           "    if axis not in lengths:\n        return indices\n", "    if lengths or True:\n        return indices\n",
           PADDED_LAYERS, UNPADDED),
    Mutant("a cache and its mask are padded apart", "netloop/compiler/execution/shape_families.py",
           "len({shapes[at][axis] - distance for (at, axis), distance in group}) == 1", "group", OF_INPUTS, UNPADDED),
    Mutant("a program is shared by calls in which other axes differ", INPUT_LENGTHS,
           "if not self._are_common(types):", "if False:",
           OF_INPUTS, UNPADDED),
    Mutant("a program is shared by calls whose lengths it has no room for", INPUT_LENGTHS,
           "elif not program.padding.holds(types, self._steps):", "elif False:", OF_INPUTS, UNPADDED),
    Mutant("a padded slice at the end of a tensor begins before its start", "netloop/model/layers/slice.py",
           "self.mode is SampleMode.STRICT_BOUNDS and not lengths", "self.mode is SampleMode.STRICT_BOUNDS",
           OF_INPUTS, UNPADDED),
    Mutant("a loop that may fail for a length is padded", PADDING,
           "return not self._facts.can_fail([step]) and self._takes(step)", "return self._takes(step)",
           f"{PADDED_LAYERS}::test_loop_that_fails_for_its_length_fails", UNPADDED),
    Mutant("the shape of a padded tensor is a constant", PADDING,
           "        if isinstance(layer, IShapeLayer):\n            self._give_shape(layer)\n", "",
           PADDED_LAYERS, UNPADDED),
    Mutant("a length that is met often stays padded", PADDED, "self._calls < FEW", "self._calls >= 0", PADS, SPEED),
    Mutant("the first length is padded", PADDED,
           "self._first.setdefault(steps[0], key) == key", "self._first.setdefault(steps[0], key) is None",
           PADS, SPEED),
    Mutant("boxes are apart if the box before ends, though an earlier one does not", SUPPRESSION,
           "np.maximum.accumulate(ranks[order] + base)",
           "ranks[order] + base", "tests/model/layers/test_suppression.py", UNDRAWN),
    Mutant("the host asks a WHILE after the COUNT has ended the loop", HOST_LOOP,
           "if condition is not None and result is True:", "if condition is not None:",
           "tests/compiler/host/test_program.py::test_while_is_not_asked_after_the_count_has_ended_a_loop_on_the_host"),
    Mutant("the host checks assertions in an iteration that is not made", HOST_LOOP,
           "asking.is_iteration = False", "asking.is_iteration = True",
           "tests/compiler/host/test_program.py::test_assertion_of_an_inner_loop_is_not_checked_after_the_last_iteration"
           " "
           "tests/compiler/host/test_program.py::test_assertion_is_checked_on_the_host "
           "tests/compiler/host/test_program.py::test_host_agrees_with_the_reference_and_fails_where_it_does"),
    Mutant("a chunked loop ends with its first chunk", CHUNKED,
           "loop.iterate, carry\n        )\n        return carry, loop.goes_on(carry)",
           "loop.iterate, carry\n        )\n        return carry, carry.trip < until",
           "tests/compiler/host/test_interruptible.py::test_outputs_are_the_same"),
]
# fmt: on
