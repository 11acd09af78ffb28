"""Faults in the lowering of single layers."""

from tests.mutants.mutant import Mutant

CONVERSION = "netloop/model/layers/element_conversion.py"
CONVOLUTION = "netloop/model/layers/convolution.py"
EXPERTS = "netloop/model/layers/experts.py"
EXTREMES = "netloop/model/layers/extreme_forms.py"
INDEX = "netloop/model/layers/gather.py"
INDICES = "tests/model/layers/test_gather.py"
LOW_BIT = "netloop/model/layers/low_bit.py"
MATRIX = "netloop/model/layers/matrix.py"
PADDING = "netloop/model/layers/padding.py"
POINTWISE = "netloop/model/layers/pointwise.py"
POOLING = "netloop/model/layers/pooling.py"
QUANTIZATION = "tests/model/layers/test_quantize.py"
QUANTIZE = "netloop/model/layers/quantize.py"
REDUCE = "netloop/model/layers/reduce.py"
TOPK = "netloop/model/layers/topk.py"
REDUCTIONS = "tests/model/layers/test_reduce.py"
RESAMPLE = "netloop/model/layers/resample.py"
RESIZES = "tests/model/layers/test_resample.py"
SEARCH = "netloop/model/layers/selection_forms.py"
SLICE = "netloop/model/layers/slice.py"
SLICES = "tests/model/layers/test_slice.py"
TYPES = "netloop/values/types.py"

SMALL = "none: random networks have arrays of few elements"

OF_GPUS = "none: the forms are for GPUs, and random networks run on a CPU"

