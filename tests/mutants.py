"""One-line faults, and the tests that catch them: ``python -m tests.mutants`` writes the table of ``mutants.md``.

Each fault is planted in a copy of the tree, and its tests run there. A fault that no test catches shows a gap in the
tests. Neither pytest nor CI runs this: it takes half an hour. Arguments select the faults with all of these words.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "tests" / "mutants.md"
JOBS = 2
MOST_SECONDS = 900

LOOP, SCOPE = "netloop/layers/loop.py", "netloop/nest/scope_equations.py"
TREE, STEPS = "netloop/nest/tree.py", "netloop/nest/steps.py"
IF, LIVE, INFER = "netloop/layers/conditional.py", "netloop/nest/live.py", "netloop/graph/infer.py"
LOWER_IF, PROGRAM, FLAGS = (
    "netloop/lower/conditional.py",
    "netloop/lower/program.py",
    "netloop/lower/frame.py",
)
WHILE_LOOP, STATE, OUTPUTS, ITERATORS, STRATEGY, FACTS = (
    f"netloop/lower/loop/{each}.py" for each in ("while_loop", "state", "outputs", "iterators", "strategy", "facts")
)
REFERENCE, HOST = "netloop/reference/interpreter.py", "netloop/host/layers.py"
SCAN, FISSION, LOAD = "netloop/lower/loop/scan.py", "netloop/lower/loop/fission.py", "netloop/lower/weight_folding.py"
STATES, INDEXING, SHARING = (
    "netloop/passes/redundant_carries.py",
    "netloop/passes/induction_variables.py",
    "netloop/passes/horizontal_fusion.py",
)
AXES, CONTRACTION = "netloop/passes/carry_layout.py", "netloop/passes/matmul_recognition.py"
TABLES, LAYOUT = "netloop/passes/embedding_folding.py", "netloop/passes/weight_prepacking.py"
TYPES, FORMS = "netloop/types.py", "netloop/passes/gate_fusion.py"
CACHE, PARTS = "netloop/layers/cache.py", "netloop/passes/matmul_partitioning.py"
RULES, PORTABILITY = "netloop/check/loops.py", "netloop/check/portability.py"
PROGRAMS, READY = "netloop/execution/program_cache.py", "netloop/execution/compiled_program.py"
POINTWISE, CONVERSION = "netloop/layers/pointwise.py", "netloop/layers/element_conversion.py"

LOOPS, IFS = "tests/layers/test_loop.py", "tests/layers/test_conditional.py"
INTERPRETER, FAILURES = "tests/reference/test_interpreter.py", "tests/execution/test_failures.py"
NEST, PASSES = "tests/nest", "tests/passes"
LOADED, SPLIT = "tests/lower/test_weight_folding.py", "tests/lower/loop/test_fission.py"
CALLS = "tests/execution/test_program_cache.py"
CHECK = "tests/check/test_loops.py tests/check/test_portability.py"


class Mutant(NamedTuple):
    """A fault: its name, the file, a text that occurs once in it, the replacement, and the tests that should fail."""

    fault: str
    file: str
    old: str
    new: str
    tests: str


# fmt: off
MUTANTS = [
    # ------------------------------------------------------------------ semantics of layers, in the reference
    Mutant("the reference does not clamp a negative COUNT to 0", LOOP,
           "return max(0, int(value))", "return int(value)", LOOPS),
    Mutant("a loop runs one iteration too many for its WHILE", LOOP,
           "        trip = 0\n        while trip", "        trip = 1\n        while trip", LOOPS),
    Mutant("of two limits only the WHILE ends a loop", LOOP,
           "while trip < most and (yield", "while (yield", LOOPS),
    Mutant("a recurrence returns the initial value in the second iteration too", LOOP,
           "        if trip == 0:\n", "        if trip <= 1:\n", LOOPS),
    Mutant("a recurrence reads its next value in the same iteration", LOOP,
           "{**at, self.loop: trip - 1})", "{**at, self.loop: trip})", LOOPS),
    Mutant("a reverse iterator starts one element too late", LOOP,
           ".count(at)) - 1 - trip if self.reverse", ".count(at)) - trip if self.reverse", LOOPS),
    Mutant("an iterator wraps around before the first element", LOOP,
           "require(0 <= position < array.shape[axis]", "require(position < array.shape[axis]", LOOPS),
    Mutant("LAST_VALUE returns the value before the last iteration's update", LOOP,
           "(yield self.tensor(0), {**at, self.loop: trips})", "(yield self.tensor(0), {**at, self.loop: trips - 1})",
           LOOPS),
    Mutant("a stacked output may be one row too short", LOOP,
           "if rows > length else None", "if rows > length + 1 else None", LOOPS),
    Mutant("the reference treats REVERSE as CONCATENATE", LOOP,
           "rows = rows[::-1]", "rows = rows[:]", LOOPS),
    Mutant("a stacked output is padded at its beginning", LOOP,
           "stacked[: len(rows)] = rows", "stacked[length - len(rows) :] = rows", LOOPS),
    Mutant("a stacked output always stacks along axis 0", LOOP,
           "np.moveaxis(stacked, 0, normal_axis(self.axis, len(shape) + 1))", "stacked", LOOPS),
    Mutant("the reference takes the other branch of a conditional", IF,
           "taken = 0 if (yield condition, at) else 1", "taken = 1 if (yield condition, at) else 0", IFS),
    Mutant("the type of a conditional is that of its first branch", IF,
           "return true if condition.value else false", "return true", IFS),
    Mutant("dims in which branches differ are those of the first branch", TYPES,
           "tuple(x if x == y else UNKNOWN for x, y", "tuple(x for x, y", IFS),

    # ------------------------------------------------------------------ the reference
    Mutant("the reference caches a value without its iterations", REFERENCE,
           "self._known[self._key(output, at)] = array", "self._known[(output, ())] = array", INTERPRETER),
    Mutant("assertions are checked in the branch that is not taken", REFERENCE,
           "taken = 0 if (yield step.condition, at) else 1", "taken = 1 if (yield step.condition, at) else 0",
           "tests/layers/test_assertion.py tests/layers/test_conditional.py tests/layers/test_loop.py"),
    Mutant("assertions are not checked in the last iteration", REFERENCE,
           "for trip in range(trips):", "for trip in range(trips - 1):",
           "tests/layers/test_assertion.py tests/layers/test_loop.py tests/support/test_networks.py"),

    # ------------------------------------------------------------------ nesting
    Mutant("a loop encloses itself", SCOPE,
           "union(found, inputs) & ~bits[node]", "union(found, inputs)", NEST),
    Mutant("the loops around a loop are missing from the scope of what varies in it", SCOPE,
           "bits[node.loop] | around.get(node.loop, 0)", "bits[node.loop]", NEST),
    Mutant("a loop output varies in its own loop", SCOPE,
           "mask, targets = found.get(node.loop, 0), node.outputs",
           "mask, targets = found.get(node.loop, 0) | bits[node.loop], node.outputs", NEST),
    Mutant("the condition of a conditional is missing from its scope", "netloop/nest/data_flow.py",
           "return *layer.inputs, layer.conditional.condition", "return layer.inputs", NEST),
    Mutant("trip limits are dead", LIVE,
           "stack.extend(layer.loop.boundary(ITripLimitLayer))", "stack.extend([])", NEST),
    Mutant("a step that both branches need is placed in one of them", TREE,
           "functools.reduce(self.nesting.common, found)", "found[0]", NEST),
    Mutant("a result of a region that a branch reads too is placed in the branch", TREE,
           "[None] if step in region.roots else []", "[]", NEST),
    Mutant("a step may be ordered before the steps that it reads", TREE,
           "region.before.setdefault(reader, {})[maker] = None", "region.before.setdefault(reader, {})", NEST),

    # ------------------------------------------------------------------ types
    Mutant("an edit does not invalidate the types of dependent tensors", INFER,
           "stack.extend(each for layer, _ in tensor.uses for each in layer.dependent_tensors())", "pass",
           "tests/graph"),
    Mutant("random numbers are folded into constants", INFER,
           'small and known and getattr(layer, "is_foldable", False)', "small and known",
           "tests/graph tests/layers/test_sources.py"),

    # ------------------------------------------------------------------ lowering
    Mutant("a scan passes rows to reverse iterators in forward order", ITERATORS,
           "return jnp.flip(rows, 0) if layer.reverse else rows", "return rows", LOOPS),
    Mutant("a reverse scan starts at the end of the axis in place of the COUNT", ITERATORS,
           "jnp.moveaxis(array, layer.axis, 0)[:trips]", "jnp.moveaxis(array, layer.axis, 0)[-trips:]",
           LOOPS),
    Mutant("a while loop writes its rows one position too late", WHILE_LOOP,
           "write_rows(carry.buffers, rows, carry.trip)", "write_rows(carry.buffers, rows, carry.trip + 1)", LOOPS),
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
           "states = [first_error(0, inside.error_flag([each])) for each in self.step.next_states]",
           "states = [first_error(0) for _ in self.step.next_states]", FAILURES),
    Mutant("an iterator past the end of its axis sets no error flag", ITERATORS,
           "(position < 0) | (position >= length)", "position < 0", LOOPS),
    Mutant("an engine takes the other branch of a conditional", LOWER_IF,
           "_take(lowering, step, frame, 0 if known else 1)", "_take(lowering, step, frame, 1 if known else 0)", IFS),
    Mutant("the error flag of the condition of a conditional is lost", LOWER_IF,
           "frame.poison([tensor], first_error(decided, flag))", "frame.poison([tensor], flag)",
           FAILURES),
    Mutant("an assertion in a branch is lost", LOWER_IF,
           "first_error(frame.status, decided, status)", "first_error(frame.status, decided)",
           "tests/layers/test_assertion.py tests/layers/test_conditional.py"),
    Mutant("of two failures the last is reported", FLAGS,
           "found = jnp.where(found == 0, flag, found)", "found = jnp.where(flag == 0, found, flag)", FAILURES),
    Mutant("an iterator over an axis that is one too short is not checked", FACTS,
           "count <= self._types[iterator.tensor(0)].shape[iterator.axis]",
           "count <= self._types[iterator.tensor(0)].shape[iterator.axis] + 1", LOOPS),
    Mutant("random numbers of all iterations are the same", PROGRAM,
           'named["seed"] = (layer.index, *(frame.trips[loop] for loop in loops))', 'named["seed"] = (layer.index,)',
           "tests/layers/test_sources.py tests/layers/test_loop.py"),
    Mutant("a reverse iterator of host execution starts one element too late", HOST,
           "max(0, int(count)) - 1 - trip", "max(0, int(count)) - trip", "tests/host"),
    Mutant("pieces of host execution do not get the COUNT of a reverse iterator", STEPS,
           "for each in (*layer.inputs, trips) if", "for each in layer.inputs if", "tests/host"),

    # ------------------------------------------------------------------ passes
    Mutant("two states with the same initial value are taken for equal", STATES,
           "while len(set(self.groups.values())) > before:", "while False:", PASSES),
    Mutant("iterators in both directions become one", STATES,
           "(each.tensor(0), each.axis, each.reverse) for", "(each.tensor(0), each.axis) for", PASSES),
    Mutant("the random numbers of two layers are taken for equal", STATES,
           "if isinstance(layer, Operation) and layer.is_foldable:", "if isinstance(layer, Operation):", PASSES),
    Mutant("a constant state is moved out of a loop that draws random numbers", STATES,
           "for step in loops if _may_move_out(step) for each in", "for step in loops for each in",
           PASSES),
    Mutant("a constant state is moved out of a loop that has an assertion", STATES,
           "else not isinstance(each, IAssertionLayer) for", "else True for", PASSES),
    Mutant("a matrix that may be missing is joined with others", SHARING,
           "is not MatrixOperation.VECTOR and rewriter.always_exists(wide)", "is not MatrixOperation.VECTOR", PASSES),
    Mutant("an iterator that replaces a gather may pass the end of the axis", INDEXING,
           "if first < 0 or first + elements > data", "if first < 0 or first + elements - 1 > data", PASSES),
    Mutant("rows that are written from the last one on are stacked", INDEXING,
           "_first(step, operand(layer, 1)) == 0", "_first(step, operand(layer, 1)) is not None", PASSES),
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
           "isinstance(layer, ILoopOutputLayer)\n\n    def _can", PASSES),
    Mutant("a sum of a transposed state is along the wrong axis", AXES,
           "if layer.axes & both not in (0, both) else", "if layer.axes & both == 0 else", PASSES),
    Mutant("the result of a sum that keeps its axes is read with them swapped", AXES,
           "if isinstance(layer, COMBINING) and not", "if False and not", PASSES),
    Mutant("a matrix product ignores that a state is transposed", AXES,
           "[FLIPPED[op] if each in self.members else op for", "[op for", PASSES),
    Mutant("an einsum ignores that a state is transposed", AXES,
           "own[:-2] + own[:-3:-1] if tensor in", "own if tensor in", PASSES),
    Mutant("products with a matrix and with its transpose become one", SHARING,
           "return layer.op0, layer.op1, tuple(shape)", "return tuple(shape)", PASSES),
    Mutant("sums over some parts of a pack become one", SHARING,
           "kind is not None and len(layers) == len(pack.parts)", "kind is not None", PASSES),
    Mutant("a gather of columns of a table is folded like one of rows", TABLES,
           "gather.axis in (0, -2)", "gather.axis in (0, 1, -2)", PASSES),
    Mutant("a matrix that multiplies a state is prepacked for many rows", LAYOUT,
           "if rows in varying else 0", "if rows not in varying else 0", PASSES),
    Mutant("a product that runs after the iterations has its weights on the left", LAYOUT,
           "size >= MIN_ELEMENTS_LEFT and step in repeated", "size >= MIN_ELEMENTS_LEFT", PASSES),
    Mutant("a slice of an input that an iterator reads is taken for a state", LAYOUT,
           "or by_state.isdisjoint(step.reads)", "or (by_state | outside).isdisjoint(step.reads)", PASSES),
    Mutant("the parts of a product of several rows are put together row by row", PARTS,
           "make.reshape(make.transpose(product, [1, 0, 2]), [count, width])", "make.reshape(product, [count, width])",
           PASSES),
    Mutant("a product that no state needs is computed in parts", PARTS,
           "step.body.needed(following)", "step.body.steps", PASSES),
    Mutant("a token before the beginning of the cache is written into it", CACHE,
           "(number >= 0) & (number < tokens)", "number < tokens", "tests/layers/test_cache.py"),
    Mutant("tokens that begin before the cache are written from the first one on", CACHE,
           "update.at[:, number]", "update.at[:, number - number[0]]", "tests/layers/test_cache.py"),
    Mutant("a sigmoid that is also added is computed through tanh", FORMS,
           "return bool(readers) and all(", "return bool(readers) and any(", PASSES),
    Mutant("gates with a gap between them are taken for adjacent", FORMS,
           "section.begin != runs[-1][-1].end:", "section.begin < runs[-1][-1].end:", PASSES),

    # ------------------------------------------------------------------ numbers
    Mutant("the compiler may replace a divisor that vmap shares by its reciprocal", POINTWISE,
           "of_each = xp.where(xp.isnan(a), b, b)",
           "of_each = xp.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape))",
           "tests/layers/test_pointwise.py -k quotient_of_floats"),

    Mutant("the conversion of uint64 to floating point rounds twice", CONVERSION,
           "(x >> np.uint64(1) | x & np.uint64(1))", "(x >> np.uint64(1))", "tests/execution/test_element_types.py"),
    Mutant("unsigned integers are converted like signed ones", CONVERSION,
           "    if x.dtype == U32:", "    if False:", "tests/execution/test_element_types.py"),
    Mutant("the compiler does not round numbers to powers of two for E8M0", CONVERSION,
           "if dtype == E8M0 != x.dtype:", "if False:", "tests/execution/test_element_types.py"),
    Mutant("small float8 constants are compile-time constants", TYPES,
           "return self.value is not None and not jnp.issubdtype(self.dtype, jnp.floating)",
           "return self.value is not None and not self.is_float", "tests/execution/test_element_types.py"),

    # ------------------------------------------------------------------ loop fission and load time
    Mutant("the iterations after the last chunk read the first rows", SCAN,
           "lambda each: each[whole:], given", "lambda each: each[: self._trips - whole], given", PASSES),
    Mutant("a state that the epilogue reads is not stacked", FISSION,
           "{*_writes(core), *loop.states, *(", "{*_writes(core), *(", SPLIT),
    Mutant("results of the prologue that the epilogue reads are not stacked", FISSION,
           "if each not in moved)}", "if each in _writes(body) and each not in moved)}", SPLIT),
    Mutant("layers move to the epilogue although one of them must stay in the body", FISSION,
           "return layers if len(layers) == len(found) else []", "return layers", SPLIT),
    Mutant("a layer with a much larger output is folded at load time", LOAD,
           "if ready and _bytes(step.writes, types) <= MOST_GROWTH * _bytes(step.reads, types):", "if ready:",
           LOADED),
    Mutant("an output that depends on weights only is lost", LOAD,
           "in dict.fromkeys([*late, *outputs]) if", "in dict.fromkeys(late) if", LOADED),
    Mutant("if-conversion selects the other branch", LOWER_IF,
           "jnp.where(condition, one, other)", "jnp.where(condition, other, one)", IFS),

    # ------------------------------------------------------------------ calls
    Mutant("a program is reused for inputs of another element type", PROGRAMS,
           "return value.shape, value.dtype, getattr(", "return value.shape, getattr(", CALLS),
    Mutant("a call donates the memory of the preceding input", READY,
           "enumerate(inputs, 1)", "enumerate(inputs)", CALLS),

    # ------------------------------------------------------------------ rules
    Mutant("a second limit of the same kind is no finding", RULES,
           "for second in limits[1:]:", "for second in limits[2:]:", CHECK),
    Mutant("a state may change its element type", RULES,
           "if first.dtype != second.dtype:", "if False:", CHECK),
    Mutant("a reverse iterator needs no COUNT", RULES,
           "if layer.reverse and layer.loop.limit(TripLimit.COUNT) is None:", "if False:", CHECK),
    Mutant("loops around loops that enclose each other are reported too", RULES,
           "        reported |= {first, second}\n", "", CHECK),
    Mutant("a stacked output may be one row too short for TensorRT", PORTABILITY,
           "0 <= length < count:", "0 <= length < count - 1:", CHECK),
    Mutant("a WHILE may read an iterator through another layer", PORTABILITY,
           "        stack += fresh\n", "", CHECK),
    Mutant("a tensor inside a conditional may leave it through a loop", PORTABILITY,
           "        return layer.loop.boundary(ILoopOutputLayer)\n", "        return []\n", CHECK),
]
# fmt: on


def caught_by(mutant: Mutant) -> str:
    """The first test that fails with a fault; empty if none does."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        tree = Path(name)
        for each in ("netloop", "tests", "docs", "samples"):
            shutil.copytree(ROOT / each, tree / each, ignore=shutil.ignore_patterns("__pycache__"))
        for page in [*ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
            shutil.copy(page, tree)
        file = tree / mutant.file
        text = file.read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.file} has {text.count(mutant.old)} of {mutant.old!r}"
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, *mutant.tests.split()],
                cwd=tree,
                env={"PYTHONPATH": name, "PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu"},
                capture_output=True,
                text=True,
                timeout=MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return "time"
    failed = re.search(r"^(?:FAILED|ERROR) tests/([\w/.]+)(?:::(\w+))?", done.stdout, re.MULTILINE)
    assert failed or done.returncode == 0, done.stdout + done.stderr
    return f"`{failed[2] or 'import'}` in `tests/{failed[1]}`" if failed else ""


