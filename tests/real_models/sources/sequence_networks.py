"""Networks of sequences with loops of their own: recurrent cells, filters, decoders, samplers and solvers."""

import math

import torch
from torch import Tensor, nn

# pyright: reportPrivateImportUsage=false
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torchvision.ops import DeformConv2d

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Make, add
from tests.real_models.sources.torch_control import scripted

RECIPES = Recipes()


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def words(batch: int, length: int, most: int = 19) -> Tensor:
    return torch.randint(0, most, (batch, length), generator=torch.Generator().manual_seed(length))


class Gated(nn.Module):
    """A gated recurrent unit of products that both exporters write."""

    def __init__(self, inputs: int, states: int) -> None:
        super().__init__()
        self.gates, self.new = nn.Linear(inputs + states, 2 * states), nn.Linear(inputs + states, states)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        reset, update = torch.sigmoid(self.gates(torch.cat([x, h], 1))).chunk(2, 1)
        return update * h + (1 - update) * torch.tanh(self.new(torch.cat([x, reset * h], 1)))


class AdaptiveSteps(nn.Module):
    """Adaptive computation time: a cell that runs until the halting probabilities of all rows add up."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.halt = Gated(6, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(x.size(0), 8)
        total, result = torch.zeros(x.size(0)), torch.zeros(x.size(0), 8)
        steps = 0
        while bool((total < 0.99).any()) and steps < 20:
            state = self.cell(x, state)
            share = torch.sigmoid(self.halt(state)).squeeze(1)
            share = torch.where(total + share > 0.99, 1.0 - total, share) * (total < 0.99)
            result, total = result + share.unsqueeze(1) * state, total + share
            steps += 1
        return result


class TagSequence(nn.Module):
    """A bidirectional LSTM whose best sequence of tags is searched by Viterbi's algorithm."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.layer = nn.Embedding(19, 8), nn.LSTM(8, 6, bidirectional=True, batch_first=True)
        self.score, self.moves = nn.Linear(12, 4), nn.Parameter(torch.randn(4, 4))

    def forward(self, ids: Tensor) -> Tensor:
        scores = self.score(self.layer(self.embed(ids))[0])
        best = scores[:, 0]
        origins: list[Tensor] = []
        for t in range(1, scores.size(1)):
            through = best.unsqueeze(2) + self.moves
            most, origin = through.max(1)
            best = most + scores[:, t]
            origins.append(origin)
        tag = best.argmax(1)
        path: list[Tensor] = [tag]
        for k in range(len(origins)):
            tag = origins[len(origins) - 1 - k].gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        return torch.stack(path, 1).flip(1)


