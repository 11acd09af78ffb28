"""Random numbers."""

import numpy as np

from netloop.formats.openvino.exporter.operators import IrPort, LayerBuilder, OnnxNode, exports


@exports("RandomUniformLike")
def random_uniform(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    return _uniform(build, x, 0)


@exports("RandomNormalLike")
def random_normal(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """Normal numbers, each from two uniform ones (G. E. P. Box and M. E. Muller, 1958)."""
    u, v = (_uniform(build, x, seed) for seed in (1, 2))
    left = build.pointwise("Subtract", build.number_like(1, u), u)
    length = build.pointwise("Multiply", build.op("Log", 1, left, shape=x.shape), build.number_like(-2, u))
    turn = build.op("Cos", 1, build.pointwise("Multiply", v, build.number_like(2 * np.pi, v)), shape=x.shape)
    return build.pointwise("Multiply", build.op("Sqrt", 1, length, shape=x.shape), turn)


def _uniform(build: LayerBuilder, x: IrPort, seed: int) -> IrPort:
    """Uniform numbers from 0 to 1 in the shape of ``x``."""
    return build.cast(build.random_numbers(seed, x), x.dtype)