# fmt: off
FAULTS = [
    # ------------------------------------------------------------------ numbers
    Mutant("the compiler may replace a divisor that vmap shares by its reciprocal", "netloop/model/layers/lax_forms.py",
           "of_each = lax.select(lax.ne(a, a), b, b)", "of_each = b",
           "tests/model/layers/test_pointwise.py -k quotient_of_floats"),

    Mutant("the conversion of uint64 to floating point rounds twice", CONVERSION,
           "(x >> np.uint64(1) | x & np.uint64(1))", "(x >> np.uint64(1))",
           "tests/compiler/execution/test_element_types.py"),
    Mutant("unsigned integers are converted like signed ones", CONVERSION,
           "    if x.dtype == U32:", "    if False:", "tests/compiler/execution/test_element_types.py"),
    Mutant("the compiler does not round numbers to powers of two for E8M0", CONVERSION,
           "if dtype == E8M0 != x.dtype:", "if False:", "tests/compiler/execution/test_element_types.py"),
    Mutant("small float8 constants are compile-time constants", TYPES,
           "return self.value is not None and not jnp.issubdtype(self.dtype, jnp.floating)",
           "return self.value is not None and not self.is_float", "tests/compiler/execution/test_element_types.py"),

    # ------------------------------------------------------------------ indices and positions
    Mutant("coordinates of ND indices are read from the last one on", "netloop/model/layers/gather_forms.py",
           "for axis in range(positions.shape[-1]))", "for axis in reversed(range(positions.shape[-1])))",
           "tests/model/layers/test_gather.py::test_layer_obeys_the_laws "
           "tests/model/layers/test_gather.py::test_scatter_combines_all_updates_of_a_place"),
    Mutant("an ELEMENT scatter writes along axis 0", INDEX,
           "places[self.axis] = indices", "places[0] = indices",
           "tests/model/layers/test_gather.py::test_layer_obeys_the_laws "
           "tests/model/layers/test_gather.py::test_scatter_combines_all_updates_of_a_place"),
    Mutant("a scatter with a minimum takes the maximum", INDEX,
           "lambda at, new: at.min(new, mode=\"drop\")", "lambda at, new: at.max(new, mode=\"drop\")",
           "tests/model/layers/test_gather.py::test_layer_obeys_the_laws "
           "tests/model/layers/test_gather.py::test_scatter_combines_all_updates_of_a_place"),
    Mutant("a batched gather counts a negative axis without the batch", INDEX,
           "gather_forms.lower_in_batch(data, indices, self.axis % data.ndim - 1)",
           "gather_forms.lower_in_batch(data, indices, self.axis - 1)",
           "tests/model/layers/test_gather.py::test_layer_obeys_the_laws "
           "tests/model/layers/test_gather.py::test_scatter_combines_all_updates_of_a_place"),
    Mutant("a gather reads element 0 for a negative index", INDEX,
           "jnp.take(data, indices, self.axis, mode=\"fill\", fill_value=0)",
           "jnp.take(data, indices, self.axis, mode=\"clip\")",
           "tests/model/layers/test_gather.py::test_layer_obeys_the_laws "
           "tests/model/layers/test_gather.py::test_scatter_combines_all_updates_of_a_place"),
    Mutant("a slice in mode REFLECT repeats the last element", SLICE,
           "abs(places % max(2 * length - 2, 1) - (length - 1))", "abs(places % max(2 * length - 1, 1) - (length - 1))",
           "tests/model/layers/test_slice.py::test_laws "
           "tests/model/layers/test_slice.py::test_slice_within_bounds_is_indexing"),
    Mutant("a slice in mode WRAP reads the nearest element", SLICE,
           "SampleMode.WRAP:          lambda places, length: places % length,",
           "SampleMode.WRAP:          lambda places, length: places,",
           "tests/model/layers/test_slice.py::test_laws "
           "tests/model/layers/test_slice.py::test_slice_within_bounds_is_indexing"),
    Mutant("a slice in mode FILL fills as much before as is missing after", SLICE,
           "lower_joined([filled(before), inner, filled(after)], axis)",
           "lower_joined([filled(after), inner, filled(before)], axis)",
           "tests/model/layers/test_slice.py::test_laws "
           "tests/model/layers/test_slice.py::test_slice_within_bounds_is_indexing"),
    Mutant("a slice from a computed start has stride 1", SLICE,
           "if is_inside and by_one and not _all_ints(starts):", "if is_inside and not _all_ints(starts):",
           "tests/model/layers/test_slice.py::test_laws "
           "tests/model/layers/test_slice.py::test_slice_within_bounds_is_indexing"),

    # ------------------------------------------------------------------ sums, products and windows
    Mutant("an exclusive cumulative sum in reverse is shifted forward", REDUCE,
           "shift = (-1, 1, 0) if self.reverse else (1, -1, 0)", "shift = (1, -1, 0)",
           "tests/model/layers/test_reduce.py::test_cumulative_obeys_the_laws"),
    Mutant("the last of equal numbers is the first by pairs", TOPK, "(is_level & (place < other))",
           "(is_level & (place > other))",
           f"{REDUCTIONS}::test_first_of_rows_by_pairs_is_that_of_the_reference", OF_GPUS),
    Mutant("a number is before NaN by pairs", TOPK, "((x != x) | is_first(x, y))", "is_first(x, y)",
           f"{REDUCTIONS}::test_first_of_rows_by_pairs_is_that_of_the_reference", OF_GPUS),
    Mutant("an exclusive cumulative product begins with 0", REDUCE,
           "nothing = jnp.full((), self._nothing, x.dtype)", "nothing = jnp.full((), 0, x.dtype)",
           "tests/model/layers/test_reduce.py::test_running_products_obey_the_laws"),
    Mutant("the maxima of large arrays on CPUs ignore NaN", EXTREMES,
           "if x.dtype.name not in FOLDED:", "if True:",
           "tests/model/layers/test_extreme_forms.py", SMALL),
    Mutant("the middle of an odd axis is left out of its maximum", EXTREMES,
           "half = (length + 1) // 2", "half = length // 2", "tests/model/layers/test_extreme_forms.py", SMALL),
    Mutant("the blocks of a row are searched in the order of their maxima", SEARCH,
           "jnp.sort(first_places(extremes(cut, [-1], is_max=True), count), -1)",
           "first_places(extremes(cut, [-1], is_max=True), count)",
           "tests/model/layers/test_selection_forms.py", SMALL),
    Mutant("windows that follow each other are padded after the input without regard to what is before it", POOLING,
           "(before, count * block - length - before, 0)", "(before, count * block - length, 0)",
           "tests/model/layers/test_extreme_forms.py", "none: random networks pad no such windows"),
    Mutant("the top element is the last of equal ones", TOPK,
           "extremes(jnp.where(is_best, places, rows.shape[-1]), [-1], is_max=False, keepdims=True)",
           "extremes(jnp.where(is_best, places, 0), [-1], is_max=True, keepdims=True)",
           "tests/model/layers/test_reduce.py::test_topk_obeys_the_laws"),
    Mutant("the smallest unsigned integers are sorted by their negatives", TOPK,
           "return x if self.op is TopKOperation.MAX else ~x", "return x if self.op is TopKOperation.MAX else -x",
           "tests/model/layers/test_reduce.py::test_topk_of_other_integers"),
    Mutant("the operands of an einsum are read in reverse order", MATRIX,
           "jnp.einsum(self.equation, *operands,", "jnp.einsum(self.equation, *operands[::-1],",
           "tests/model/layers/test_matrix.py"),
    Mutant("a convolution of integers is padded before as it is after", CONVOLUTION,
           "around = [(before, after, step - 1) for", "around = [(after, before, step - 1) for",
           "tests/model/layers/test_convolution.py tests/model/layers/test_integers.py"),
    Mutant("an average counts padding although that is excluded", POOLING,
           "before, after = (0, 0) if self.average_count_excludes_padding else place[1:]",
           "before, after = place[1:] if self.average_count_excludes_padding else (0, 0)",
           "tests/model/layers/test_pooling.py"),

    # ------------------------------------------------------------------ resizes, few bits and conversions
    Mutant("HALF_PIXEL is not moved back by half an element", RESAMPLE,
           "return (2 * o + 1) * over - under, 2 * under", "return (2 * o + 1) * over, 2 * under",
           "tests/model/layers/test_resample.py::test_laws_of_resize"),
    Mutant("a resize by FLOOR rounds up", RESAMPLE,
           "ResizeRoundMode.FLOOR:     lambda a, b: a // b,", "ResizeRoundMode.FLOOR:     lambda a, b: -(-a // b),",
           "tests/model/layers/test_resample.py::test_laws_of_resize"),
    Mutant("the outer weights of a cubic resize change places", RESAMPLE,
           "return xp.stack([a * t * u**2, *inner, a * u * t**2])",
           "return xp.stack([a * u * t**2, *inner, a * t * u**2])",
           "tests/model/layers/test_resample.py::test_laws_of_resize"),
    Mutant("ties are rounded up in a quantization to integers", LOW_BIT,
           "return jnp.round(inside).astype(numpy_type(kind))",
           "return jnp.floor(inside + 0.5).astype(numpy_type(kind))",
           QUANTIZATION),
    Mutant("floats of few bits have one bit less", LOW_BIT,
           "jnp.frexp(inside)[1] - 1, lowest", "jnp.frexp(inside)[1], lowest", QUANTIZATION),
    Mutant("the scales of blocks are repeated as a whole", QUANTIZE,
           "scale = jnp.repeat(scale, many // few, axis)", "scale = jnp.concatenate([scale] * (many // few), axis)",
           QUANTIZATION),
    Mutant("a scale that is a power of two is doubled where it fits exactly", QUANTIZE,
           "+ (digits > most_digits)", "+ (digits >= most_digits)", QUANTIZATION),
    Mutant("a negative number becomes a large uint8", CONVERSION,
           "return jnp.maximum(x.astype(jnp.int64), 0).astype(dtype)", "return x.astype(jnp.int64).astype(dtype)",
           "tests/compiler/execution/test_element_types.py tests/model/layers/test_pointwise.py"),
    Mutant("a floor division by a power of 2 shifts by the divisor", POINTWISE,
           "jnp.right_shift(a, shift)", "jnp.right_shift(a, b)",
           "tests/support/test_networks.py"),
]
# fmt: on