class ImagesInTime(nn.Module):
    """A convolutional LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Conv2d(5, 12, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 3, x.size(3), x.size(4))
        c = h
        states: list[Tensor] = []
        for t in range(x.size(0)):
            i, f, o, g = torch.chunk(self.gates(torch.cat([x[t], h], 1)), 4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.stack(states)


class Deformed(nn.Module):
    """A deformable convolution whose offsets and masks are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets, self.layer = nn.Conv2d(4, 27, 3, padding=1), DeformConv2d(4, 6, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        made = self.offsets(x)
        return self.layer(x, made[:, :18], torch.sigmoid(made[:, 18:]))


class Sampler(nn.Module):
    """A deterministic sampler of a diffusion model with an input for its number of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(9, 16), nn.SiLU(), nn.Linear(16, 8))
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-3, 0.2, 20), 0))

    def forward(self, x: Tensor, steps: int) -> Tensor:
        for i in range(steps):
            t = 19 - i
            now, later = self.kept[t], self.kept[max(t - 1, 0)]
            time = torch.full([x.size(0), 1], 0.05) * t
            noise = self.layer(torch.cat([x, time], 1))
            start = (x - torch.sqrt(1 - now) * noise) / torch.sqrt(now)
            x = torch.sqrt(later) * start + torch.sqrt(1 - later) * noise
        return x


class Forecast(nn.Module):
    """DeepAR without draws: an LSTM that feeds its mean back, with known features of the future."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.LSTM(3, 8, 2), nn.Linear(8, 2)

    def forward(self, past: Tensor, future: Tensor) -> tuple[Tensor, Tensor]:
        y, state = self.layer(past)
        value = self.head(y[-1])[:, :1]
        means: list[Tensor] = []
        scales: list[Tensor] = []
        for t in range(future.size(0)):
            step = torch.cat([value.unsqueeze(0), future[t : t + 1]], 2)
            y, state = self.layer(step, state)
            answer = self.head(y[0])
            value = answer[:, :1]
            means.append(value)
            scales.append(nn.functional.softplus(answer[:, 1:]))
        return torch.stack(means), torch.stack(scales)


class Factors(nn.Module):
    """A factorization machine with a perceptron on hashed ids."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.embed = nn.Embedding(64, 1), nn.Embedding(64, 4)
        self.deep = nn.Sequential(nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 1))

    def forward(self, ids: Tensor) -> Tensor:
        ids = (ids * 2654435761 + torch.arange(ids.size(1)) * 97) % 64
        x = self.embed(ids)
        both = (x.sum(1) ** 2 - (x**2).sum(1)).sum(1, keepdim=True) / 2
        return torch.sigmoid(self.first(ids).sum(1) + both + self.deep(x.flatten(1)))


class Bags(nn.Module):
    """A recommender on bags of ids."""

    def __init__(self) -> None:
        super().__init__()
        self.bags, self.dense = nn.EmbeddingBag(32, 6, mode="sum"), nn.Linear(5, 6)

    def forward(self, ids: Tensor, offsets: Tensor, x: Tensor) -> Tensor:
        return (self.bags(ids, offsets) * self.dense(x)).sum(1)


class Filter(nn.Module):
    """A Kalman filter, which collects its means and the likelihood."""

    def __init__(self) -> None:
        super().__init__()
        self.move, self.see = nn.Parameter(0.3 * torch.randn(4, 4)), nn.Parameter(torch.randn(2, 4))

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        mean, spread = torch.zeros(4), torch.eye(4)
        total = torch.zeros(1)
        means: list[Tensor] = []
        for t in range(seen.size(0)):
            mean, spread = self.move @ mean, self.move @ spread @ self.move.t() + 0.1 * torch.eye(4)
            s = self.see @ spread @ self.see.t() + 0.2 * torch.eye(2)
            d = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            inverse = torch.stack([torch.stack([s[1, 1], -s[0, 1]]), torch.stack([-s[1, 0], s[0, 0]])]) / d
            surprise = seen[t] - self.see @ mean
            gain = spread @ self.see.t() @ inverse
            mean, spread = mean + gain @ surprise, spread - gain @ self.see @ spread
            total = total - 0.5 * (surprise @ inverse @ surprise + torch.log(d))
            means.append(mean)
        return torch.stack(means), total


class NormedCells(nn.Module):
    """An LSTM with normalized gates."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(6, 32), nn.Linear(8, 32, bias=False)
        self.norms = nn.ModuleList([nn.LayerNorm(32), nn.LayerNorm(32), nn.LayerNorm(8)])

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 8)
        c = h
        states: list[Tensor] = []
        for t in range(x.size(0)):
            gates = self.norms[0](self.x(x[t])) + self.norms[1](self.h(h))
            i, f, o, g = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(self.norms[2](c))
            states.append(h)
        return torch.stack(states)


class LanguageModel(nn.Module):
    """A language model of LSTMs, which takes and returns its states."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.layer, self.head = nn.Embedding(99, 32), nn.LSTM(32, 48, 2), nn.Linear(48, 99)

    def forward(self, ids: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.layer(self.embed(ids), (h, c))
        return self.head(y).log_softmax(-1), h, c


class ParallelUnit(nn.Module):
    """A minimal gated unit, computed in parallel by logarithms of sums."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(8, 12), nn.Linear(8, 12)

    def forward(self, x: Tensor) -> Tensor:
        k = self.gate(x)
        keep = -nn.functional.softplus(k)
        new = -nn.functional.softplus(-k) + torch.log(nn.functional.softplus(self.value(x)) + 1e-3)
        total = keep.cumsum(1)
        return torch.exp(total + torch.logcumsumexp(new - total, 1))


