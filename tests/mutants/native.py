"""Faults in machine code of netloop's own, and in the pass that uses it."""

from tests.mutants.mutant import Mutant

CODE = "netloop/native/product_code.py"
FFI = "netloop/native/ffi.py"
FUNCTION = "netloop/native/packed_product.py"
KERNEL = "netloop/native/micro_kernel.py"
PASS = "netloop/passes/native_products.py"
TESTS = "tests/native"
OF_PASS = "tests/passes/test_native_products.py"

EXTRA = "none: their tests have no machine code"

# fmt: off
FAULTS = [
    Mutant("columns that fill up the last panel are stored", KERNEL,
           "to = code.builder.select(is_part, tile, out)", "to = out", TESTS, EXTRA),
    Mutant("a product reads rows of a panel past its length", KERNEL,
           "sums = self._summed(sums, starts, panel, 0, whole, UNROLLED)",
           "sums = self._summed(sums, starts, panel, 0, length, UNROLLED)", TESTS, EXTRA),
    Mutant("all chunks of rows are written to the first", CODE,
           'out = code.add(field["out"], code.multiply(first_row, out_stride))', 'out = field["out"]', TESTS, EXTRA),
    Mutant("a handler takes arrays of any element type", FFI,
           "buffer = self.buffer(place, position)\n            self.require_equal(\n"
           "                code.load_number(buffer, ELEMENT_TYPE), FLOAT32,",
           "buffer = self.buffer(place, position)\n            self.require_equal(\n"
           "                code.number(FLOAT32), FLOAT32,", TESTS, EXTRA),
    Mutant("a vmap over packed weights multiplies all rows by the first", FUNCTION,
           "if batched[1]:", "if False:", OF_PASS, EXTRA),
    Mutant("a transposed matrix is packed as it is", PASS,
           "if product.op1 is MatrixOperation.TRANSPOSE:", "if False:", OF_PASS, EXTRA),
    Mutant("pure functions have packed products", "netloop/execution/to_jax.py",
           "passes = of_pure(of_platform(passes, jax.default_backend()))",
           "passes = of_platform(passes, jax.default_backend())", OF_PASS, EXTRA),
]
