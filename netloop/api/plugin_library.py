"""What scripts say of TensorRT's own plugins before they begin. There are none."""

from __future__ import annotations

from netloop.api.logger import ILogger
from netloop.graph.layer import check_instance


def init_libnvinfer_plugins(logger: ILogger | None, namespace: str) -> bool:
    """True: TensorRT's own plugins are not there, and those that a script registers need no word before."""
    if logger is not None:
        check_instance("logger", logger, ILogger)
    check_instance("namespace", namespace, str)
    return True
