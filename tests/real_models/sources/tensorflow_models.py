"""Models of TensorFlow and Keras with random weights, by tf2onnx."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf2onnx

from tests.real_models.recipe import Inputs, Recipes, Sizes

RECIPES = Recipes()
Shape = list[int | None]
layers = tf.keras.layers


def drawn(shape: Any, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def add(name: str, make: Callable[[], Callable[..., Any]], shapes: dict[str, Shape], *sizes: Inputs) -> None:
    """Add the recipe of a function, which is made when it is needed."""

    def write(path: Path) -> Sizes:
        tf.keras.utils.set_random_seed(0)
        first = sizes[0]
        signature = [tf.TensorSpec(shape, first[key].dtype, name=key) for key, shape in shapes.items()]
        tf2onnx.convert.from_function(
            tf.function(make(), input_signature=signature), input_signature=signature, opset=17, output_path=str(path)
        )
        return list(sizes)

    RECIPES.add(f"tf_{name}", "tf2onnx", write)


def stack(*parts: Callable[[], Any], shape: tuple[int | None, ...]) -> Callable[[], Callable[..., Any]]:
    """A sequence of layers."""

    def make() -> Callable[..., Any]:
        model = tf.keras.Sequential([tf.keras.Input(shape), *(part() for part in parts)])
        return lambda x: model(x, training=False)

    return make


def add_sequence(name: str, *parts: Callable[[], Any]) -> None:
    """Add a model of sequences for two batches and lengths."""
    add(name, stack(*parts, shape=(None, 4)), {"x": [None, None, 4]}, {"x": drawn((2, 5, 4))}, {"x": drawn((3, 8, 4))})


def attention() -> Callable[..., Any]:
    model = layers.MultiHeadAttention(2, 4)
    norm = layers.LayerNormalization()
    return lambda x: norm(x + model(x, x, use_causal_mask=True))


def scanned() -> Callable[..., Any]:
    """Running sums by scan."""
    return lambda x: tf.scan(lambda total, row: total * 0.5 + row, x, initializer=np.zeros(4, np.float32))


def mapped() -> Callable[..., Any]:
    """A conditional for each row."""

    def row(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(x), lambda: x * 2)

    return lambda x: tf.map_fn(row, x)


def folded() -> Callable[..., Any]:
    return lambda x: tf.foldr(lambda total, row: total * 0.5 + row, x)


def while_with_array() -> Callable[..., Any]:
    """A cell in a while loop, which writes a TensorArray."""
    weight = drawn((8, 4))

    def run(x: Any) -> Any:
        length = tf.shape(x)[1]
        rows = tf.TensorArray(tf.float32, size=length)

        def step(i: Any, state: Any, rows: Any) -> Any:
            state = tf.tanh(tf.concat([x[:, i], state], 1) @ weight)
            return i + 1, state, rows.write(i, state)

        start = tf.constant(0), tf.zeros([tf.shape(x)[0], 4]), rows
        return tf.transpose(tf.while_loop(lambda i, *_: i < length, step, start)[2].stack(), [1, 0, 2])

    return run


def beam() -> Callable[..., Any]:
    """Beam search in a while loop, whose tokens grow."""
    weight = drawn((6, 6))

    def run(start: Any, steps: Any) -> Any:
        def step(i: Any, most: Any, tokens: Any, scores: Any) -> Any:
            every = scores[:, None] + tf.nn.log_softmax(tf.gather(weight, tokens[:, -1]))
            scores, best = tf.math.top_k(tf.reshape(every, [-1]), 3)
            tokens = tf.concat([tf.gather(tokens, best // 6), (best % 6)[:, None]], 1)
            return i + 1, most, tokens, scores

        shapes = tf.TensorShape([]), tf.TensorShape([]), tf.TensorShape([3, None]), tf.TensorShape([3])
        first = tf.constant(0), steps, tf.tile(start[None, None], [3, 1]), tf.constant([0.0, -1e9, -1e9])
        return tf.while_loop(lambda i, most, *_: i < most, step, first, shape_invariants=shapes)[2:]

    return run


def suppressed() -> Callable[..., Any]:
    def run(boxes: Any, scores: Any) -> Any:
        kept = tf.image.non_max_suppression(boxes, scores, 5, 0.5)
        return tf.gather(boxes, kept), kept

    return run


def segments() -> Callable[..., Any]:
    def run(x: Any, ids: Any) -> Any:
        values, places = tf.unique(ids)
        return tf.math.unsorted_segment_sum(x, places, tf.size(values)), values

    return run


def mobile() -> Callable[..., Any]:
    model = tf.keras.applications.MobileNetV3Small((64, 64, 3), 0.35, weights=None, classes=7, minimalistic=True)
    return lambda x: model(x, training=False)


def dense() -> Callable[..., Any]:
    model = tf.keras.applications.DenseNet121(weights=None, input_shape=(64, 64, 3), classes=7)
    return lambda x: model(x, training=False)


def masked() -> Callable[..., Any]:
    model = tf.keras.Sequential(
        [
            tf.keras.Input((None,)),
            layers.Embedding(19, 6, mask_zero=True),
            layers.LSTM(8, return_sequences=True),
            layers.GRU(4),
        ]
    )
    return lambda ids: model(ids, training=False)


def cells() -> Callable[..., Any]:
    model = tf.keras.Sequential(
        [tf.keras.Input((None, 4)), layers.RNN([layers.LSTMCell(6), layers.GRUCell(5)], return_sequences=True)]
    )
    return lambda x: model(x, training=False)


add_sequence(
    "lstm_stack", lambda: layers.LSTM(8, return_sequences=True), lambda: layers.LSTM(6), lambda: layers.Dense(3)
)
add_sequence("bilstm", lambda: layers.Bidirectional(layers.LSTM(8, return_sequences=True)), lambda: layers.Dense(3))
add_sequence("lstm_hard_sigmoid", lambda: layers.LSTM(8, recurrent_activation="hard_sigmoid", return_sequences=True))
add_sequence("gru", lambda: layers.GRU(8, return_sequences=True), lambda: layers.Dense(3))
add_sequence("gru_reset_before", lambda: layers.GRU(8, reset_after=False, return_sequences=True))
add_sequence("simple_rnn_backwards", lambda: layers.SimpleRNN(8, go_backwards=True, return_sequences=True))
add_sequence(
    "temporal_conv",
    *(lambda d=d: layers.Conv1D(6, 3, padding="causal", dilation_rate=d, activation="relu") for d in (1, 2)),
)
ROWS = {"x": [None, None, 4]}, {"x": drawn((2, 5, 4))}, {"x": drawn((3, 8, 4))}
add("rnn_stacked_cells", cells, *ROWS)
add("attention", attention, *ROWS)
add("while_tensorarray", while_with_array, *ROWS)
FLAT = {"x": [None, 4]}, {"x": drawn((5, 4))}, {"x": drawn((8, 4))}
for key, function in {"scan_fn": scanned, "map_fn_cond": mapped, "foldr": folded}.items():
    add(key, function, *FLAT)
ids = np.random.default_rng(0).integers(0, 19, (3, 8)).astype(np.int32)
ids[0, 5:] = 0
add("lstm_masked", masked, {"ids": [None, None]}, {"ids": ids[:2, :6]}, {"ids": ids})
add(
    "convlstm2d",
    stack(lambda: layers.ConvLSTM2D(3, 3, padding="same", return_sequences=True), shape=(None, 6, 6, 2)),
    {"x": [None, None, 6, 6, 2]},
    {"x": drawn((1, 4, 6, 6, 2))},
    {"x": drawn((2, 6, 6, 6, 2))},
)
add(
    "beam_while",
    beam,
    {"start": [], "steps": []},
    *({"start": np.array(1, np.int32), "steps": np.array(n, np.int32)} for n in (4, 7)),
)
corners = np.abs(drawn((12, 2, 2))).cumsum(1).reshape(12, 4)
scores = np.abs(drawn((12,)))
add(
    "nms",
    suppressed,
    {"boxes": [None, 4], "scores": [None]},
    *({"boxes": corners[:n], "scores": scores[:n]} for n in (8, 12)),
)
groups = np.array([4, 2, 4, 7, 2, 9, 9, 1], np.int32)
add(
    "segments",
    segments,
    {"x": [None, 3], "ids": [None]},
    *({"x": drawn((n, 3)), "ids": groups[:n]} for n in (5, 8)),
)
IMAGES = {"x": [None, 64, 64, 3]}, {"x": drawn((2, 64, 64, 3))}, {"x": drawn((3, 64, 64, 3))}
for key, function in {"mobilenet_small": mobile, "densenet": dense}.items():
    add(key, function, *IMAGES)
