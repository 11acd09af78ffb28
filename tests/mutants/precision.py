"""Faults in the precision of products, and in what comparisons allow for it."""

from tests.mutants.mutant import Mutant

DEVICES = "netloop/compiler/product_precision.py"
PROGRAM = "netloop/compiler/lower/program.py"
TOLERANCE = "netloop/api/tolerance.py"

ASKED = "tests/compiler/test_product_precision.py"
ALLOWED = "tests/api/test_tolerance.py"

NO_NUMBER = "none: no CPU rounds the operands of products"

# fmt: off
FAULTS = [
    Mutant("a program does not ask for the precision of its engine", PROGRAM,
           "with with_precision(self.precision):", "with with_precision(None):", ASKED, NO_NUMBER),
    Mutant("weights are folded in the precision of the engine", PROGRAM,
           "with with_precision(HIGHEST):", "with with_precision(self.precision):", ASKED, NO_NUMBER),
    Mutant("integers have the type of an algorithm that JAX is set to", PROGRAM,
           "arrays[0].dtype in INTEGERS or arrays[0].dtype", "arrays[0].dtype", ASKED, NO_NUMBER),
    Mutant("GPUs of every age have TensorFloat-32", DEVICES,
           "float(self.capability) >= FIRST_WITH_TF32", "float(self.capability) >= 0", ASKED, NO_NUMBER),
    Mutant("what follows from products in a loop has the tolerance of float32", TOLERANCE,
           "        stack += following\n", "", ALLOWED, NO_NUMBER),
    Mutant("sums of large products that cancel have the tolerance of small ones", TOLERANCE,
           "size = mean if is_rounded else min(1.0, mean)", "size = min(1.0, mean)", ALLOWED, NO_NUMBER),
]
