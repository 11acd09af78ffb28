"""The inputs and outputs of an engine, with its profiles and its log."""

from functools import cached_property

from netloop.api.build_options import BuildOptions
from netloop.api.engine_core import EngineCore
from netloop.api.enums import ErrorCodeTRT
from netloop.api.logger import ILogger, Logger
from netloop.api.observers import IErrorRecorder, report_error
from netloop.api.profile import IOptimizationProfile
from netloop.api.profile_shapes import types_within
from netloop.model.check import require_valid
from netloop.model.graph.attributes import check_instance
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.cache import IKVCacheUpdateLayer
from netloop.model.layers.sources import IConstantLayer
from netloop.values.checked_attributes import integer, item
from netloop.values.diagnostics import Finding, did_you_mean, listed, quoted
from netloop.values.dims import Dims
from netloop.values.enums import DataType, TensorFormat, TensorIOMode, TensorLocation
from netloop.values.string_arrays import type_name
from netloop.values.types import UNKNOWN

LINEAR_BIT = 1 << int(TensorFormat.LINEAR)

TYPE_NAMES = {
    DataType.FLOAT: "FP32",
    DataType.HALF: "FP16",
    DataType.BF16: "BF16",
    DataType.INT32: "INT32",
    DataType.INT64: "INT64",
    DataType.INT8: "INT8",
    DataType.UINT8: "UINT8",
    DataType.BOOL: "BOOL",
    DataType.FP8: "FP8",
}
"""TensorRT's names of element types in descriptions of layouts."""


