"""Constants, ranges and shapes of onnxruntime (com.microsoft)."""

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.model.graph.tensor import ITensor


@microsoft("Range")
def range_(call: NodeCall, start: ITensor, limit: ITensor, step: Maybe = None) -> ITensor:
    """The numbers from a start up to, but excluding, a limit; by default in steps of 1."""
    make = call.make
    step = make.constant(np.ones((), start.type.dtype)) if step is None else step
    return make.arange_between(*map(make.scalar, (start, limit, step)))
