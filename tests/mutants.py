"""Faults of one line, and the tests that catch them: ``python -m tests.mutants`` writes the table of ``mutants.md``.

Each fault is made in a copy of the tree, and the tests named with it are run there. One that no test catches shows a
hole. Neither pytest nor CI runs this: it takes half an hour. Words choose the faults that have all of them.
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

LOOP, SCOPE, TREE = "netloop/layers/loop.py", "netloop/nest/scope.py", "netloop/nest/tree.py"
IF, LIVE, INFER = "netloop/layers/conditional.py", "netloop/nest/live.py", "netloop/graph/infer.py"
LOWER, LOWER_IF, PROGRAM = (
    "netloop/lower/loop/while_loop.py",
    "netloop/lower/conditional.py",
    "netloop/lower/program.py",
)
FRAME, REFERENCE, HOST = "netloop/lower/frame.py", "netloop/reference/interpreter.py", "netloop/host/program.py"
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
CALLS = "tests/api/test_calls.py"
CHECK = "tests/check/test_loops.py tests/check/test_portability.py"


class Mutant(NamedTuple):
    """A fault: what it is, the file, the text that is there once, what replaces it, and the tests that are to fail."""

    fault: str
    file: str
    old: str
    new: str
    tests: str


# fmt: off
MUTANTS = [
    # ------------------------------------------------------------------ what layers mean, in the reference
    Mutant("a negative COUNT has no floor in the reference", LOOP,
           "return max(0, int(value))", "return int(value)", LOOPS),
    Mutant("a loop makes a trip too many for its WHILE", LOOP,
           "        trip = 0\n        while trip", "        trip = 1\n        while trip", LOOPS),
    Mutant("of two limits the WHILE alone counts", LOOP,
           "while trip < most and (yield", "while (yield", LOOPS),
    Mutant("a recurrence gives the initial value in the second trip too", LOOP,
           "        if trip == 0:\n", "        if trip <= 1:\n", LOOPS),
    Mutant("a recurrence takes its next value from its own trip", LOOP,
           "{**at, self.loop: trip - 1})", "{**at, self.loop: trip})", LOOPS),
    Mutant("a reverse iterator starts one too late", LOOP,
           ".count(at)) - 1 - trip if self.reverse", ".count(at)) - trip if self.reverse", LOOPS),
    Mutant("an iterator wraps around before the first element", LOOP,
           "require(0 <= position < array.shape[axis]", "require(position < array.shape[axis]", LOOPS),
    Mutant("LAST_VALUE is the element of the last trip", LOOP,
           "(yield self.tensor(0), {**at, self.loop: trips})", "(yield self.tensor(0), {**at, self.loop: trips - 1})",
           LOOPS),
    Mutant("a length one too small is let through", LOOP,
           "require(trips <= length, ", "require(trips <= length + 1, ", LOOPS),
    Mutant("REVERSE is CONCATENATE in the reference", LOOP,
           "rows = rows[::-1]", "rows = rows[:]", LOOPS),
    Mutant("zeros come first in what is stacked", LOOP,
           "stacked[: len(rows)] = rows", "stacked[length - len(rows) :] = rows", LOOPS),
    Mutant("what is stacked lies along axis 0 always", LOOP,
           "np.moveaxis(stacked, 0, normal_axis(self.axis, len(shape) + 1))", "stacked", LOOPS),
    Mutant("a conditional takes the other branch in the reference", IF,
           "taken = 0 if (yield condition, at) else 1", "taken = 1 if (yield condition, at) else 0", IFS),
    Mutant("the type of a conditional is that of its first branch", IF,
           "return true if condition.value else false", "return true", IFS),
    Mutant("lengths in which branches differ are those of the first", TYPES,
           "tuple(x if x == y else UNKNOWN for x, y", "tuple(x for x, y", IFS),

    # ------------------------------------------------------------------ the reference
    Mutant("an element is remembered without its trips", REFERENCE,
           "self._known[self._key(output, at)] = array", "self._known[(output, ())] = array", INTERPRETER),
    Mutant("assertions are checked in the branch not taken", REFERENCE,
           "taken = 0 if (yield step.condition, at) else 1", "taken = 1 if (yield step.condition, at) else 0",
           "tests/layers/test_assertion.py tests/layers/test_conditional.py tests/layers/test_loop.py"),
    Mutant("assertions are not checked in the last trip", REFERENCE,
           "for trip in range(trips):", "for trip in range(trips - 1):",
           "tests/layers/test_assertion.py tests/layers/test_loop.py tests/support/test_networks.py"),

    # ------------------------------------------------------------------ nesting
    Mutant("a loop is around itself", SCOPE,
           "(before | self._union(layer)) & ~self._bits[layer.loop]", "(before | self._union(layer))", NEST),
    Mutant("what is around a loop is not around what varies in it", SCOPE,
           "return self._bits[layer.loop] | self._around[layer.loop]", "return self._bits[layer.loop]", NEST),
    Mutant("a loop output varies in its own loop", SCOPE,
           "            return self._around[layer.loop]\n",
           "            return self._bits[layer.loop] | self._around[layer.loop]\n", NEST),
    Mutant("the condition does not decide where a conditional runs", SCOPE,
           "mask |= self._scopes.get(layer.conditional.condition, 0)", "mask |= 0", NEST),
    Mutant("trip limits are dead", LIVE,
           "stack.extend(layer.loop.boundary(ITripLimitLayer))", "stack.extend([])", NEST),
    Mutant("a step that two branches need goes into one of them", TREE,
           "found = path if found is None else _common(found, path)", "found = path if found is None else found",
           NEST),
    Mutant("what both leave and use a region goes into a branch", TREE,
           "() if step in region.roots else pinned.get(step)", "pinned.get(step)", NEST),
    Mutant("a step may come before what it reads", TREE,
           "region.before.setdefault(reader, {})[maker] = None", "region.before.setdefault(reader, {})", NEST),

    # ------------------------------------------------------------------ types
    Mutant("an edit leaves the types of what depends on it", INFER,
           "stack.extend(each for layer, _ in tensor.uses for each in layer.dependent_tensors())", "pass",
           "tests/graph"),
    Mutant("random numbers are folded into a constant", INFER,
           'small and known and getattr(layer, "is_foldable", False)', "small and known",
           "tests/graph tests/layers/test_sources.py"),

    # ------------------------------------------------------------------ lowering
    Mutant("a scan gives the trips to iterators in order, whatever the way", SCAN,
           "return jnp.flip(rows, 0) if layer.reverse else rows", "return rows", LOOPS),
    Mutant("a reverse scan starts at the end of the axis", SCAN,
           "jnp.moveaxis(array, layer.axis, 0)[: self.trips]", "jnp.moveaxis(array, layer.axis, 0)[-self.trips :]",
           LOOPS),
    Mutant("a while loop writes its rows one too late", LOWER,
           "_write(buffer, row, trip) for buffer", "_write(buffer, row, trip + 1) for buffer", LOOPS),
    Mutant("an engine rolls the zeros of REVERSE to the front", LOWER,
           "jnp.roll(rows, trips - length, 0)", "rows", LOOPS),
    Mutant("an engine pads E8M0 with NaN", LOWER,
           "return np.zeros((), dtype)", "return jnp.zeros((), dtype)", LOOPS),
    Mutant("a loop with a WHILE that knows its COUNT is a scan", LOWER,
           "    if step.loop.limit(TripLimit.WHILE) is not None:\n        return LoopStrategy",
           "    if step.loop.limit(TripLimit.WHILE) is not None and program.count(step.loop) is None:\n"
           "        return LoopStrategy", LOOPS),
    Mutant("a COUNT known only in the call is one too large", LOWER,
           "within = trip < jnp.asarray(", "within = trip <= jnp.asarray(", LOOPS),
    Mutant("the fault of a state is forgotten in the next trip", LOWER,
           "states = [first(0, inside.fault([each])) for each in self.next]", "states = [first(0) for _ in self.next]",
           FAILURES),
    Mutant("what is past the end of an axis is no fault", LOWER,
           "(position < 0) | (position >= length)", "position < 0", LOOPS),
    Mutant("an engine takes the other branch", LOWER_IF,
           "_take(program, step, frame, 0 if known else 1)", "_take(program, step, frame, 1 if known else 0)", IFS),
    Mutant("a fault in the condition of a conditional is lost", LOWER_IF,
           "frame.poison([tensor], first(decided, fault))", "frame.poison([tensor], fault)",
           FAILURES),
    Mutant("an assertion in a branch is lost", LOWER_IF,
           "frame.status = first(frame.status, decided, status)", "frame.status = first(frame.status, decided)",
           "tests/layers/test_assertion.py tests/layers/test_conditional.py"),
    Mutant("of two faults the last is told", FRAME,
           "found = jnp.where(found == 0, fault, found)", "found = jnp.where(fault == 0, found, fault)", FAILURES),
    Mutant("an iterator is thought to stay inside of an axis too short", PROGRAM,
           "count <= self.types[iterator.tensor(0)].shape[iterator.axis]",
           "count <= self.types[iterator.tensor(0)].shape[iterator.axis] + 1", LOOPS),
    Mutant("random numbers of all trips are the same", PROGRAM,
           'named["seed"] = (layer.index, *(frame.trips[loop] for loop in loops))', 'named["seed"] = (layer.index,)',
           "tests/layers/test_sources.py tests/layers/test_loop.py"),
    Mutant("a reverse iterator of the host starts one too late", HOST,
           "max(0, int(count)) - 1 - trip", "max(0, int(count)) - trip", "tests/lower"),
    Mutant("pieces of the host are not given what a reverse iterator counts from", TREE,
           "for each in (*layer.inputs, trips) if", "for each in layer.inputs if", "tests/lower"),

    # ------------------------------------------------------------------ passes
    Mutant("a state that begins like another is equal to it", STATES,
           "while len(set(self.groups.values())) > before:", "while False:", PASSES),
    Mutant("iterators of both ways are one", STATES,
           "(layer.tensor(0), layer.axis, layer.reverse), layer", "(layer.tensor(0), layer.axis), layer", PASSES),
    Mutant("random numbers of two layers are equal", STATES,
           "if isinstance(layer, Operation) and layer.is_foldable:", "if isinstance(layer, Operation):", PASSES),
    Mutant("a state that stays is not carried beside random numbers", STATES,
           "for layer in step.recurrences if _may_be_left(step) else ():", "for layer in step.recurrences:",
           PASSES),
    Mutant("a state that stays is not carried beside an assertion", STATES,
           "return not isinstance(layer, IAssertionLayer)", "return True", PASSES),
    Mutant("a matrix that may be missing is put beside others", SHARING,
           "is not MatrixOperation.VECTOR and draft.is_sure(wide)", "is not MatrixOperation.VECTOR", PASSES),
    Mutant("an iterator in place of a gather may end past the axis", INDEXING,
           "if first < 0 or first + elements > data", "if first < 0 or first + elements - 1 > data", PASSES),
    Mutant("rows that are written from the last on are stacked", INDEXING,
           "_first(step, operand(layer, 1)) == 0", "_first(step, operand(layer, 1)) is not None", PASSES),
    Mutant("rows of which some are not written are stacked", INDEXING,
           "trips == rows.type.shape[0] > 0", "trips > 0", PASSES),
    Mutant("a sum along any axis is a product of matrices", CONTRACTION,
           "and layer.axes == 1 << (x.type.rank - 1) and", "and", PASSES),
    Mutant("an einsum that sums is an element-wise product", CONTRACTION,
           "set().union(*operands) == set(result)", "set().union(*operands) >= set(result)", PASSES),
    Mutant("an einsum of a diagonal is an element-wise product", CONTRACTION,
           "if is_plain and all(len(set(own)) == len(own) for own in operands):", "if is_plain:", PASSES),
    Mutant("a state that is stacked has its axes swapped", AXES,
           "isinstance(layer, ILoopOutputLayer) and layer.kind is LoopOutput.LAST_VALUE\n\n    def _can",
           "isinstance(layer, ILoopOutputLayer)\n\n    def _can", PASSES),
    Mutant("a sum of a state with swapped axes is along the wrong one", AXES,
           "if layer.axes & both not in (0, both) else", "if layer.axes & both == 0 else", PASSES),
    Mutant("what a sum that keeps its axes gives is read with them swapped", AXES,
           "if isinstance(layer, COMBINING) and not", "if False and not", PASSES),
    Mutant("a product reads a state with swapped axes as before", AXES,
           "[FLIPPED[op] if each in self.members else op for", "[op for", PASSES),
    Mutant("an einsum reads a state with swapped axes as before", AXES,
           "own[:-2] + own[:-3:-1] if tensor in", "own if tensor in", PASSES),
    Mutant("products of a matrix and of its transpose are one", SHARING,
           "return layer.op0, layer.op1, tuple(shape)", "return tuple(shape)", PASSES),
    Mutant("sums over some parts of a pack are one", SHARING,
           "kind is not None and len(layers) == len(pack.parts)", "kind is not None", PASSES),
    Mutant("columns of a table are taken for its rows", TABLES,
           "gather.axis in (0, -2)", "gather.axis in (0, 1, -2)", PASSES),
    Mutant("a matrix that multiplies a state is laid out for many rows", LAYOUT,
           "if rows in by_trip else 0", "if rows not in by_trip else 0", PASSES),
    Mutant("a product that is put off until after the trips has its weights on the left", LAYOUT,
           "size >= SMALLEST_LEFT and step in repeated", "size >= SMALLEST_LEFT", PASSES),
    Mutant("what is read of an input in a loop depends on a state", LAYOUT,
           "or by_state.isdisjoint(step.reads)", "or (by_state | outside).isdisjoint(step.reads)", PASSES),
    Mutant("the parts of a product of several rows lie row by row", PARTS,
           "make.reshape(make.transpose(product, [1, 0, 2]), [count, width])", "make.reshape(product, [count, width])",
           PASSES),
    Mutant("a product that no state needs is formed in parts", PARTS,
           "step.body.needed(following)", "step.body.steps", PASSES),
    Mutant("a token that is before the cache is written into it", CACHE,
           "(number >= 0) & (number < tokens)", "number < tokens", "tests/layers/test_cache.py"),
    Mutant("the tokens of a stretch that begins late are written from the first on", CACHE,
           "update.at[:, number]", "update.at[:, number - number[0]]", "tests/layers/test_cache.py"),
    Mutant("a logistic function that is also added goes through tanh", FORMS,
           "return bool(readers) and all(", "return bool(readers) and any(", PASSES),
    Mutant("gates with a gap between them are side by side", FORMS,
           "if run and part.begin != run[-1].end:", "if run and part.begin < run[-1].end:", PASSES),

    # ------------------------------------------------------------------ numbers
    Mutant("the divisor that vmap shares may be a reciprocal", POINTWISE,
           "of_each = xp.where(xp.isnan(a), b, b)",
           "of_each = xp.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape))",
           "tests/layers/test_pointwise.py -k quotient_of_floats"),

    Mutant("a uint64 is rounded twice on its way to floating-point", CONVERSION,
           "(x >> np.uint64(1) | x & np.uint64(1))", "(x >> np.uint64(1))", "tests/execution/test_element_types.py"),
    Mutant("integers of both signs are converted alike", CONVERSION,
           "    if x.dtype == U32:", "    if False:", "tests/execution/test_element_types.py"),
    Mutant("what is no power of two is one when it is compiled", CONVERSION,
           "if dtype == E8M0 != x.dtype:", "if False:", "tests/execution/test_element_types.py"),
    Mutant("small float8 constants are part of programs", TYPES,
           "return self.value is not None and not jnp.issubdtype(self.dtype, jnp.floating)",
           "return self.value is not None and not self.is_float", "tests/execution/test_element_types.py"),

    # ------------------------------------------------------------------ loops in parts
    Mutant("what is left over after the last chunk is made of the first trips", SCAN,
           "lambda each: each[whole:], given", "lambda each: each[: self.trips - whole], given", PASSES),
    Mutant("a state that is read after the trips is not kept", FISSION,
           "{*_writes(core), *states, *(", "{*_writes(core), *(", SPLIT),
    Mutant("what comes from before a loop is not stacked", FISSION,
           "if each not in moved)}", "if each in _writes(body) and each not in moved)}", SPLIT),
    Mutant("layers run after the trips though one in them has to stay", FISSION,
           "return layers if len(layers) == len(found) else []", "return layers", SPLIT),
    Mutant("what grows without bound is computed early", LOAD,
           "if ready and _bytes(step.writes, types) <= MOST_GROWTH * _bytes(step.reads, types):", "if ready:",
           LOADED),
    Mutant("an output that follows from weights alone is lost", LOAD,
           "in dict.fromkeys([*late, *outputs]) if", "in dict.fromkeys(late) if", LOADED),
    Mutant("of two small branches the other is selected", LOWER_IF,
           "jnp.where(condition, one, other)", "jnp.where(condition, other, one)", IFS),

    # ------------------------------------------------------------------ calls
    Mutant("inputs of another element type pass for those of an earlier call", PROGRAMS,
           "return value.shape, value.dtype, getattr(", "return value.shape, getattr(", CALLS),
    Mutant("a call takes the memory of the input before the one that is donated", READY,
           "enumerate(inputs, 1)", "enumerate(inputs)", CALLS),

    # ------------------------------------------------------------------ rules
    Mutant("a second limit of a kind is no finding", RULES,
           "for second in limits[1:]:", "for second in limits[2:]:", CHECK),
    Mutant("a state may change its element type", RULES,
           "if first.dtype != second.dtype:", "if False:", CHECK),
    Mutant("a reverse iterator needs no COUNT", RULES,
           "if layer.reverse and layer.loop.limit(TripLimit.COUNT) is None:", "if False:", CHECK),
    Mutant("a knot of loops is told once for each loop around", RULES,
           "        told |= {first, second}\n", "", CHECK),
    Mutant("a length may be one too small for TensorRT", PORTABILITY,
           "0 <= length < count:", "0 <= length < count - 1:", CHECK),
    Mutant("a WHILE may read an iterator by way of a layer", PORTABILITY,
           "        stack += fresh\n", "", CHECK),
    Mutant("what is inside a conditional escapes by way of a loop", PORTABILITY,
           "        return layer.loop.boundary(ILoopOutputLayer)\n", "        return []\n", CHECK),
]
# fmt: on


def caught_by(mutant: Mutant) -> str:
    """The test that fails first with a fault; empty if none does."""
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


def catching_tests() -> dict[tuple[str, str], str]:
    """The test named on the page for each fault and its file."""
    rows = re.findall(r"^\| (.+) \| `(.+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {(fault, file): test for fault, file, test in rows}


def page(tests: dict[tuple[str, str], str]) -> str:
    head = """\
# Faults, and the tests that catch them

Each line of this table is a fault of one line, made in a copy of the tree, and the first test that failed.
`python -m tests.mutants` makes the table anew, or the lines whose faults have all words that it is given.

| fault | in | caught by |
|---|---|---|
"""
    rows = (
        f"| {each.fault} | `{each.file}` | {tests.get((each.fault, each.file), 'not yet run')} |" for each in MUTANTS
    )
    return head + "\n".join(rows) + "\n"


def main() -> int:
    chosen = [each for each in MUTANTS if all(word in each.fault for word in sys.argv[1:])]
    tests, survived = catching_tests(), 0
    with ThreadPoolExecutor(JOBS) as pool:
        for mutant, test in zip(chosen, pool.map(caught_by, chosen), strict=True):
            print(f"{mutant.fault}: {test or 'SURVIVED'}", flush=True)
            tests[mutant.fault, mutant.file] = test or "**nothing**"
            survived += test in ("", "time")
    PAGE.write_text(page(tests), encoding="utf-8")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
