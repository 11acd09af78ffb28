"""W9: a decoder generates text in a WHILE loop, with a cache of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import ModelProto

import netloop as trt
from benchmarks.building import EQUAL, PROD, RELU, SUM, TRANSPOSE, WHILE, Op, Script, Tensor, onnx_model
from benchmarks.workload import Arrays, Call, Jax, Workload, normal

EPSILON = 1e-5


class Block(NamedTuple):
    """A layer: attention and two dense layers, each after a normalization and with a residual connection.

    Attributes:
        query, key, value, output: [width, width].
        up: [width, 4 * width].
        down: [4 * width, width].
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    output: np.ndarray
    up: np.ndarray
    down: np.ndarray


class Model(NamedTuple):
    """The weights.

    Attributes:
        embedding: [vocabulary, width].
        positions: [length, width].
        blocks: the layers.
        head: [width, vocabulary].
    """

    embedding: np.ndarray
    positions: np.ndarray
    blocks: list[Block]
    head: np.ndarray


@dataclass(frozen=True)
class Decoder(Workload):
    """Greedy decoding of one text up to an end token; the output is the tokens, with zeros after the end."""

    width: int = 256
    heads: int = 4
    layers: int = 2
    vocabulary: int = 1000
    length: int = 128

    floors = {"expert": 1.1, "peer": 0.9}
    passes = ("horizontal_fusion", "matmul_partitioning", "weight_prepacking")

    @property
    def name(self) -> str:
        return f"W9 decoder of {self.layers} x {self.width}, {self.length} tokens"

    @property
    def depth(self) -> int:
        """The width of a head."""
        return self.width // self.heads

    def inputs(self) -> Arrays:
        return {"token": np.array([1], np.int32)}

    @cached_property
    def model(self) -> Model:
        """The weights."""
        w = self.width

        def block(seed: int) -> Block:
            shapes = [(w, w)] * 4 + [(w, 4 * w), (4 * w, w)]
            return Block(*(normal(seed + i, *shape, scale=shape[0] ** -0.5) for i, shape in enumerate(shapes)))

        embedding, positions = normal(1, self.vocabulary, w), normal(2, self.length, w)
        return Model(
            embedding, positions, [block(10 * (1 + i)) for i in range(self.layers)], normal(3, w, self.vocabulary)
        )

    @cached_property
    def end(self) -> int:
        """The end token: of the tokens in the first 7/8 of the text, the one that first appears last."""
        said = np.asarray(jax.jit(self.decode(self.fast_step, None))(self.packed, self.inputs())["said"])
        return int(list(dict.fromkeys(said[: self.length - self.length // 8, 0].tolist()))[-1])

    # ------------------------------------------------------------------ netloop

    def network(self) -> trt.INetworkDefinition:
        script, model = Script(), self.model
        first = script.input("token", self.inputs()["token"])
        loop = script.counted(self.length)
        trip = script.counter(loop)
        state = loop.add_recurrence(first)
        token = state.outputs[0]
        ends = script.combine(script.reshape(token), self.end, EQUAL)
        loop.add_trip_limit(script.network.add_unary(ends, trt.UnaryOperation.NOT).outputs[0], WHILE)
        place = script.reshape(trip, 1)
        x = script.gather(script.constant(model.embedding), token)
        x = script.combine(x, script.gather(script.constant(model.positions), place), SUM)
        later = script.combine(
            script.constant(np.arange(self.length)[None], np.int32), script.reshape(trip, 1, 1), Op.GREATER
        )
        for block in model.blocks:
            x = script.combine(x, self.attend(script, loop, block, self.normalize(script, x), place, later), SUM)
            up = script.activate(script.matmul(self.normalize(script, x), script.constant(block.up)), RELU)
            x = script.combine(x, script.matmul(up, script.constant(block.down)), SUM)
        logits = script.matmul(self.normalize(script, x), script.constant(model.head))
        following = script.reshape(script.largest(logits, 1, 1)[1], 1)
        state.set_input(1, following)
        return script.mark(said=script.stack(loop, following, self.length))

    def normalize(self, script: Script, x: Tensor) -> Tensor:
        """Mean 0 and variance 1."""
        one, zero = script.constant(np.ones((1, self.width))), script.constant(np.zeros((1, self.width)))
        layer = script.network.add_normalization_v2(x, one, zero, 1 << 1)
        layer.epsilon = EPSILON
        return layer.outputs[0]

    def attend(self, script: Script, loop: trt.ILoop, block: Block, x: Tensor, place: Tensor, later: Tensor) -> Tensor:
        """Attention of a token to those before it; its key and value go into the caches, [heads, length, depth]."""
        heads, depth = self.heads, self.depth

        def split(weights: np.ndarray) -> Tensor:
            return script.reshape(script.matmul(x, script.constant(weights)), heads, 1, depth)

        def cached(weights: np.ndarray) -> Tensor:
            cache = loop.add_recurrence(script.constant(np.zeros((1, heads, self.length, depth))))
            new = script.reshape(split(weights), 1, heads, 1, depth)
            layer = script.network.add_kv_cache_update(cache.outputs[0], new, place, trt.KVCacheMode.LINEAR)
            cache.set_input(1, layer.outputs[0])
            return script.reshape(layer.outputs[0], heads, self.length, depth)

        keys, values = cached(block.key), cached(block.value)
        scores = script.combine(script.matmul(split(block.query), keys, TRANSPOSE), depth**-0.5, PROD)
        hidden = script.constant(np.full((1, 1, 1), -1e9))
        scores = script.select(script.reshape(later, 1, 1, self.length), hidden, scores)
        softmax = script.network.add_softmax(scores)
        softmax.axes = 1 << 2
        mixed = script.reshape(script.matmul(softmax.outputs[0], values), 1, self.width)
        return script.matmul(mixed, script.constant(block.output))

    # ------------------------------------------------------------------ JAX

    def decode(self, step: Callable[..., Any], end: int | None) -> Callable[[Any, Any], Any]:
        """A while loop that carries the caches; without an end token if that is None."""

        def function(model: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def goes_on(carry: Any) -> Any:
                trip, token, *_ = carry
                return trip < self.length if end is None else (trip < self.length) & (token[0] != end)

            def body(carry: Any) -> Any:
                trip, token, caches, said = carry
                token, caches = step(model, trip, token, caches)
                return trip + 1, token, caches, lax.dynamic_update_index_in_dim(said, token, trip, 0)

            cache = jnp.zeros((self.heads, self.length, self.depth))
            first = 0, inputs["token"], [(cache, cache)] * self.layers, jnp.zeros((self.length, 1), jnp.int32)
            return {"said": lax.while_loop(goes_on, body, first)[-1]}

        return function

    def step(self, model: Any, trip: Any, token: Any, caches: Any, project: Callable[[Any, Any], Any]) -> Any:
        """A token, with ``project`` for queries, keys and values."""

        def normalized(x: Any) -> Any:
            x = x - jnp.mean(x, -1, keepdims=True)
            return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPSILON)

        x, after = model.embedding[token] + model.positions[trip], []
        for block, (keys, values) in zip(model.blocks, caches, strict=True):
            query, key, value = (value.reshape(self.heads, 1, self.depth) for value in project(block, normalized(x)))
            keys = lax.dynamic_update_slice(keys, key, (0, trip, 0))
            values = lax.dynamic_update_slice(values, value, (0, trip, 0))
            scores = jnp.einsum("hqd,htd->hqt", query, keys) * self.depth**-0.5
            scores = jnp.where(jnp.arange(self.length) > trip, -1e9, scores)
            mixed = jnp.einsum("hqt,htd->hqd", jax.nn.softmax(scores), values).reshape(1, self.width)
            x = x + mixed @ block.output
            x = x + jnp.maximum(normalized(x) @ block.up, 0) @ block.down
            after.append((keys, values))
        return normalized(x) @ model.head, after

    def idiomatic(self) -> Jax:
        def plain_step(model: Model, trip: Any, token: Any, caches: Any) -> Any:
            def project(block: Block, x: Any) -> Any:
                return x @ block.query, x @ block.key, x @ block.value

            logits, caches = self.step(model, trip, token, caches, project)
            return jnp.argmax(logits, -1).astype(jnp.int32), caches

        return Jax(self.decode(plain_step, self.end), self.model)

    @property
    def packed(self) -> Model:
        """The weights with queries, keys and values joined in ``query``."""
        none = np.zeros((0, 0), np.float32)
        blocks = [
            block._replace(query=np.concatenate(block[:3], 1), key=none, value=none) for block in self.model.blocks
        ]
        return self.model._replace(blocks=blocks)

    def fast_step(self, model: Model, trip: Any, token: Any, caches: Any) -> Any:
        """A step with one product for queries, keys and values, and a cheaper argmax."""
        logits, caches = self.step(model, trip, token, caches, lambda block, x: jnp.split(x @ block.query, 3, -1))
        most = jnp.max(logits, -1, keepdims=True)
        places = lax.broadcasted_iota(jnp.int32, logits.shape, 1)
        return jnp.min(jnp.where(logits == most, places, self.vocabulary), -1), caches

    def expert(self) -> Jax:
        return Jax(self.decode(self.fast_step, self.end), self.packed)

    # ------------------------------------------------------------------ peers

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"growing loop": lambda: self.loop_model(True), "loop": lambda: self.loop_model(False)}

    def loop_model(self, grows: bool) -> ModelProto:
        """A Loop whose caches grow by concatenation, or have their full length and are written into."""
        layers, cache = range(self.layers), f"float[{'P' if grows else self.length},{self.heads},{self.depth}]"
        carried = ", ".join(f"{cache} K{i}, {cache} V{i}" for i in layers)
        made = ", ".join(f"{cache} K{i}n, {cache} V{i}n" for i in layers)
        lasts = ", ".join(f"K{i}_last, V{i}_last" for i in layers)
        text = f"""
        decoder (int32[1] token) => (int32[{self.length},1] said) {{
            token_last, {lasts}, said_short = Loop <body = step (int64 i, bool go_on, int32[1] t, {carried})
                => (bool go_on2, int32[1] t2, {made}, int32[1] out) {{
                e = Gather (embedding, t)
                q = Gather (positions, i)
                x0 = Add (e, q)
                place = Reshape (i, one_one)
                later = Greater (all, i)
                {"".join(self.onnx_block(i, grows) for i in layers)}
                last = LayerNormalization <epsilon = {EPSILON}> (x{self.layers}, ones)
                logits = MatMul (last, head)
                m = ArgMax <axis = 1, keepdims = 0> (logits)
                t2 = Cast <to = 6> (m)
                out = Identity (t2)
                first = Squeeze (t2)
                over = Equal (first, end)
                go_on2 = Not (over)
            }}> (trips, yes, token, {", ".join(["empty, empty"] * self.layers)})
            shape = Shape <start = 0, end = 1> (said_short)
            rest = Sub (trips1, shape)
            pads = Concat <axis = 0> (two_zeros, rest, zero1)
            said = Pad (said_short, pads)
        }}"""
        return onnx_model(text, self.onnx_weights(grows))

    def onnx_weights(self, grows: bool) -> Arrays:
        """The initializers: queries, keys and values joined, queries scaled."""
        numbers: dict[str, Any] = {"trips": self.length, "trips1": [self.length], "two_zeros": [0, 0], "zero1": [0]}
        numbers |= {"split": [1, self.heads, self.depth], "joined": [1, self.width], "one_one": [1, 1]}
        arrays: Arrays = {name: np.array(value, np.int64) for name, value in numbers.items()}
        arrays |= {"embedding": self.model.embedding, "positions": self.model.positions, "head": self.model.head}
        for i, block in enumerate(self.model.blocks):
            query = np.concatenate([block.query * np.float32(self.depth**-0.5), block.key, block.value], 1)
            arrays |= {f"Wq{i}": query, f"Wo{i}": block.output, f"Wu{i}": block.up, f"Wd{i}": block.down}
        empty = np.zeros((0 if grows else self.length, self.heads, self.depth), np.float32)
        arrays |= {"empty": empty, "ones": np.ones(self.width, np.float32), "yes": np.array(True)}
        arrays |= {"all": np.arange(self.length), "low": np.array(-1e9, np.float32)}
        return {**arrays, "end": np.array(self.end, np.int32)}

    def onnx_block(self, layer: int, grows: bool) -> str:
        """The text of a layer."""
        write = "Concat <axis = 0> (@~, @h~)" if grows else "ScatterND (@~, place, @h~)"
        mask = "Identity (s~)" if grows else "Where (later, low, s~)"
        return f"""
                a~ = LayerNormalization <epsilon = {EPSILON}> (x~, ones)
                qkv~ = MatMul (a~, Wq~)
                q~, k~, v~ = Split <axis = 1, num_outputs = 3> (qkv~)
                qh~ = Reshape (q~, split)
                Kh~ = Reshape (k~, split)
                Vh~ = Reshape (v~, split)
                K~n = {write.replace("@", "K")}
                V~n = {write.replace("@", "V")}
                qt~ = Transpose <perm = [1, 0, 2]> (qh~)
                kt~ = Transpose <perm = [1, 2, 0]> (K~n)
                vt~ = Transpose <perm = [1, 0, 2]> (V~n)
                s~ = MatMul (qt~, kt~)
                sm~ = {mask}
                w~ = Softmax <axis = 2> (sm~)
                o~ = MatMul (w~, vt~)
                j~ = Reshape (o~, joined)
                p~ = MatMul (j~, Wo~)
                y~ = Add (x~, p~)
                b~ = LayerNormalization <epsilon = {EPSILON}> (y~, ones)
                u~ = MatMul (b~, Wu~)
                r~ = Relu (u~)
                d~ = MatMul (r~, Wd~)
                x{layer + 1} = Add (y~, d~)
                """.replace("~", str(layer))

    def torch(self, torch: Any) -> Call:
        tensor = torch.from_numpy
        embedding, positions, head = (
            tensor(array) for array in (self.model.embedding, self.model.positions, self.model.head)
        )
        blocks = [Block(*map(tensor, block)) for block in self.model.blocks]
        joined = [torch.cat(block[:3], 1) for block in blocks]

        def normalized(x: Any) -> Any:
            return torch.nn.functional.layer_norm(x, (self.width,), eps=EPSILON)

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            token, said = inputs["token"], torch.zeros(self.length, 1, dtype=torch.int32)
            caches = [torch.zeros(2, self.heads, self.length, self.depth) for _ in blocks]
            for trip in range(self.length):
                if int(token[0]) == self.end:
                    break
                x = embedding[token] + positions[trip]
                for block, weights, cache in zip(blocks, joined, caches, strict=True):
                    query, *new = (normalized(x) @ weights).reshape(3, self.heads, 1, self.depth)
                    cache[:, :, trip : trip + 1] = torch.stack(new)
                    keys, values = cache[:, :, : trip + 1]
                    mixed = torch.nn.functional.scaled_dot_product_attention(query, keys, values)
                    x = x + mixed.reshape(1, self.width) @ block.output
                    x = x + torch.relu(normalized(x) @ block.up) @ block.down
                token = (normalized(x) @ head).argmax(-1)
                said[trip] = token
            return {"said": said}

        return call


CASES: list[Workload] = [Decoder()]