def recorded() -> dict[tuple[str, str], str]:
    """The test that the page names for each fault and its file."""
    rows = re.findall(r"^\| (.+) \| `(.+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {(fault, file): test for fault, file, test in rows}


def page(tests: dict[tuple[str, str], str]) -> str:
    head = """\
# Faults, and the tests that catch them

Each row of this table is a one-line fault that was planted in a copy of the tree, and the first test that failed.
`python -m tests.mutants` writes the table; with words as arguments, it updates the rows with all of these words.

| fault | in | caught by |
|---|---|---|
"""
    rows = (
        f"| {each.fault} | `{each.file}` | {tests.get((each.fault, each.file), 'not yet run')} |" for each in MUTANTS
    )
    return head + "\n".join(rows) + "\n"


def main() -> int:
    chosen = [each for each in MUTANTS if all(word in each.fault for word in sys.argv[1:])]
    tests, survived = recorded(), 0
    with ThreadPoolExecutor(JOBS) as pool:
        for mutant, test in zip(chosen, pool.map(caught_by, chosen), strict=True):
            print(f"{mutant.fault}: {test or 'SURVIVED'}", flush=True)
            tests[mutant.fault, mutant.file] = test or "**nothing**"
            survived += test in ("", "time")
    PAGE.write_text(page(tests), encoding="utf-8")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
