"""Streams of the host whose work is captured, to be done later as a graph, as stand-ins for CUDA's packages do."""

from collections.abc import Callable

Work = Callable[[int], bool]
"""Something to do on the stream of a number; it returns whether it succeeded."""

CAPTURES: dict[int, list[Work]] = {}
"""The work that was captured so far, by the numbers of the streams that are captured now."""


def enqueue(stream: int, work: Work) -> bool:
    """Do work on a stream, or capture it; return whether it succeeded, or was captured."""
    capture = CAPTURES.get(stream)
    if capture is None:
        return work(stream)
    capture.append(work)
    return True