class Blocks(nn.Module):
    """N-BEATS: blocks that explain what others left."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU()) for _ in range(3)]
        )
        self.heads = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        result = torch.zeros(x.size(0), 4)
        for block, head in zip(self.blocks, self.heads, strict=True):
            theta = head(block(x))
            x, result = x - theta[:, :12], result + theta[:, 12:]
        return result


class Memory(nn.Module):
    """A neural Turing machine with a memory that it reads and writes by content."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.key, self.write = Gated(10, 12), nn.Linear(12, 6), nn.Linear(12, 12)

    def forward(self, x: Tensor) -> Tensor:
        batch = x.size(1)
        memory, state, read = torch.full([batch, 5, 6], 0.01), torch.zeros(batch, 12), torch.zeros(batch, 6)
        reads: list[Tensor] = []
        for t in range(x.size(0)):
            state = self.cell(torch.cat([x[t], read], 1), state)
            scores = nn.functional.cosine_similarity(memory, self.key(state).unsqueeze(1), dim=2)
            weights = torch.softmax(5 * scores, 1).unsqueeze(2)
            erase, new = self.write(state).chunk(2, 1)
            memory = memory * (1 - weights * torch.sigmoid(erase).unsqueeze(1)) + weights * new.unsqueeze(1)
            read = (weights * memory).sum(1)
            reads.append(read)
        return torch.stack(reads)


class Solver(nn.Module):
    """A differential equation whose step adapts to the error."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x: Tensor) -> Tensor:
        t, h = torch.zeros(1), torch.full([1], 0.2)
        steps = 0
        while bool(t < 1) and steps < 100:
            h = torch.minimum(h, 1 - t)
            first = self.layer(x)
            second = self.layer(x + h * first)
            off = (h / 2 * (second - first)).abs().max()
            if bool(off < 1e-3):
                x, t = x + h / 2 * (first + second), t + h
            h = h * torch.clamp(0.9 * torch.sqrt(1e-3 / (off + 1e-9)), 0.3, 3.0)
            steps += 1
        return x


class Flow(nn.Module):
    """RealNVP: couplings that can be inverted, and the logarithm of their volume."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList([nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 6)) for _ in range(4)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        volume = torch.zeros(x.size(0))
        for net in self.nets:
            kept, moved = x.chunk(2, 1)
            scale, shift = net(kept).chunk(2, 1)
            scale = torch.tanh(scale)
            x, volume = torch.cat([moved * torch.exp(scale) + shift, kept], 1), volume + scale.sum(1)
        return x, volume


class Retention(nn.Module):
    """Retention by chunks of 8 with a state between them."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        t = torch.arange(8.0)
        self.register_buffer("inside", torch.tril(0.9 ** (t[:, None] - t).clamp(min=0)))
        self.register_buffer("before", 0.9 ** (t + 1))
        self.register_buffer("after", 0.9 ** (7 - t))

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(x.size(0), 16, 16)
        parts: list[Tensor] = []
        for i in range(0, x.size(1), 8):
            part = x[:, i : i + 8]
            q, k, v = self.q(part), self.k(part) / 4, self.v(part)
            y = (q @ k.transpose(1, 2) * self.inside) @ v + (q * self.before.unsqueeze(1)) @ state
            state = 0.9**8 * state + (k * self.after.unsqueeze(1)).transpose(1, 2) @ v
            parts.append(y)
        return torch.cat(parts, 1)


class Transducer(nn.Module):
    """Greedy search of an RNN transducer: at most three tokens for each frame, each kept only if it is not blank."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell = nn.Embedding(9, 8), Gated(8, 8)
        self.frames, self.join = nn.Linear(6, 8), nn.Linear(8, 9)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(1, 8)
        state = self.cell(self.embed(torch.zeros(1, dtype=torch.long)), state)
        kept: list[Tensor] = [torch.zeros(1, dtype=torch.long)]
        for t in range(x.size(0)):
            more, count = True, 0
            while more and count < 3:
                token = self.join(torch.tanh(self.frames(x[t]).unsqueeze(0) + state)).argmax(1)
                more = bool((token != 0).all())
                if more:
                    state = self.cell(self.embed(token), state)
                    kept.append(token)
                count += 1
        return torch.cat(kept)


