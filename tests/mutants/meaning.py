"""Faults in what a network means: semantics of layers, the reference, nesting and types."""

from tests.mutants.mutant import Mutant

IF = "netloop/model/layers/conditional.py"
IFS = "tests/model/layers/test_conditional.py"
INFER = "netloop/model/graph/infer.py"
INTERPRETER = "tests/model/reference/test_interpreter.py"
LIVE = "netloop/model/nest/live.py"
LOOP = "netloop/model/layers/loop.py"
LOOPS = "tests/model/layers/test_loop.py"
NEST = "tests/model/nest"
REFERENCE = "netloop/model/reference/interpreter.py"
SCOPE = "netloop/model/nest/scope_equations.py"
TREE = "netloop/model/nest/tree.py"
TYPES = "netloop/values/types.py"

# fmt: off
FAULTS = [
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
           "tests/model/layers/test_assertion.py tests/model/layers/test_conditional.py "
           "tests/model/layers/test_loop.py"),
    Mutant("assertions are not checked in the last iteration", REFERENCE,
           "for trip in range(trips):", "for trip in range(trips - 1):",
           "tests/model/layers/test_assertion.py tests/model/layers/test_loop.py tests/support/test_networks.py"),

    # ------------------------------------------------------------------ nesting
    Mutant("a loop encloses itself", SCOPE,
           "union(scopes, inputs) & ~bits[node]", "union(scopes, inputs)", NEST),
    Mutant("the loops around a loop are missing from the scope of what varies in it", SCOPE,
           "bits[node.loop] | around.get(node.loop, 0)", "bits[node.loop]", NEST),
    Mutant("a loop output varies in its own loop", SCOPE,
           "mask, targets = scopes.get(node.loop, 0), node.outputs",
           "mask, targets = scopes.get(node.loop, 0) | bits[node.loop], node.outputs", NEST),
    Mutant("the condition of a conditional is missing from its scope", "netloop/model/nest/data_flow.py",
           "return *layer.inputs, layer.conditional.condition", "return layer.inputs", NEST),
    Mutant("trip limits are dead", LIVE,
           "stack.extend(layer.loop.boundary(ITripLimitLayer))", "stack.extend([])", NEST),
    Mutant("a step that both branches need is placed in one of them", TREE,
           "functools.reduce(self.nesting.common, branches)", "branches[0]", NEST),
    Mutant("a result of a region that a branch reads too is placed in the branch", TREE,
           "[None] if step in region.roots else []", "[]", NEST),
    Mutant("a step may be ordered before the steps that it reads", TREE,
           "region.before.setdefault(reader, {})[maker] = None", "region.before.setdefault(reader, {})", NEST),

    # ------------------------------------------------------------------ types
    Mutant("an edit does not invalidate the types of dependent tensors", INFER,
           "stack.extend(other for layer, _ in tensor.uses for other in layer.dependent_tensors())", "pass",
           "tests/model/graph"),
    Mutant("random numbers are folded into constants", INFER,
           'small and getattr(layer, "is_foldable", False)', "small",
           "tests/model/graph tests/model/layers/test_sources.py",
           "none: engine and reference read the same folded numbers"),
]
# fmt: on
