"""Faults in what runs on several devices and in several processes."""

from tests.mutants.mutant import Mutant

AXES = "netloop/model/manual_axes.py"
CARRIES = "tests/model/test_manual_axes.py"
CUTS = "netloop/compiler/execution/sharding.py"
ENGINE = "netloop/compiler/execution/sharded_engine.py"
FORKED = "tests/process/test_forked.py"
MESHES = "tests/compiler/execution/test_sharded_engine.py"
PICKLED = "netloop/api/engine.py"
PROGRAM = "netloop/compiler/lower/program.py"
PURE = "tests/compiler/execution/test_to_jax.py"
RANKS = "netloop/compiler/lower/ranks.py"
WEIGHTS = "netloop/compiler/execution/sharded_weights.py"

ONE_DEVICE = "none: random networks run on one device"
ONE_PROCESS = "none: random networks run in one process"
MEMORY = "none: it changes how much memory is used, and no number"

# fmt: off
FAULTS = [
    Mutant("only the first device of a mesh reports its failures", ENGINE,
           "lax.pmax(verdict, sharding.own) if sharding.own else verdict", "verdict", MESHES, ONE_DEVICE),
    Mutant("passes join the cut weights of a mesh", ENGINE,
           'frozenset({"horizontal_fusion", "matmul_partitioning"})', 'frozenset({"matmul_partitioning"})',
           MESHES, ONE_DEVICE),
    Mutant("inputs of a mesh may have different numbers of rows", ENGINE,
           "if len(set(counts.values())) > 1:", "if len(set(counts.values())) > 2:", MESHES, ONE_DEVICE),
    Mutant("an output of a mesh may leave out an axis along which it differs", CUTS,
           "and self.mesh.shape[axis] > 1", "and self.mesh.shape[axis] > 8", MESHES, ONE_DEVICE),
    Mutant("each device of a mesh has the whole of a cut weight", WEIGHTS,
           "sharding.weights.get(constant.index, PartitionSpec())", "PartitionSpec()", MESHES, ONE_DEVICE),
    Mutant("ranks of a mesh may leave a loop apart", RANKS,
           "and name_of_axis(layer) in axes", "and name_of_axis(layer) not in axes", MESHES, ONE_DEVICE),
    Mutant("the devices of a mesh take what all of them gather for different", AXES,
           "\"invarying\" if name in varying_axes(x) else ", "", MESHES, ONE_DEVICE),
    Mutant("states on a mesh keep the axes of their initial values", AXES,
           "    carry = _settled(body, goes_on, carry)", "    carry = _settled(lambda each: each, goes_on, carry)",
           CARRIES, ONE_DEVICE),
    Mutant("states on a mesh do not vary with the condition of their loop", AXES,
           "frozenset() if goes_on is None else varying_axes(jax.eval_shape(goes_on, carry))", "frozenset()",
           CARRIES, ONE_DEVICE),
    Mutant("a pickled engine is loaded in a fork that has lost JAX", PICKLED,
           "LostEngine(data) if FORK.lost_jax else", "LostEngine(data) if False else", FORKED, ONE_PROCESS),
    Mutant("loaded weights of a pure function have what only their folding reads", PROGRAM,
           "[tensor for tensor in tensors if tensor in late]", "[*tensors]", PURE, MEMORY),
]
# fmt: on