class EngineTensors(EngineCore):
    """The part of an engine that its contexts use."""

    build_options: BuildOptions
    error_recorder: IErrorRecorder | None

    @property
    def name(self) -> str:
        """The name of the network."""
        return self.network.name

    @property
    def num_io_tensors(self) -> int:
        """The number of inputs and outputs."""
        return len(self._tensors())

    @property
    def tensor_names(self) -> list[str]:
        """The names of the inputs, as they were added, and of the outputs, as they were marked."""
        return [tensor.name for tensor in self._tensors()]

    @property
    def num_optimization_profiles(self) -> int:
        """The number of optimization profiles, 1 if none was given."""
        return max(1, len(self.build_options.profiles))

    def get_tensor_name(self, index: int) -> str:
        """The name of an input or output, of the index in ``tensor_names``.

        Raises:
            IndexError: there is none of this index.
        """
        return item(self.tensor_names, index, "input or output", "the engine")

    def __getitem__(self, index: int) -> str:
        return self.get_tensor_name(index)

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        """Whether a tensor is an input, an output, or neither."""
        tensor = self.find_tensor(name)
        if tensor is None:
            return TensorIOMode.NONE
        return TensorIOMode.INPUT if tensor.is_network_input else TensorIOMode.OUTPUT

    # for a name that is none of theirs, these methods log an error and return what TensorRT's do

    def get_tensor_dtype(self, name: str) -> DataType:
        """The element type of an input or output; FLOAT, with an error in the log, if there is none of this name."""
        tensor = self._named(name)
        return DataType.FLOAT if tensor is None else tensor.dtype

    def get_tensor_shape(self, name: str) -> Dims:
        """The shape of an input or output, with -1 for each length that can differ between calls within profiles.

        ``(-1,)``, with an error in the log, if there is none of this name.
        """
        tensor = self._named(name)
        if tensor is None:
            return Dims((UNKNOWN,))
        known = self._types_within_profiles.of(tensor)
        return tensor.shape if isinstance(known, Finding) else Dims(known.shape)

    def get_tensor_location(self, name: str) -> TensorLocation:
        """HOST for an input whose value decides a shape and for a shape output, DEVICE for the rest."""
        return TensorLocation.HOST if self.is_shape_inference_io(name) else TensorLocation.DEVICE

    def is_shape_inference_io(self, name: str) -> bool:
        """Whether the value of an input decides a shape, or an output was marked for shapes."""
        tensor = self._named(name)
        return tensor is not None and (tensor in self.host_inputs or tensor in self.network.marks.shapes)

    @property
    def host_inputs(self) -> list[ITensor]:
        """The inputs whose values a context reads to know shapes: those of fixed shape, as TensorRT's shape tensors.

        The shapes that depend on the values of others are known when a run ends, to an output allocator.
        """
        return [tensor for tensor in self.shape_inputs if tensor.type.is_fixed]

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Dims]:
        """The minimum, optimum and maximum shape of an input in a profile; its own shape three times if none is set."""
        return self.profile_of(profile_index).get_shape(name) or [self.get_tensor_shape(name)] * 3

    def get_tensor_profile_values(self, name: str | int, profile_index: int | str) -> list[list[int]]:
        """The minimum, optimum and maximum values of a shape input in a profile; empty if none are set.

        TensorRT names the parameters in this order, and takes the index first; both orders mean the same here.
        """
        label, index = (profile_index, name) if isinstance(profile_index, str) else (name, profile_index)
        self._named(check_instance("name", label, str))
        return self.profile_of(integer("profile_index", index)).get_shape_input(str(label))

    def get_tensor_format(self, name: str, profile_index: int = 0) -> TensorFormat:
        """The layout at the address of a tensor: HWC if its ``allowed_formats`` have it and not LINEAR, else LINEAR.

        In HWC, the axis third from last varies fastest. A call of the engine takes and returns arrays without it.
        """
        tensor = self._named(name)
        if tensor is None:
            return TensorFormat.LINEAR
        is_hwc = tensor.allowed_formats & 1 << int(TensorFormat.HWC) and tensor.type.rank >= 3
        return TensorFormat.HWC if is_hwc and not tensor.allowed_formats & LINEAR_BIT else TensorFormat.LINEAR

    def get_tensor_format_desc(self, name: str, profile_index: int = 0) -> str:
        """The layout of a tensor, in TensorRT's words."""
        tensor = self._named(name)
        if tensor is None:
            return ""
        kind = TYPE_NAMES.get(tensor.dtype, type_name(tensor.type.dtype))
        is_linear = self.get_tensor_format(name) is TensorFormat.LINEAR
        return f"Row major linear {kind} format (kLINEAR)" if is_linear else f"Channel last {kind} format (kHWC)"

    def get_tensor_vectorized_dim(self, name: str, profile_index: int = 0) -> int:
        """-1: no axis is vectorized."""
        self._named(name)
        return -1

    get_tensor_components_per_element = get_tensor_bytes_per_component = get_tensor_vectorized_dim

    def get_aliased_input_tensor(self, name: str) -> str | None:
        """The cache input that TensorRT writes in place for an output, and scripts bind to the same address; else None.

        Here every output may share memory with any input, and none has to: a run reads all inputs first.
        """
        tensor = self._named(name)
        producer = None if tensor is None else tensor.producer
        cache = producer.inputs[0] if isinstance(producer, IKVCacheUpdateLayer) else None
        return cache.name if cache is not None and cache.is_network_input else None

    def is_debug_tensor(self, name: str) -> bool:
        """Whether a tensor of this name was marked by ``mark_debug``."""
        check_instance("name", name, str)
        return any(tensor.name == name for tensor in self.network.marks.debug)

    @cached_property
    def unfused_tensors(self) -> list[ITensor]:
        """The tensors that are computed outside loops and branches."""
        steps = require_valid(self.network).block.steps
        return [tensor for step in steps for tensor in step.writes if not isinstance(tensor.producer, IConstantLayer)]

    @cached_property
    def _types_within_profiles(self) -> TypeTable:
        return types_within(self.network, self.build_options.profiles)

    def profile_of(self, index: int) -> IOptimizationProfile:
        """An optimization profile; an empty one if none was given.

        Raises:
            IndexError: there is none of this index.
        """
        profiles = self.build_options.profiles or [IOptimizationProfile()]
        return item(profiles, index, "optimization profile", "the engine")

    def log(self, severity: ILogger.Severity, what: str) -> None:
        """Log a message, if the engine has a logger."""
        if self.build_options.logger is not None:
            self.build_options.logger.log(severity, what)

    def log_error(self, what: str) -> None:
        """Log an error, and pass it to the error recorder; without either, print it to standard error."""
        logger = self.build_options.logger
        if logger is None and self.error_recorder is None:
            logger = Logger()  # who sees False alone cannot know why
        report_error(logger, self.error_recorder, ErrorCodeTRT.FAILED_EXECUTION, what)

    def find_tensor(self, name: str) -> ITensor | None:
        """The input or output of a name, or None."""
        return self._by_name.get(name) if isinstance(name, str) else None

    @cached_property
    def _by_name(self) -> dict[str, ITensor]:
        """The inputs and outputs; contexts look them up in each run."""
        return {tensor.name: tensor for tensor in self._tensors()}

    @cached_property
    def hwc_tensors(self) -> frozenset[str]:
        """The names of the tensors that have the layout HWC at their addresses."""
        return frozenset(name for name in self._by_name if self.get_tensor_format(name) is TensorFormat.HWC)

    def _tensors(self) -> list[ITensor]:
        return self.network.inputs + [tensor for tensor in self.network.outputs if not tensor.is_network_input]

    def _named(self, name: str) -> ITensor | None:
        """The input or output of a name; None, with an error in the log, if there is none."""
        tensor = self.find_tensor(name)
        if tensor is None:
            hint = did_you_mean(str(name), self.tensor_names)
            what = f"the engine has no input or output {quoted(name)}; it has {listed(self.tensor_names)}"
            self.log_error(what + (hint and f"; {hint}"))
        return tensor