class StateMatrix(nn.Module):
    """RWKV-7: a state matrix that decays, forgets along a key and learns a value."""

    def __init__(self) -> None:
        super().__init__()
        self.r, self.w, self.k = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.v, self.a = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        batch, length = x.size(0), x.size(1)
        r, k, v = self.r(x).view(batch, length, 2, 8), self.k(x).view(batch, length, 2, 8), self.v(x)
        v = v.view(batch, length, 2, 8)
        w = torch.exp(-0.6 * torch.sigmoid(self.w(x))).view(batch, length, 2, 8)
        a = torch.sigmoid(self.a(x)).view(batch, length, 2, 8)
        k = k / torch.sqrt((k * k).sum(3, keepdim=True) + 1e-6)
        state = torch.zeros(batch, 2, 8, 8)
        rows: list[Tensor] = []
        for t in range(length):
            key = k[:, t].unsqueeze(3)
            lost = (state @ key) @ (key * a[:, t].unsqueeze(3)).transpose(2, 3)
            state = state * w[:, t].unsqueeze(2) - lost + v[:, t].unsqueeze(3) @ key.transpose(2, 3)
            rows.append((state @ r[:, t].unsqueeze(3)).squeeze(3))
        return torch.stack(rows, 1).reshape(batch, length, 16)


