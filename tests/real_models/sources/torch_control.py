"""Loops and conditionals, by TorchScript and by torch.cond, while_loop and scan."""

import torch
from torch import Tensor, nn

# pyright: reportPrivateImportUsage=false
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Make, add

RECIPES = Recipes()


class Newton(nn.Module):
    """Square roots by Newton's method, until the step is small."""

    def forward(self, x: Tensor) -> Tensor:
        guess = x
        step = torch.ones(1)
        while bool(step.max() > 1e-4):
            better = (guess + x / guess) / 2
            step = (better - guess).abs()
            guess = better
        return guess


class Rows(nn.Module):
    """A loop over rows, which collects only some of them."""

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for row in x:
            if bool(row.sum() > 0):
                kept.append(torch.tanh(row))
            else:
                kept.append(row * 2)
        return torch.stack(kept)


class Greedy(nn.Module):
    """A decoder that feeds its own choice back, until an end token or a limit."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.cell = nn.Linear(16, 8)
        self.head = nn.Linear(8, 11)

    def forward(self, state: Tensor, limit: int) -> Tensor:
        token = torch.zeros(state.size(0), dtype=torch.long)
        made: list[Tensor] = []
        for _ in range(limit):
            state = torch.tanh(self.cell(torch.cat([self.embed(token), state], 1)))
            token = self.head(state).argmax(-1)
            made.append(token)
        return torch.stack(made, 1)


class Nested(nn.Module):
    """Two nested loops with a carried sum."""

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(x.size(1))
        for i in range(x.size(0)):
            for j in range(i + 1):
                total = total + x[i] * x[j]
        return total


class Branch(nn.Module):
    """A conditional on a value, with results of one shape."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            y = x * 2
            z = y.relu()
        else:
            z = x.sin()
        return z + 1


class Cond(nn.Module):
    """torch.cond."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.layer(x).relu(), lambda x: x.cos(), (x,))


class While(nn.Module):
    """while_loop."""

    def forward(self, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        return while_loop(lambda i, x: i > 0, lambda i, x: (i - 1, torch.sin(x) + 0.5), (n, x))


class Scan(nn.Module):
    """scan, with a recurrent cell."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(8, 4)

    def forward(self, state: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        def step(state: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            state = torch.tanh(self.cell(torch.cat([state, x], -1)))
            return state, state * 2

        return scan(step, state, x)


class WhileInCond(nn.Module):
    """A while_loop in one branch of torch.cond."""

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        def longer(x: Tensor, n: Tensor) -> Tensor:
            return while_loop(lambda i, x: i > 0, lambda i, x: (i - 1, torch.tanh(x) * 1.5), (n, x))[1]

        return torch.cond(x.sum() > 0, longer, lambda x, n: x.cos() + n, (x, n))


class NestedCond(nn.Module):
    """torch.cond in a branch of torch.cond."""

    def forward(self, x: Tensor) -> Tensor:
        def inner(x: Tensor) -> Tensor:
            return torch.cond(x.max() > 1, lambda x: x / x.max(), lambda x: x.exp(), (x,))

        return torch.cond(x.sum() > 0, inner, lambda x: -x, (x,))


class PowerIteration(nn.Module):
    """The largest eigenvalue, until it changes little."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        matrix = x.T @ x + torch.eye(x.shape[1])

        def step(v: Tensor, value: Tensor, change: Tensor, i: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            w = matrix @ v
            better = w.norm()
            return w / better, better, (better - value).abs(), i + 1

        def more(v: Tensor, value: Tensor, change: Tensor, i: Tensor) -> Tensor:
            return (change > 1e-4) & (i < 200)

        start = torch.ones(x.shape[1]), torch.zeros(()), torch.ones(()), torch.zeros((), dtype=torch.int64)
        v, value, _, _ = while_loop(more, step, start)
        return v, value


class ScanOfCells(nn.Module):
    """An LSTM cell by scan, with its states and gates as outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(12, 16)

    def forward(self, h: Tensor, c: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        def step(state: tuple[Tensor, Tensor], x: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
            h, c = state
            i, f, o, g = self.cell(torch.cat([h, x], -1)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            return (h, c), (h + 0, f.sigmoid())

        (h, c), (states, gates) = scan(step, (h, c), x)
        return h, c, states, gates


class ScanBackwards(nn.Module):
    """Discounted returns, from the last reward to the first."""

    def forward(self, rewards: Tensor) -> Tensor:
        def step(total: Tensor, reward: Tensor) -> tuple[Tensor, Tensor]:
            total = 0.9 * total + reward
            return total, total + 0

        return scan(step, torch.zeros(rewards.shape[1]), rewards, reverse=True)[1]


def rows(count: int, width: int = 4) -> Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(count))


def scripted(model: type[nn.Module], *sizes: dict[str, Tensor]) -> Make:
    return lambda: (torch.jit.script(model().eval()), list(sizes))


ROWS = [{"x": rows(n)} for n in (3, 6)]
SIGNS = [{"x": rows(3).abs()}, {"x": -rows(5).abs()}]

add(RECIPES, "script_newton", scripted(Newton, *({"x": x["x"].abs() + 0.5} for x in ROWS)), dynamo=False)
add(RECIPES, "script_rows", scripted(Rows, *ROWS), dynamo=False)
limits = [{"state": rows(2, 8), "limit": torch.tensor(n)} for n in (4, 7)]
add(RECIPES, "script_greedy", scripted(Greedy, *limits), dynamo=False)
add(RECIPES, "script_nested", scripted(Nested, *ROWS), dynamo=False)
add(RECIPES, "script_branch", scripted(Branch, *SIGNS), dynamo=False)
add(RECIPES, "dynamo_cond", lambda: (Cond(), SIGNS))
counts = [{"x": rows(3), "n": torch.tensor(n)} for n in (3, 8)]
add(RECIPES, "dynamo_while", lambda: (While(), counts))
add(RECIPES, "dynamo_scan", lambda: (Scan(), [{"state": rows(1)[0], "x": rows(n)} for n in (4, 4)]))
add(RECIPES, "dynamo_while_in_cond", lambda: (WhileInCond(), [{"x": x["x"], "n": torch.tensor(4)} for x in SIGNS]))
add(RECIPES, "dynamo_cond_nested", lambda: (NestedCond(), SIGNS))
add(RECIPES, "dynamo_while_eigenvalue", lambda: (PowerIteration(), ROWS))
states = [{"h": rows(n), "c": rows(n) / 2, "x": rows(6 * n, 8).unflatten(0, (6, n))} for n in (2, 3)]
add(RECIPES, "dynamo_scan_lstm", lambda: (ScanOfCells(), states))
add(RECIPES, "dynamo_scan_backwards", lambda: (ScanBackwards(), [{"rewards": rows(6)}, {"rewards": rows(6) * 2}]))
