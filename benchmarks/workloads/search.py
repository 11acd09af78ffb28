"""W6: greedy and beam search over a small recurrent model, up to an end token of the best beam."""

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
from benchmarks.building import EQUAL, PROD, SUB, SUM, TANH, WHILE, Op, Script, onnx_model
from benchmarks.workload import Arrays, Call, Jax, Workload, normal


class Model(NamedTuple):
    """A recurrent model: h = tanh(embedding[token] + h recurrent), and logits h head.

    Attributes:
        embedding: [vocabulary, hidden].
        recurrent: [hidden, hidden].
        head: [hidden, vocabulary].
    """

    embedding: np.ndarray
    recurrent: np.ndarray
    head: np.ndarray


@dataclass(frozen=True)
class Search(Workload):
    """The likeliest continuations, of which ``beams`` are kept; greedy if that is one.

    The outputs are the token and the parent of each beam in each step, zeros after the end, and the last scores.
    """

    beams: int = 4
    vocabulary: int = 1000
    hidden: int = 128
    length: int = 64

    floors = {"expert": 1.1, "peer": 0.95}
    passes = ("matmul_partitioning",)

    @property
    def name(self) -> str:
        return f"W6 {f'beam search of {self.beams}' if self.beams > 1 else 'greedy search'}"

    def inputs(self) -> Arrays:
        scores = np.where(np.arange(self.beams) == 0, 0, -1e9).astype(np.float32)
        tokens = np.zeros(self.beams, np.int32)
        return {"tokens": tokens, "scores": scores, "h": normal(0, self.beams, self.hidden)}

    @cached_property
    def model(self) -> Model:
        """The weights."""
        v, n = self.vocabulary, self.hidden
        return Model(normal(1, v, n), normal(2, n, n, scale=1.2 * n**-0.5), normal(3, n, v, scale=3 * n**-0.5))

    @cached_property
    def end(self) -> int:
        """The end token: of the tokens in the first 3/4 of the best beam, the one that first appears last."""
        tokens, scores, h = self.inputs().values()
        said: list[int] = []
        for _ in range(self.length - self.length // 4):
            h = np.tanh(self.model.embedding[tokens] + h @ self.model.recurrent)
            logits = h @ self.model.head
            most = logits.max(-1, keepdims=True)
            logits = logits - most - np.log(np.exp(logits - most).sum(-1, keepdims=True))
            both = (scores[:, None] + logits).reshape(-1)
            best = np.argsort(-both)[: self.beams]
            scores, tokens, h = both[best], best % self.vocabulary, h[best // self.vocabulary]
            said.append(int(tokens[0]))
        return list(dict.fromkeys(said))[-1]

    # ------------------------------------------------------------------ netloop

    def network(self) -> trt.INetworkDefinition:
        script, model = Script(), self.model
        first = [script.input(name, array) for name, array in self.inputs().items()]
        loop = script.counted(self.length)
        recurrences = [loop.add_recurrence(tensor) for tensor in first]
        tokens, scores, h = (recurrence.outputs[0] for recurrence in recurrences)
        best = script.gather(tokens, script.number(0))
        goes_on = script.network.add_unary(script.combine(best, self.end, EQUAL), trt.UnaryOperation.NOT)
        loop.add_trip_limit(goes_on.outputs[0], WHILE)

        product = script.matmul(h, script.constant(model.recurrent))
        h = script.activate(script.combine(script.gather(script.constant(model.embedding), tokens), product, SUM), TANH)
        softmax = script.network.add_softmax(script.matmul(h, script.constant(model.head)))
        softmax.axes = 1 << 1
        logs = script.network.add_unary(softmax.outputs[0], trt.UnaryOperation.LOG).outputs[0]
        both = script.combine(script.reshape(scores, self.beams, 1), logs, SUM)
        scores, places = script.largest(script.reshape(both, self.beams * self.vocabulary), self.beams, 0)
        parents = script.combine(places, self.vocabulary, Op.FLOOR_DIV)
        tokens = script.combine(places, script.combine(parents, self.vocabulary, PROD), SUB)
        for recurrence, value in zip(recurrences, (tokens, scores, script.gather(h, parents)), strict=True):
            recurrence.set_input(1, value)
        return script.mark(
            said=script.stack(loop, tokens, self.length),
            parents=script.stack(loop, parents, self.length),
            score=script.last(loop, recurrences[1].outputs[0]),
        )

    # ------------------------------------------------------------------ JAX

    def searching(self, step: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any, Any]]) -> Jax:
        """A while loop that writes into buffers."""

        def function(model: Model, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def goes_on(carry: Any) -> Any:
                trip, tokens, *_ = carry
                return (trip < self.length) & (tokens[0] != self.end)

            def body(carry: Any) -> Any:
                trip, tokens, scores, h, said, before = carry
                tokens, scores, h, parents = step(model, tokens, scores, h)
                said = lax.dynamic_update_index_in_dim(said, tokens, trip, 0)
                before = lax.dynamic_update_index_in_dim(before, parents, trip, 0)
                return trip + 1, tokens, scores, h, said, before

            empty = jnp.zeros((self.length, self.beams), jnp.int32)
            first = 0, inputs["tokens"], inputs["scores"], inputs["h"], empty, empty
            _, _, scores, _, said, parents = lax.while_loop(goes_on, body, first)
            return {"said": said, "parents": parents, "score": scores}

        return Jax(function, self.model)

    def idiomatic(self) -> Jax:
        def step(model: Model, tokens: Any, scores: Any, h: Any) -> Any:
            h = jnp.tanh(model.embedding[tokens] + h @ model.recurrent)
            both = scores[:, None] + jax.nn.log_softmax(h @ model.head)
            scores, places = lax.top_k(both.reshape(-1), self.beams)
            parents, tokens = jnp.divmod(places, self.vocabulary)
            return tokens, scores, h[parents], parents

        return self.searching(step)

    def expert(self) -> Jax:
        """The best candidates of each beam first, then the best of these; only they are normalized."""

        def step(model: Model, tokens: Any, scores: Any, h: Any) -> Any:
            h = jnp.tanh(model.embedding[tokens] + h @ model.recurrent)
            logits = h @ model.head
            values, places = _first_largest(logits) if self.beams == 1 else lax.top_k(logits, self.beams)
            values = values + (scores - jax.nn.logsumexp(logits, -1))[:, None]
            scores, best = lax.top_k(values.reshape(-1), self.beams)
            parents = best // self.beams
            return places.reshape(-1)[best], scores, h[parents], parents

        return self.searching(step)

    # ------------------------------------------------------------------ peers

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"loop": self.loop_model}

    def loop_model(self) -> ModelProto:
        """A Loop that ends by its condition; its stacked outputs are padded with zeros."""
        k, n, most = self.beams, self.hidden, self.length
        text = f"""
        search (int32[{k}] tokens, float[{k}] scores, float[{k},{n}] h)
            => (int32[{most},{k}] said, int32[{most},{k}] parents, float[{k}] score) {{
            t_last, score, h_last, said_short, parents_short = Loop <body = step (
                int64 i, bool go_on, int32[{k}] t, float[{k}] s, float[{k},{n}] g
            ) => (
                bool go_on2, int32[{k}] t2, float[{k}] s2, float[{k},{n}] g2, int32[{k}] said1, int32[{k}] parents1
            ) {{
                e = Gather (embedding, t)
                p = MatMul (g, recurrent)
                a = Add (e, p)
                b = Tanh (a)
                logits = MatMul (b, head)
                logs = LogSoftmax <axis = 1> (logits)
                s1 = Unsqueeze (s, axis1)
                both = Add (s1, logs)
                flat = Reshape (both, whole)
                s2, best = TopK (flat, k)
                from = Div (best, vocabulary)
                word = Mod (best, vocabulary)
                g2 = Gather (b, from)
                t2 = Cast <to = 6> (word)
                said1 = Identity (t2)
                parents1 = Cast <to = 6> (from)
                first = Gather (t2, zero)
                over = Equal (first, end)
                go_on2 = Not (over)
            }}> (trips, yes, tokens, scores, h)
            shape = Shape <start = 0, end = 1> (said_short)
            rest = Sub (trips1, shape)
            pads = Concat <axis = 0> (two_zeros, rest, zero1)
            said = Pad (said_short, pads)
            parents = Pad (parents_short, pads)
        }}"""
        numbers = {"axis1": [1], "whole": [-1], "k": [k], "vocabulary": self.vocabulary, "zero": 0}
        numbers |= {"trips": most, "trips1": [most], "two_zeros": [0, 0], "zero1": [0]}
        arrays: Arrays = {name: np.array(value, np.int64) for name, value in numbers.items()}
        return onnx_model(
            text, {**arrays, **self.model._asdict(), "end": np.array(self.end, np.int32), "yes": np.array(True)}
        )

    def torch(self, torch: Any) -> Call:
        embedding, recurrent, head = map(torch.from_numpy, self.model)

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            tokens, scores, h = inputs["tokens"], inputs["scores"], inputs["h"]
            said = torch.zeros(self.length, self.beams, dtype=torch.int32)
            parents = torch.zeros_like(said)
            for trip in range(self.length):
                if int(tokens[0]) == self.end:
                    break
                h = torch.tanh(torch.addmm(embedding[tokens], h, recurrent))
                both = scores[:, None] + torch.log_softmax(h @ head, -1)
                scores, places = torch.topk(both.reshape(-1), self.beams)
                before = places // self.vocabulary
                tokens, h = places % self.vocabulary, h[before]
                said[trip], parents[trip] = tokens, before
            return {"said": said, "parents": parents, "score": scores}

        return call


def _first_largest(rows: Any) -> tuple[Any, Any]:
    """The largest element of each row, and its index."""
    most = jnp.max(rows, -1, keepdims=True)
    places = lax.broadcasted_iota(jnp.int32, rows.shape, 1)
    return most, jnp.min(jnp.where(rows == most, places, rows.shape[1]), -1, keepdims=True)


CASES: list[Workload] = [Search(beams=1), Search()]
