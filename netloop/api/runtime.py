"""From plans to engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netloop.api.allocators import IGpuAllocator
from netloop.api.engine import ICudaEngine
from netloop.api.engine_plan import read_plan
from netloop.api.enums import DLAWorkspaceAllocationStrategy, ErrorCodeTRT, TempfileControlFlag
from netloop.api.logger import ILogger
from netloop.api.observers import IErrorRecorder
from netloop.api.streams import IStreamReaderV2, read_from
from netloop.checked_attributes import Settings, none_or, whole
from netloop.diagnostics import NetloopError
from netloop.graph.layer import check_instance
from netloop.plugins.registry import IPluginRegistry, get_plugin_registry


class Runtime(Settings):
    """Makes engines of plans.

    Plans hold no code and need no other processor, so that most attributes are recorded and change nothing; the log
    tells once of those that were set.

    Attributes:
        error_recorder: what is told of errors; None if nothing is.
    """

    DLA_core: int = -1
    dla_workspace_allocation_strategy: DLAWorkspaceAllocationStrategy = DLAWorkspaceAllocationStrategy.DEFAULT
    engine_host_code_allowed: bool = False
    error_recorder: IErrorRecorder | None = None
    gpu_allocator: IGpuAllocator | None = None
    max_threads: int = 1
    tempfile_control_flags: int = sum(1 << int(each) for each in TempfileControlFlag)
    temporary_directory: str = ""

    CHECKS = {
        "error_recorder": none_or(IErrorRecorder),
        "gpu_allocator": none_or(IGpuAllocator),
        "max_threads": whole(1),
        "tempfile_control_flags": whole(0),
    }

    def __init__(self, logger: ILogger) -> None:
        self._logger: ILogger = check_instance("logger", logger, ILogger)
        self._told: set[str] = {"error_recorder"}

    @property
    def logger(self) -> ILogger:
        """What its messages go to."""
        return self._logger

    @property
    def num_DLA_cores(self) -> int:
        """0: there is no DLA."""
        return 0

    def deserialize_cuda_engine(
        self, serialized_engine: Any = None, *, stream_reader_v2: IStreamReaderV2 | None = None
    ) -> ICudaEngine | None:
        """The engine of a plan; None, with the reason in the log, if it is damaged, cut short, or no plan.

        Args:
            serialized_engine: the bytes of the plan, or a stream reader.
            stream_reader_v2: a stream reader, from which the plan is read in order.
        """
        source = serialized_engine if stream_reader_v2 is None else stream_reader_v2
        self._tell_of_settings()
        try:
            network, origin = read_plan(read_from(source) if isinstance(source, IStreamReaderV2) else _bytes(source))
            return ICudaEngine(network, replace(origin, logger=self._logger))
        except NetloopError as error:
            self._logger.log(ILogger.ERROR, str(error))
            if self.error_recorder is not None:
                self.error_recorder.report_error(ErrorCodeTRT.INVALID_ARGUMENT, str(error))
            return None

    def get_plugin_registry(self) -> IPluginRegistry:
        """The registry of plugins, which is the same for all."""
        return get_plugin_registry()

    def load_runtime(self, path: str) -> Runtime:
        """This runtime: it reads the plans of all versions before its own, and no code is loaded from ``path``."""
        check_instance("path", path, str)
        self._logger.log(ILogger.INFO, f"of no effect here, as plans hold no code: load_runtime({path!r})")
        return self

    def _tell_of_settings(self) -> None:
        names = [name for name in self.changed() if name not in self._told]
        if names:
            self._told.update(names)
            self._logger.log(ILogger.INFO, f"of no effect here, as XLA runs the engine: {', '.join(names)}")

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def _bytes(source: Any) -> memoryview:
    try:
        return memoryview(source)
    except TypeError:
        what = f"serialized_engine is the bytes of a plan, or an IStreamReaderV2, not {type(source).__name__}"
        raise TypeError(what) from None
