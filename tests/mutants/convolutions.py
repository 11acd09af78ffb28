"""Faults in the passes for convolutions."""

from tests.mutants.mutant import Mutant

BFLOAT16 = "netloop/compiler/passes/bfloat16_products.py"
INTEGERS = "netloop/compiler/passes/integers_as_floats.py"
LAYERS = "netloop/compiler/passes/channels_last_layers.py"
LAYOUT = "netloop/compiler/passes/channels_last.py"
LOADING = "netloop/compiler/lower/weight_folding.py"
OUTPUTS = "netloop/compiler/passes/rewriter.py"
WINOGRAD = "netloop/compiler/passes/winograd.py"

ORDERS = "tests/compiler/passes/test_channels_last.py"
TILES = "tests/compiler/passes/test_winograd.py"
SUMS = "tests/compiler/passes/test_integers_as_floats.py"
SCALED = "tests/compiler/passes/test_bfloat16_products.py"

NONE_GROWN = "none: random networks have few convolutions, and none of this kind"

# fmt: off
FAULTS = [
    Mutant("an output that a pass moves is not kept by pieces on the host", OUTPUTS,
           "self.network.mark_output(new)", "outputs.append(new)", ORDERS),
    Mutant("a window is padded after the input as if none were left out", LAYOUT,
           "place.after if length == UNKNOWN else (place.length - 1)", "place.after if True else (place.length - 1)",
           ORDERS,
           NONE_GROWN),
    Mutant("a deconvolution with the stride 1 keeps the order of its kernel", LAYOUT,
           "[size - 1 for size in sizes], sizes, [-1] * len(sizes), window)",
           "[0 for size in sizes], sizes, [1] * len(sizes), window)",
           ORDERS, NONE_GROWN),
    Mutant("the axis of a concatenation stays when the channels become last", LAYOUT,
           "layer.axis = _moved(layer.axis, rank)", "pass", ORDERS, NONE_GROWN),
    Mutant("the axes of a reduction stay when the channels become last", LAYOUT,
           "layer.axes = bitmask(*(_moved(axis, rank) for axis in axes_of(layer.axes, rank)))", "pass", ORDERS,
           NONE_GROWN),
    Mutant("the scales of a resize stay when the channels become last", LAYOUT,
           "_reordered(layer.shape), _reordered(layer.scales)", "_reordered(layer.shape), layer.scales", ORDERS,
           NONE_GROWN),
    Mutant("the axes of a slice stay when the channels become last", LAYOUT,
           "layer.axes = tuple(_moved(axis, rank) for axis in layer.axes)", "pass", ORDERS, NONE_GROWN),
    Mutant("maps of one channel read the channels in turns", LAYERS,
           "x if copies == 1 else xp.repeat(x, copies, -1)", "xp.concatenate([x] * copies, -1)", ORDERS, NONE_GROWN),
    Mutant("a sum over a window ignores its dilation", LAYERS,
           "starts = [f * spread for f, spread in zip(tap, self.dilation_nd, strict=True)]\n            yield",
           "starts = list(tap)\n            yield", ORDERS, NONE_GROWN),
    Mutant("the rows of a phase of a deconvolution begin at the first element", LAYERS,
           "at = [f * spread - before - own for", "at = [f * spread - own for", ORDERS, NONE_GROWN),
    Mutant("the phases of a deconvolution are put together in the order of the axes", LAYERS,
           "(count + 1 + own, own)), 2 * count + 1]", "(own, count + 1 + own)), 2 * count + 1]", ORDERS, NONE_GROWN),
    Mutant("a maximum of a window forgets NaN", LAYERS,
           "(b > a) | (b != b)", "b > a", ORDERS, NONE_GROWN),
    Mutant("a convolution of three axes ignores the stride of the first", LAYERS,
           "[self.stride_nd[0], 1, 1])", "[1, 1, 1])", ORDERS, NONE_GROWN),
    Mutant("the transforms of a kernel and of its tiles differ in the order of axes", WINOGRAD,
           "for j in range(4) for i in range(4)]", "for i in range(4) for j in range(4)]", TILES, NONE_GROWN),
    Mutant("a kernel is transformed in half precision", WINOGRAD,
           "_spread(kernel.astype(np.float64))", "_spread(kernel.astype(np.float16))", TILES, NONE_GROWN),
    Mutant("a convolution of half precision is one of tiles", WINOGRAD,
           "if x.dtype != np.float32 or", "if", TILES, NONE_GROWN),
    Mutant("a dilated convolution is one of tiles", WINOGRAD,
           "{*layer.stride_nd, *layer.dilation_nd}", "{*layer.stride_nd}", TILES, NONE_GROWN),
    Mutant("the last row of an odd number is cut off before it is computed", WINOGRAD,
           "down, along = -(-height // 2), -(-width // 2)", "down, along = max(height // 2, 1), -(-width // 2)", TILES,
           NONE_GROWN),
    Mutant("NaN is quantized to the smallest number", INTEGERS,
           "if self.of_nan != self.low:", "if False:", SUMS, NONE_GROWN),
    Mutant("a zero point is taken off twice", INTEGERS,
           "whole = whole._replace(unlimited=operand(added, 0), offset=offset)",
           "whole = whole._replace(unlimited=x, offset=offset)", SUMS, NONE_GROWN),
    Mutant("a product of integers may have sums of any size in float32", INTEGERS,
           "if most > MOST:", "if not both:", SUMS, NONE_GROWN),
    Mutant("a number that is not rounded is taken for an integer", INTEGERS,
           "-MOST <= low <= high <= MOST and _is_whole(source)", "-MOST <= low <= high <= MOST", SUMS, NONE_GROWN),
    Mutant("a conversion to a small type that wraps is left out", INTEGERS,
           "output.type.is_integer and own.fits(output.type.dtype)", "output.type.is_integer", SUMS, NONE_GROWN),
    Mutant("the bias of a quantized convolution is forgotten", INTEGERS,
           "np.int32), [*layer.inputs, None][2]", "np.int32), None", SUMS, NONE_GROWN),
    Mutant("numbers that bfloat16 has not are multiplied as bfloat16", BFLOAT16,
           "max(-limited.low, limited.high) > MOST or", "", SCALED, NONE_GROWN),
    Mutant("the scale of the kernel is forgotten", BFLOAT16,
           "make.mul(make.reshape(product.x.scale, [1]), make.reshape(of_kernel, [-1]))",
           "make.mul(make.reshape(product.x.scale, [1]), np.ones(maps, np.float32))", SCALED, NONE_GROWN),
    Mutant("a padded convolution is a product", BFLOAT16,
           "not is_plain or any(map(any, layer.padding))", "not is_plain", SCALED, NONE_GROWN),
    Mutant("what depends on a step that numpy does not compute is computed by numpy", LOADING,
           "or not late.isdisjoint(step.reads):", "or False:",
           "tests/compiler/lower/test_weight_folding.py", NONE_GROWN),
]
# fmt: on
