"""Networks on graphs by torch-geometric, and a flow by nflows, with random weights."""

from typing import Any

import torch
import torch_geometric.nn as geometric
from nflows import distributions, flows, transforms
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import add

RECIPES = Recipes()


class Graph(nn.Module):
    """Two convolutions on a graph, whose nodes are pooled."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.second(self.first(x, edges).relu(), edges)


def graph(nodes: int, edges: int) -> dict[str, Tensor]:
    """Random features of nodes, and edges between two nodes each."""
    chance = torch.Generator().manual_seed(nodes)
    pairs = torch.randint(0, nodes, (2, edges), generator=chance)
    return {"x": torch.randn(nodes, 6, generator=chance), "edges": pairs}


def convolutions(kind: str, *options: Any, **more: Any) -> Any:
    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        layer = getattr(geometric, kind)
        model = Graph(layer(6, 8, *options, **more), layer(8, 4, *options, **more))
        return model, [graph(7, 15), graph(10, 24)]

    return make


def isomorphism() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    def perceptron(before: int, after: int) -> nn.Module:
        return nn.Sequential(nn.Linear(before, 8), nn.ReLU(), nn.Linear(8, after))

    return Graph(geometric.GINConv(perceptron(6, 8)), geometric.GINConv(perceptron(8, 4))), [
        graph(7, 15),
        graph(10, 24),
    ]


def aggregations() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    options = {
        "aggregators": ["mean", "max", "std"],
        "scalers": ["identity", "amplification"],
        "deg": torch.tensor([0, 3, 5, 2]),
    }
    return Graph(geometric.PNAConv(6, 8, **options), geometric.PNAConv(8, 4, **options)), [graph(7, 15), graph(10, 24)]


class Density(nn.Module):
    """The logarithm of the density of a flow."""

    def __init__(self, flow: nn.Module) -> None:
        super().__init__()
        self.flow = flow

    def forward(self, x: Tensor) -> Tensor:
        return self.flow.log_prob(x)


def spline_flow() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    layer = transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
        features=4, hidden_features=16, num_bins=5, tails="linear", tail_bound=3.0, num_blocks=1
    )
    flow = flows.Flow(
        transforms.CompositeTransform([layer, transforms.ReversePermutation(4)]), distributions.StandardNormal([4])
    )
    return Density(flow), [{"x": torch.randn(n, 4, generator=torch.Generator().manual_seed(n))} for n in (5, 9)]


MAKES: dict[str, Any] = {
    "gcn": convolutions("GCNConv"),
    "gat": convolutions("GATConv"),
    "gatv2": convolutions("GATv2Conv"),
    "cheb": convolutions("ChebConv", 3),
    "sage_max": convolutions("SAGEConv", aggr="max"),
    "transformer": convolutions("TransformerConv"),
    "tag": convolutions("TAGConv"),
    "edge_mean": convolutions("GraphConv", aggr="mean"),
    "gin": isomorphism,
    "pna": aggregations,
}
for name, make in MAKES.items():
    add(RECIPES, f"gnn_{name}_script", make, dynamo=False, opset_version=18)
for name in ("gin",):
    add(RECIPES, f"gnn_{name}", MAKES[name])
add(RECIPES, "nf_spline_flow_script", spline_flow, dynamo=False)
