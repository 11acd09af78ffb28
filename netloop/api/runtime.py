"""The runtime, which deserializes plans to engines."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any

from netloop.api.allocators import IGpuAllocator
from netloop.api.current_gpu import current_gpu
from netloop.api.engine import ICudaEngine
from netloop.api.engine_plan import read_plan
from netloop.api.enums import DLAWorkspaceAllocationStrategy, EngineCapability, ErrorCodeTRT, TempfileControlFlag
from netloop.api.logger import ILogger
from netloop.api.observers import LoggedObject
from netloop.api.streams import IStreamReader, IStreamReaderV2, read_from
from netloop.model.graph.attributes import check_instance, check_member
from netloop.model.plugins.registry import IPluginRegistry, get_plugin_registry
from netloop.values.checked_attributes import WithStatement, none_or, whole
from netloop.values.diagnostics import NetloopError

READERS = (IStreamReader, IStreamReaderV2)


class Runtime(WithStatement, LoggedObject):
    """Deserialize plans to engines.

    Plans hold no code and need no particular processor, so most attributes are recorded without effect; those that were
    set are logged once.
    """

    DLA_core: int = -1
    dla_workspace_allocation_strategy: DLAWorkspaceAllocationStrategy = DLAWorkspaceAllocationStrategy.DEFAULT
    engine_host_code_allowed: bool = False
    gpu_allocator: IGpuAllocator | None = None
    tempfile_control_flags: int = sum(1 << int(flag) for flag in TempfileControlFlag)
    temporary_directory: str = ""

    CHECKS = {"gpu_allocator": none_or(IGpuAllocator), "tempfile_control_flags": whole(0)}

    def __init__(self, logger: ILogger) -> None:
        super().__init__(logger)
        self._logged: set[str] = {"error_recorder"}

    @property
    def num_DLA_cores(self) -> int:
        """0: netloop supports no DLA."""
        return 0

    def deserialize_cuda_engine(
        self,
        serialized_engine: Any = None,
        *,
        stream_reader: IStreamReader | None = None,
        stream_reader_v2: IStreamReaderV2 | None = None,
    ) -> ICudaEngine | Any:
        """Deserialize a plan from its bytes or from a stream reader, which is read in order.

        The engine computes on the GPU of ``cudaSetDevice``, as in TensorRT, if that is another than the first, and
        otherwise on JAX's default device, which is that of ``jax.default_device`` around the call.
        None, with the reason in the log, if the plan is damaged, truncated, or not a plan.
        """
        source = next((reader for reader in (stream_reader, stream_reader_v2) if reader is not None), serialized_engine)
        self._log_ignored_settings()
        try:
            network, options = read_plan(read_from(source) if isinstance(source, READERS) else _bytes(source))
            engine = ICudaEngine(network, replace(options, logger=self._logger, device=current_gpu()))
            if self.error_recorder is not None:
                engine.error_recorder = self.error_recorder
            return engine
        except NetloopError as error:
            self._log_error(ErrorCodeTRT.INVALID_ARGUMENT, str(error))
            return None

    def get_plugin_registry(self) -> IPluginRegistry:
        """Return the global registry of plugins."""
        return get_plugin_registry()

    def load_runtime(self, path: str) -> Runtime:
        """Return this runtime, which reads the plans of all earlier versions; no code is loaded from ``path``."""
        check_instance("path", path, str)
        self._logger.log(ILogger.INFO, f"no effect in netloop, because plans hold no code: load_runtime({path!r})")
        return self

    def _log_ignored_settings(self) -> None:
        names = [name for name in self.changed() if name not in self._logged]
        if names:
            self._logged.update(names)
            self._logger.log(ILogger.INFO, f"no effect in netloop, because XLA runs the engine: {', '.join(names)}")


def init_libnvinfer_plugins(logger: ILogger | None, namespace: str) -> bool:
    """Do nothing and return True: plugins, ``EfficientNMS_TRT`` among them, are registered when they are defined."""
    if logger is not None:
        check_instance("logger", logger, ILogger)
    check_instance("namespace", namespace, str)
    return True


def get_builder_plugin_registry(capability: EngineCapability) -> IPluginRegistry:
    """Return the registry of plugins for builds, the same for every capability: the global one."""
    check_member("capability", capability, EngineCapability)
    return get_plugin_registry()


def get_nv_onnx_parser_version() -> int:
    """Return the version of the interface of ``OnnxParser``, 0.1.0 as in TensorRT, as a number."""
    return 100


def _bytes(source: Any) -> bytes | memoryview:
    try:
        return source if isinstance(source, bytes) else memoryview(source)
    except TypeError:
        hint = ": write open(path, 'rb').read()" if isinstance(source, str | PathLike) else ""
        hint = ": the build returned None, and logged why" if source is None else hint
        what = f"serialized_engine is the bytes of a plan, or an IStreamReaderV2, not {type(source).__name__}{hint}"
        raise TypeError(what) from None