class Kernel(nn.Module):
    """S4D: a diagonal state space as a long convolution, by Fourier transforms."""

    def __init__(self) -> None:
        super().__init__()
        self.decay, self.speed = nn.Parameter(torch.rand(4, 3)), nn.Parameter(torch.rand(4, 3))
        self.weight = nn.Parameter(torch.randn(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        t = torch.arange(x.shape[-1], dtype=torch.float32)
        kernel = (
            torch.exp(-self.decay[..., None] * t) * torch.cos(self.speed[..., None] * t) * self.weight[..., None]
        ).sum(1)
        size = 2 * 32
        y = torch.fft.irfft(torch.fft.rfft(x, n=size) * torch.fft.rfft(kernel, n=size), n=size)
        return y[..., : x.shape[-1]]


class Selective(nn.Module):
    """A selective state space with a loop over time."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 4), nn.Linear(6, 4)
        self.a = nn.Parameter(torch.rand(6, 4))

    def forward(self, x: Tensor) -> Tensor:
        delta = nn.functional.softplus(self.step(x))
        b, c = self.b(x), self.c(x)
        state = torch.zeros(x.size(1), 6, 4)
        rows: list[Tensor] = []
        for t in range(x.size(0)):
            decay = torch.exp(-delta[t].unsqueeze(2) * self.a)
            state = decay * state + (delta[t] * x[t]).unsqueeze(2) * b[t].unsqueeze(1)
            rows.append((state * c[t].unsqueeze(1)).sum(2))
        return torch.stack(rows)


class SelectiveScan(Selective):
    """The same by scan."""

    def forward(self, x: Tensor) -> Tensor:
        delta = nn.functional.softplus(self.step(x))

        def step(state: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            row, d, b, c = now
            state = torch.exp(-d.unsqueeze(2) * self.a) * state + (d * row).unsqueeze(2) * b.unsqueeze(1)
            return state, (state * c.unsqueeze(1)).sum(2)

        return scan(step, torch.zeros(x.size(1), 6, 4), (x, delta, self.b(x), self.c(x)))[1]


class Tree(nn.Module):
    """A tree LSTM: nodes follow their two children, and -1 is none."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(5, 24), nn.Linear(12, 30)

    def forward(self, x: Tensor, children: Tensor) -> Tensor:
        count = x.size(0)
        h, c = torch.zeros(count, 6), torch.zeros(count, 6)
        for i in range(count):
            left, right = int(children[i, 0]), int(children[i, 1])
            hl, cl = (h[left], c[left]) if left >= 0 else (torch.zeros(6), torch.zeros(6))
            hr, cr = (h[right], c[right]) if right >= 0 else (torch.zeros(6), torch.zeros(6))
            gates = self.h(torch.cat([hl, hr]))
            i_, o, g, f = (self.x(x[i]) + gates[:24]).chunk(4)
            value = torch.sigmoid(i_) * torch.tanh(g) + torch.sigmoid(f) * cl + torch.sigmoid(gates[24:]) * cr
            c[i] = value
            h[i] = torch.sigmoid(o) * torch.tanh(value)
        return h


class Chat(nn.Module):
    """A decoder of one layer of attention with a cache, in while_loop, until an end token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.qkv, self.head = nn.Embedding(19, 16), nn.Linear(16, 48), nn.Linear(16, 19)

    def forward(self, first: Tensor) -> Tensor:
        def more(i: Tensor, token: Tensor, keys: Tensor, values: Tensor, tokens: Tensor) -> Tensor:
            return (i < 12) & (token != 18).any()

        def step(
            i: Tensor, token: Tensor, keys: Tensor, values: Tensor, tokens: Tensor
        ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
            x = self.embed(token)
            q, k, v = self.qkv(x).chunk(3, -1)
            here = (torch.arange(12) == i).to(x.dtype)[None, :, None]
            keys, values = keys + here * k[:, None], values + here * v[:, None]
            scores = (keys @ q[..., None])[..., 0] / 4
            weights = torch.where(torch.arange(12) <= i, scores, -1e9).softmax(-1)
            token = self.head(x + (weights[:, None] @ values)[:, 0]).argmax(-1)
            tokens = torch.where(torch.arange(12) == i, token[:, None], tokens)
            return i + 1, token, keys, values, tokens

        batch = first.shape[0]
        nothing = torch.zeros(batch, 12, 16)
        start = (torch.zeros((), dtype=torch.int64), first.clone(), nothing, nothing.clone())
        return while_loop(more, step, (*start, torch.full((batch, 12), 18)))[4]


class Search(nn.Module):
    """Beam search over a recurrent language model, with its best sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(11, 8), Gated(8, 8), nn.Linear(8, 11)

    def forward(self, state: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        width = 3
        state = state.expand(width, 8)
        scores = torch.tensor([0.0, -1e9, -1e9])
        tokens = torch.zeros(width, 1, dtype=torch.long)
        for _ in range(steps):
            state = self.cell(self.embed(tokens[:, -1]), state)
            every = scores.unsqueeze(1) + self.head(state).log_softmax(1)
            scores, best = every.flatten().topk(width)
            rows = torch.div(best, 11, rounding_mode="floor")
            state, tokens = state[rows], torch.cat([tokens[rows], (best % 11).unsqueeze(1)], 1)
        return tokens, scores


class SpeakTokens(nn.Module):
    """An autoregressive decoder whose cache grows by Concat inside a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.qkv, self.head = nn.Embedding(19, 16), nn.Linear(16, 48), nn.Linear(16, 19)

    def forward(self, first: Tensor, steps: int) -> Tensor:
        token = first
        keys, values = torch.zeros(first.size(0), 0, 16), torch.zeros(first.size(0), 0, 16)
        tokens = torch.zeros(first.size(0), 0, dtype=torch.long)
        for _ in range(steps):
            x = self.embed(token)
            q, k, v = self.qkv(x).chunk(3, 1)
            keys, values = torch.cat([keys, k.unsqueeze(1)], 1), torch.cat([values, v.unsqueeze(1)], 1)
            weights = torch.softmax((keys @ q.unsqueeze(2)) / 4, 1)
            token = self.head(x + (weights * values).sum(1)).argmax(1)
            tokens = torch.cat([tokens, token.unsqueeze(1)], 1)
        return tokens


def states(length: int, batch: int) -> dict[str, Tensor]:
    return {"ids": words(length, batch, 99), "h": numbers(2, batch, 48), "c": numbers(2, batch, 48)}


def bags(count: int, number: int) -> dict[str, Tensor]:
    starts = torch.arange(0, number, math.ceil(number / count))[:count]
    return {"ids": words(1, number, 32)[0], "offsets": starts, "x": numbers(len(starts), 5)}


def tree(*children: tuple[int, int]) -> dict[str, Tensor]:
    return {"x": numbers(len(children), 5), "children": torch.tensor(children)}


TREES = tree((-1, -1), (-1, -1), (0, 1)), tree((-1, -1), (-1, -1), (0, 1), (-1, -1), (2, 3))
SCRIPTED: dict[str, Make] = {
    "act": scripted(AdaptiveSteps, {"x": numbers(2, 6)}, {"x": numbers(3, 6)}),
    "bilstm_crf": scripted(TagSequence, {"ids": words(2, 6)}, {"ids": words(3, 9)}),
    "convlstm": scripted(ImagesInTime, {"x": numbers(4, 2, 2, 6, 6)}, {"x": numbers(6, 1, 2, 8, 6)}),
    "ddim_loop": scripted(
        Sampler, {"x": numbers(2, 8), "steps": torch.tensor(5)}, {"x": numbers(3, 8), "steps": torch.tensor(9)}
    ),
    "deepar": scripted(
        Forecast, *({"past": numbers(n, 2, 3), "future": numbers(m, 2, 2)} for n, m in ((8, 5), (10, 7)))
    ),
    "kalman": scripted(Filter, {"seen": numbers(5, 2)}, {"seen": numbers(9, 2)}),
    "layernorm_lstm": scripted(NormedCells, {"x": numbers(5, 2, 6)}, {"x": numbers(8, 3, 6)}),
    "ntm": scripted(Memory, {"x": numbers(4, 2, 4)}, {"x": numbers(7, 3, 4)}),
    "ode_adaptive": scripted(Solver, {"x": numbers(2, 4)}, {"x": numbers(3, 4)}),
    "retnet_chunks": scripted(Retention, {"x": numbers(2, 16, 16)}, {"x": numbers(1, 32, 16)}),
    "rnnt_greedy": scripted(Transducer, {"x": numbers(6, 6)}, {"x": numbers(10, 6)}),
    "rwkv7_loop": scripted(StateMatrix, {"x": numbers(2, 6, 16)}, {"x": numbers(3, 9, 16)}),
    "ssm_loop": scripted(Selective, {"x": numbers(6, 2, 6)}, {"x": numbers(9, 3, 6)}),
    "tree_lstm": scripted(Tree, *TREES),
    "beam_search": scripted(
        Search,
        {"state": numbers(1, 8), "steps": torch.tensor(4)},
        {"state": numbers(1, 8) / 2, "steps": torch.tensor(7)},
    ),
    "growing_cache_loop": scripted(
        SpeakTokens,
        {"first": words(2, 1)[:, 0], "steps": torch.tensor(4)},
        {"first": words(2, 3)[:, 0], "steps": torch.tensor(9)},
    ),
}
TRACED: dict[str, Make] = {
    "deepfm_hash": lambda: (Factors(), [{"ids": words(2, 5, 9999)}, {"ids": words(3, 5, 9999)}]),
    "dlrm_bag": lambda: (Bags(), [bags(3, 8), bags(4, 13)]),
    "lstm_lm": lambda: (LanguageModel(), [states(5, 2), states(8, 2)]),
    "nbeats": lambda: (Blocks(), [{"x": numbers(2, 12)}, {"x": numbers(5, 12)}]),
    "realnvp": lambda: (Flow(), [{"x": numbers(2, 6)}, {"x": numbers(5, 6)}]),
}
EXPORTED: dict[str, Make] = {
    "dcn": lambda: (Deformed(), [{"x": numbers(1, 4, 8, 8)}, {"x": numbers(2, 4, 8, 8)}]),
    "lstm_lm": TRACED["lstm_lm"],
    "mingru": lambda: (ParallelUnit(), [{"x": numbers(2, 6, 8)}, {"x": numbers(3, 9, 8)}]),
    "s4d_fft": lambda: (Kernel(), [{"x": numbers(2, 4, 32)}, {"x": numbers(3, 4, 32)}]),
    "ssm_scan": lambda: (SelectiveScan(), [{"x": numbers(6, 2, 6)}, {"x": numbers(6, 2, 6) / 2}]),
    "while_decoder": lambda: (Chat(), [{"first": words(2, 1)[:, 0]}, {"first": words(3, 1)[:, 0]}]),
    "deepfm_hash": TRACED["deepfm_hash"],
    "nbeats": TRACED["nbeats"],
    "realnvp": TRACED["realnvp"],
}
for name, make in {**SCRIPTED, **TRACED}.items():
    add(RECIPES, f"own_{name}_script", make, dynamo=False)
for name, make in EXPORTED.items():
    add(RECIPES, f"own_{name}", make)
