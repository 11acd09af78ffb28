"""The graphs of CUDA's runtime, on the host: the work of a stream is captured, and done at each launch.

Copies, memsets and runs of contexts are captured, with their addresses and shapes.

Source: https://nvidia.github.io/cuda-python/cuda-bindings/latest/module/runtime.html
"""

from enum import IntEnum
from functools import partial
from typing import Any

from netloop.process.stream_captures import CAPTURES, Work, enqueue
from netloop.tools.compat.handles import STREAMS, Handles
from netloop.tools.compat.status import CaptureUnsupported, IllegalState, LaunchFailure, cudaError_t, returning

GRAPHS, INSTANCES = Handles("graph"), Handles("instance of a graph")
_WORK: dict[tuple[Handles, int], tuple[Work, ...]] = {}
"""The work of each graph and each instance."""

_status = partial(returning, cudaError_t)


class cudaStreamCaptureMode(IntEnum):
    """The calls of other threads that a capture forbids on a GPU; none here."""

    cudaStreamCaptureModeGlobal = 0
    cudaStreamCaptureModeThreadLocal = 1
    cudaStreamCaptureModeRelaxed = 2


class cudaStreamCaptureStatus(IntEnum):
    """Whether a stream is captured."""

    cudaStreamCaptureStatusNone = 0
    cudaStreamCaptureStatusActive = 1
    cudaStreamCaptureStatusInvalidated = 2


class cudaGraph_t(int):
    """A graph."""


class cudaGraphExec_t(int):
    """An instance of a graph, which can be launched."""


def check_not_captured(stream: Any) -> None:
    """Check that a stream may be waited for.

    Raises:
        CaptureUnsupported: its work is captured.
    """
    if int(stream) in CAPTURES:
        raise CaptureUnsupported(f"the work of stream {int(stream)} is captured, and is not done before it is launched")


@_status()
def cudaStreamBeginCapture(stream: Any, mode: Any = 0) -> None:
    """Begin to capture the work of a stream, instead of doing it."""
    STREAMS.check(stream)
    if int(stream) == 0:
        raise CaptureUnsupported("the work of the default stream cannot be captured; create one with cudaStreamCreate")
    if int(stream) in CAPTURES:
        raise IllegalState(f"the work of stream {int(stream)} is captured already")
    CAPTURES[int(stream)] = []


@_status(1)
def cudaStreamEndCapture(stream: Any) -> cudaGraph_t:
    """End a capture; the graph has its work."""
    STREAMS.check(stream)
    if int(stream) not in CAPTURES:
        raise IllegalState(f"the work of stream {int(stream)} is not captured")
    return cudaGraph_t(_kept(GRAPHS, CAPTURES.pop(int(stream))))


@_status(1)
def cudaStreamIsCapturing(stream: Any) -> cudaStreamCaptureStatus:
    STREAMS.check(stream)
    return cudaStreamCaptureStatus(int(stream) in CAPTURES)


@_status(1)
def cudaGraphInstantiate(graph: Any, flags: int = 0, *log: Any) -> cudaGraphExec_t:
    """An instance of a graph, with the same work."""
    GRAPHS.check(graph)
    return cudaGraphExec_t(_kept(INSTANCES, _WORK[GRAPHS, int(graph)]))


cudaGraphInstantiateWithFlags = cudaGraphInstantiate


@_status()
def cudaGraphUpload(graphExec: Any, stream: Any) -> None:
    """Prepare a launch."""
    INSTANCES.check(graphExec)
    STREAMS.check(stream)


@_status()
def cudaGraphLaunch(graphExec: Any, stream: Any) -> None:
    """Do the work of a graph on a stream."""
    INSTANCES.check(graphExec)
    STREAMS.check(stream)
    for work in _WORK[INSTANCES, int(graphExec)]:
        if not enqueue(int(stream), work):
            raise LaunchFailure("a run of the graph failed; the log of its engine says why")


@_status()
def cudaGraphDestroy(graph: Any) -> None:
    GRAPHS.destroy(graph)
    _WORK.pop((GRAPHS, int(graph)))


@_status()
def cudaGraphExecDestroy(graphExec: Any) -> None:
    INSTANCES.destroy(graphExec)
    _WORK.pop((INSTANCES, int(graphExec)))


def _kept(handles: Handles, work: Any) -> int:
    handle = handles.create()
    _WORK[handles, handle] = (*work,)
    return handle
