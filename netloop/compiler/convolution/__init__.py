"""Convolutions in machine code of netloop's own, which compiled programs call on CPUs.

One call computes a convolution of an input with its channels last, and what follows it element by element. Sums stay in
registers from the first number of a window to the last, and padding is never written.

- ``convolution``: a convolution as data.
- ``division``: the parts in which a kernel computes the output.
- ``tile``: the code of some positions and maps, and ``kernel``, the whole.
- ``convolve``: the same for the processor at hand, as a function of JAX.

``tile`` and ``kernel`` import llvmlite, and are imported when the first kernel is compiled.
"""
