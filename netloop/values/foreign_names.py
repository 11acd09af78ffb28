"""Names of layers in other libraries, such as PyTorch, Keras and ONNX, and what a script writes here."""

_ACTIVATION = "add_activation(input, ActivationType.{})"
_ELEMENTWISE = "add_elementwise(a, b, ElementWiseOperation.{})"
_UNARY = "add_unary(input, UnaryOperation.{})"
_REDUCE = "add_reduce(input, ReduceOperation.{}, 1 << axis, keep_dims)"
_LOOP = "add_loop, with a recurrence for each state"

# fmt: off
FOREIGN_NAMES = {
    **{f"add_{name}": _ACTIVATION.format(member) for name, member in {
        "relu": "RELU", "sigmoid": "SIGMOID", "tanh": "TANH", "leaky_relu": "LEAKY_RELU", "elu": "ELU",
        "selu": "SELU", "softplus": "SOFTPLUS", "gelu": "GELU_ERF", "clip": "CLIP",
    }.items()},
    **{f"add_{name}": _ELEMENTWISE.format(member) for name, member in {
        "add": "SUM", "sub": "SUB", "subtract": "SUB", "mul": "PROD", "multiply": "PROD", "div": "DIV",
        "divide": "DIV", "pow": "POW", "maximum": "MAX", "minimum": "MIN", "equal": "EQUAL", "greater": "GREATER",
        "less": "LESS", "logical_and": "AND", "logical_or": "OR",
    }.items()},
    **{f"add_{name}": _UNARY.format(member) for name, member in {
        "exp": "EXP", "log": "LOG", "sqrt": "SQRT", "neg": "NEG", "abs": "ABS", "sin": "SIN", "cos": "COS",
        "logical_not": "NOT", "floor": "FLOOR", "ceil": "CEIL", "round": "ROUND", "sign": "SIGN", "erf": "ERF",
    }.items()},
    **{f"add_{name}": _REDUCE.format(member) for name, member in {
        "sum": "SUM", "mean": "AVG", "max": "MAX", "min": "MIN", "prod": "PROD",
    }.items()},
    "add_matmul":           "add_matrix_multiply",
    "add_linear":           "add_matrix_multiply, and add_elementwise for the bias",
    "add_dense":            "add_matrix_multiply, and add_elementwise for the bias",
    "add_bias":             _ELEMENTWISE.format("SUM"),
    "add_conv":             "add_convolution_nd",
    "add_conv2d":           "add_convolution_nd",
    "add_max_pool":         "add_pooling_nd(input, PoolingType.MAX, window_size)",
    "add_avg_pool":         "add_pooling_nd(input, PoolingType.AVERAGE, window_size)",
    "add_batch_norm":       "add_scale, with the statistics in shift and scale",
    "add_layer_norm":       "add_normalization",
    "add_group_norm":       "add_normalization",
    "add_reshape":          "add_shuffle, and its reshape_dims",
    "add_flatten":          "add_shuffle, and its reshape_dims",
    "add_view":             "add_shuffle, and its reshape_dims",
    "add_transpose":        "add_shuffle, and its first_transpose",
    "add_permute":          "add_shuffle, and its first_transpose",
    "add_concat":           "add_concatenation",
    "add_stack":            "add_unsqueeze of each tensor, and add_concatenation",
    "add_split":            "add_slice for each part",
    "add_pad":              "add_slice with SampleMode.FILL",
    "add_expand":           "add_slice with strides of 0",
    "add_broadcast":        "add_slice with strides of 0",
    "add_where":            "add_select",
    "add_embedding":        "add_gather(weights, indices, 0)",
    "add_argmax":           "add_topk(input, TopKOperation.MAX, 1, 1 << axis), and its output 1",
    "add_argmin":           "add_topk(input, TopKOperation.MIN, 1, 1 << axis), and its output 1",
    "add_cumsum":           "add_cumulative",
    "add_lstm":             _LOOP,
    "add_gru":              _LOOP,
    "add_rnn_cell":         _LOOP,
    "add_scan":             "add_loop, with an iterator, recurrences and loop outputs",
    "add_while":            "add_loop, with a trip limit TripLimit.WHILE",
    "add_while_loop":       "add_loop, with a trip limit TripLimit.WHILE",
    "add_for_loop":         "add_loop, with a trip limit TripLimit.COUNT",
    "add_if":               "add_if_conditional",
    "add_cond":             "add_if_conditional",
    "add_output":           "mark_output(tensor)",
    "add_variable":         "add_constant",
    "add_parameter":        "add_constant",
}
# fmt: on
"""The call for each name, as a method of a network."""
