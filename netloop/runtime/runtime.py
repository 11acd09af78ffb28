"""From plans to engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netloop.diagnostics import NetloopError
from netloop.graph.layer import check_instance
from netloop.plugins.registry import IPluginRegistry, get_plugin_registry
from netloop.runtime.engine import ICudaEngine
from netloop.runtime.logger import ILogger
from netloop.runtime.observers import IErrorRecorder
from netloop.runtime.planning import read_plan
from netloop.settings import Settings, none_or, whole


class Runtime(Settings):
    """Makes engines of plans.

    Attributes:
        error_recorder: what is told of errors; None if nothing is.
        max_threads: recorded, and of no effect.
    """

    error_recorder: IErrorRecorder | None = None
    max_threads: int = 1

    CHECKS = {"error_recorder": none_or(IErrorRecorder), "max_threads": whole(1)}

    def __init__(self, logger: ILogger) -> None:
        self._logger: ILogger = check_instance("logger", logger, ILogger)

    @property
    def logger(self) -> ILogger:
        """What its messages go to."""
        return self._logger

    def deserialize_cuda_engine(self, serialized_engine: Any) -> ICudaEngine | None:
        """The engine of a plan; None, with the reason in the log, if it is damaged, cut short, or no plan."""
        try:
            network, origin = read_plan(memoryview(serialized_engine))
            return ICudaEngine(network, replace(origin, logger=self._logger))
        except NetloopError as error:
            self._logger.log(ILogger.ERROR, str(error))
            return None

    def get_plugin_registry(self) -> IPluginRegistry:
        """The registry of plugins, which is the same for all."""
        return get_plugin_registry()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
