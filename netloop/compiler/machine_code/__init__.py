"""Machine code of netloop's own, which compiled programs call on CPUs.

- ``processor``: the vectors of the processor at hand, and ``compilation``, kernels for it in memory.
- ``code``: functions of LLVM while they are written, and ``vectors``, their functions of vectors.
- ``handler``: the interface of XLA to functions that it calls, and ``jobs``, what the threads of a call share.

It needs the extra ``kernels`` (llvmlite), Linux, and an x86-64 processor with AVX2 and FMA, or AVX-512. All but
``processor`` and ``compilation`` import llvmlite, and are imported when the first kernel is compiled.
"""
