"""Products with packed weights in machine code of netloop's own, which compiled programs call.

XLA's CPU product packs its right operand anew each time, which a loop does in each iteration. Here the weights are
packed once, into panels [length, width] whose rows are two vectors of the processor, so that a product reads
them from front to back. A micro-kernel multiplies a few rows by one panel with all sums in registers.

- ``code``: functions of LLVM IR while they are written.
- ``micro_kernel``: the micro-kernel.
- ``ffi``: what XLA gives to the functions that it calls.
- ``product_code``: the product, its tasks and the threads that share them.
- ``machine_code``: the same as machine code of this processor.
- ``packed_product``: the product as a function of JAX.

It needs the extra ``native`` (llvmlite), Linux, and an x86-64 processor with AVX2 and FMA or AVX-512. The modules that
import llvmlite are imported when the first product is compiled, and never with netloop.
"""

from netloop.native.packed_product import packed_product, panel_width

__all__ = ["packed_product", "panel_width"]
