"""Recurrent layers in machine code of netloop's own, which compiled programs call on CPUs.

XLA packs the matrix of a product anew in each iteration of a loop, and writes and reads the gates of a cell. Here the
weights are packed once, at load time; one call makes all iterations, and the gates stay in registers.

- ``cell``: one iteration as data: products, and what is computed element by element.
- ``code``: functions of LLVM while they are written, and ``vectors``, their functions of vectors.
- ``handler``: the interface of XLA to functions that it calls.
- ``job``: what the threads of a call share, ``block``, what each computes at a time, ``scan``, the same for cells
  without products, and ``kernel``, the whole.
- ``machine_code``: the same for the processor at hand, as a function of JAX.

It needs the extra ``kernels`` (llvmlite), Linux, and an x86-64 processor with AVX2 and FMA, or AVX-512. All but
``cell`` and ``machine_code`` import llvmlite, and are imported when the first kernel is compiled.
"""
