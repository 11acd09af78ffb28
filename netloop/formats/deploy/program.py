"""Networks as StableHLO, in a file."""

from collections.abc import Sequence
from pathlib import Path

from netloop.formats import stablehlo
from netloop.model.network import INetworkDefinition


def save(
    network: INetworkDefinition,
    path: Path,
    shapes: stablehlo.Shapes | None,
    batch: str | None,
    platforms: Sequence[str] | None = None,
) -> None:
    """Write the program of a network, as text if the suffix is ``.mlir``."""
    program = stablehlo.exported(network, shapes, platforms=platforms, batch=batch)
    stablehlo.save(program, path, as_text=path.suffix.lower() == ".mlir")
