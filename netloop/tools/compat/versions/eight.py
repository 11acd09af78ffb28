"""TensorRT 8.6: the names that version 10 removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from typing import Any, ClassVar

import numpy as np

import netloop
from netloop.model.graph.tensor import ITensor
from netloop.tools.compat.versions import ten
from netloop.tools.compat.versions.bindings import ICudaEngine, IExecutionContext
from netloop.tools.compat.versions.enumerations import (
    BuilderFlag,
    EngineCapability,
    LayerType,
    NetworkDefinitionCreationFlag,
    OlderCreationFlag,
    OlderFlag,
    PaddingMode,
    PreviewFeature,
    ProfilingVerbosity,
    ResizeMode,
    RNNDirection,
    RNNGateType,
    RNNInputMode,
    RNNOperation,
    SampleMode,
    SliceMode,
)
from netloop.tools.compat.versions.implicit_batch import batched
from netloop.tools.compat.versions.older_layers import IFillLayer, IFullyConnectedLayer, OlderLayer, older
from netloop.tools.compat.versions.recurrent import IRNNv2Layer
from netloop.tools.compat.versions.weak_types import cast_mixtures
from netloop.values.checked_attributes import whole
from netloop.values.diagnostics import Finding, NetloopError, NetworkError, reason
from netloop.values.enums import DataType

__version__ = "8.6.1"
"""The release of TensorRT that the names match."""

_ELSEWHERE = (
    *(BuilderFlag, EngineCapability, LayerType, NetworkDefinitionCreationFlag, PaddingMode, PreviewFeature),
    *(ProfilingVerbosity, RNNDirection, RNNGateType, RNNInputMode, RNNOperation, SampleMode),
    *(ICudaEngine, IExecutionContext, IFullyConnectedLayer, IRNNv2Layer),
)
OBJECTS: dict[str, Any] = {cls.__name__: cls for cls in _ELSEWHERE} | {"ResizeMode": ResizeMode, "SliceMode": SliceMode}
"""Names of the module that are defined elsewhere."""

NAMES = ("Builder", "IBuilderConfig", "IGpuAllocator", "INetworkDefinition",
         "OnnxParser", "Runtime")  # fmt: skip
"""The names of the module that are defined here."""

FIRST = np.zeros(1, np.int32)
"""The axis of the batch."""


def _on_batches(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that adds a layer of batches take an example of an implicit batch: it has a batch of one inside."""

    @wraps(method)
    def add(self: INetworkDefinition, input: ITensor, *arguments: Any, **named: Any) -> Any:
        if not self.has_implicit_batch_dimension or not isinstance(input, ITensor):
            layer = method(self, input, *arguments, **named)
            return layer if isinstance(layer, OlderLayer) else older(layer)
        batch = self.add_unsqueeze(input, self.add_constant((1,), FIRST).outputs[0]).outputs[0]
        layer = method(self, batch, *arguments, **named)
        example = self.add_squeeze(layer.outputs[0], self.add_constant((1,), FIRST).outputs[0]).outputs[0]
        kind = IFullyConnectedLayer if isinstance(layer, IFullyConnectedLayer) else None
        return older(layer, kind=kind, inputs=[input], outputs=[example])

    return add


class INetworkDefinition(ten.INetworkDefinition):
    """A network of TensorRT 8; one of single examples unless it was created with EXPLICIT_BATCH."""

    LAYER_TYPES: ClassVar[Any] = LayerType

    def __init__(self, builder: Any = None, flags: int = 0) -> None:
        super().__init__(builder, flags)
        self._unfinished: list[Any] = []

    @property
    def has_implicit_batch_dimension(self) -> bool:
        """Whether shapes leave out the axis of the batch."""
        return not self.get_flag(netloop.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)

    @property
    def has_explicit_precision(self) -> bool:
        """Whether the network was created with EXPLICIT_PRECISION, which changes nothing."""
        return bool(self.flags >> int(OlderCreationFlag.EXPLICIT_PRECISION) & 1)

    def finish_later(self, layer: Any) -> None:
        """Call ``layer.finish()`` when the network is built."""
        self._unfinished.append(layer)

    def finished(self) -> netloop.INetworkDefinition:
        """The network that is built: with the loops of its recurrent layers, and a loop over an implicit batch.

        Raises:
            NetworkError: a recurrent layer lacks weights; a padding of Caffe does not fit; or a batch is implicit, and
                there is no input to say how long it is.
        """
        for layer in self._unfinished:
            layer.finish()
        cast_mixtures(self)
        if not self.has_implicit_batch_dimension:
            return self
        if not self.inputs:
            what = "the network has an implicit batch and no input, so that no run can say how long the batch is"
            fix = "create it with 1 << int(NetworkDefinitionCreationFlag.EXPLICIT_BATCH), or add an input"
            raise NetworkError(Finding("NL678", what, why=reason("NL678"), fix=fix))
        return batched(self)

    def get_layer(self, index: int) -> Any:
        """Layer number ``index``; None if there is none."""
        layer = super().get_layer(index)
        return None if layer is None else older(layer, is_listed=True)

    def __getitem__(self, index: int) -> Any:
        return older(super().__getitem__(index), is_listed=True)

    # ------------------------------------------------------------------ layers of today

    def add_shape(self, input: ITensor) -> Any:
        """Add the shape of a tensor, which is INT32 before TensorRT 10."""
        layer = super().add_shape(input)
        return older(layer, outputs=[self.add_cast(layer.outputs[0], DataType.INT32).outputs[0]])

    def add_fill(self, shape: Sequence[int], op: netloop.FillOperation, *output_type: DataType, **named: Any) -> Any:
        """Add a fill, whose elements have the type of its alpha and beta."""
        return older(super().add_fill(shape, op, *output_type, **named), kind=IFillLayer)

    def add_resize(self, input: ITensor) -> Any:
        """Add a change of the lengths of axes by interpolation."""
        return older(super().add_resize(input))

    add_convolution_nd = _on_batches(ten.INetworkDefinition.add_convolution_nd)
    add_deconvolution_nd = _on_batches(ten.INetworkDefinition.add_deconvolution_nd)
    add_pooling_nd = _on_batches(ten.INetworkDefinition.add_pooling_nd)
    add_padding_nd = _on_batches(ten.INetworkDefinition.add_padding_nd)
    add_lrn = _on_batches(ten.INetworkDefinition.add_lrn)
    add_scale = _on_batches(ten.INetworkDefinition.add_scale)

    # ------------------------------------------------------------------ layers that were removed

    def add_convolution(
        self, input: ITensor, num_output_maps: int, kernel_shape: Sequence[int], kernel: Any, bias: Any = None
    ) -> Any:
        """Add a convolution of images."""
        return self.add_convolution_nd(input, num_output_maps, kernel_shape, kernel, bias)

    def add_deconvolution(
        self, input: ITensor, num_output_maps: int, kernel_shape: Sequence[int], kernel: Any, bias: Any = None
    ) -> Any:
        """Add a deconvolution of images."""
        return self.add_deconvolution_nd(input, num_output_maps, kernel_shape, kernel, bias)

    def add_pooling(self, input: ITensor, type: netloop.PoolingType, window_size: Sequence[int]) -> Any:
        """Add a pooling of images."""
        return self.add_pooling_nd(input, type, window_size)

    def add_padding(self, input: ITensor, pre_padding: Sequence[int], post_padding: Sequence[int]) -> Any:
        """Add zero padding of the last two axes."""
        return self.add_padding_nd(input, pre_padding, post_padding)

    @_on_batches
    def add_fully_connected(self, input: ITensor, num_outputs: int, kernel: Any, bias: Any = None) -> Any:
        """Add a product of the last three axes with a matrix; they become [num_outputs, 1, 1]."""
        window = input.shape[-2:]
        layer = ten.INetworkDefinition.add_convolution_nd(self, input, num_outputs, window, kernel, bias)
        return older(layer, kind=IFullyConnectedLayer)

    def add_rnn_v2(
        self, input: ITensor, layer_count: int, hidden_size: int, max_seq_length: int, op: RNNOperation
    ) -> IRNNv2Layer:
        """Add a recurrent layer, as loops."""
        layer = IRNNv2Layer(self, input, layer_count, hidden_size, max_seq_length, op)
        self.finish_later(layer)
        return layer


class IBuilderConfig(ten.IBuilderConfig):
    """A config of TensorRT 8."""

    min_timing_iterations: int = 1

    CHECKS = {"min_timing_iterations": whole(0)}
    DEFAULT_TACTIC_SOURCES = 0b11111

    @property
    def max_workspace_size(self) -> int:
        """The limit of the memory pool WORKSPACE, in bytes; it has no effect, because XLA manages memory."""
        return self.get_memory_pool_limit(netloop.MemoryPoolType.WORKSPACE)

    @max_workspace_size.setter
    def max_workspace_size(self, size: int) -> None:
        self.set_memory_pool_limit(netloop.MemoryPoolType.WORKSPACE, int(size))

    def set_flag(self, flag: Any) -> None:
        """Set a flag."""
        if isinstance(flag, OlderFlag):
            self.flags |= 1 << int(flag)
        else:
            super().set_flag(flag)

    def clear_flag(self, flag: Any) -> None:
        """Clear a flag."""
        if isinstance(flag, OlderFlag):
            self.flags &= ~(1 << int(flag))
        else:
            super().clear_flag(flag)

    def get_flag(self, flag: Any) -> bool:
        """Whether a flag is set."""
        return bool(self.flags >> int(flag) & 1) if isinstance(flag, OlderFlag) else super().get_flag(flag)

    def ignored(self) -> list[str]:
        """The names of the changed settings that have no effect in netloop."""
        return super().ignored() + [f"flag {flag.name}" for flag in OlderFlag if self.get_flag(flag)]

    def with_batches(self, network: netloop.INetworkDefinition, most: int) -> IBuilderConfig:
        """A copy with a profile for batches of 1 to ``most`` examples, if there is no profile."""
        result = copy(self)
        profile = netloop.IOptimizationProfile()
        for tensor in network.inputs:
            one, all_of_them = (1, *tensor.shape[1:]), (most, *tensor.shape[1:])
            profile.set_shape(tensor.name, one, all_of_them, all_of_them)
        result._profiles = [profile]
        return result


class Builder(ten.Builder):
    """A builder of TensorRT 8.

    Attributes:
        max_batch_size: the largest batch of the engines of networks whose batch is implicit.
    """

    max_batch_size: int = 1

    CHECKS = {"max_batch_size": whole(1)}

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        """Create a network without layers: one of single examples, unless the flags have EXPLICIT_BATCH."""
        return INetworkDefinition(self, flags)

    def create_builder_config(self) -> IBuilderConfig:
        """Create a config with the default settings."""
        return IBuilderConfig()

    def build_engine(self, network: INetworkDefinition, config: IBuilderConfig) -> ICudaEngine | None:
        """Build the engine of a network; None, with the errors in the log, if it is invalid."""
        return self.build_engine_with_config(network, config)

    def build_engine_with_config(self, network: Any, config: Any) -> ICudaEngine | Any:
        """Build the engine of a network; None, with the errors in the log, if it is invalid."""
        engine = self._finished(network, config, super().build_engine_with_config)
        return None if engine is None else ten.as_version(engine, ICudaEngine)

    def build_serialized_network(self, network: Any, config: Any) -> Any:
        """Build the plan of a network; None, with the errors in the log, if it is invalid."""
        return self._finished(network, config, super().build_serialized_network)

    def _finished(self, network: Any, config: Any, build: Callable[[Any, Any], Any]) -> Any:
        if not isinstance(network, INetworkDefinition) or not isinstance(config, IBuilderConfig):
            return build(network, config)  # which refuses them
        try:
            whole_network = network.finished()
        except NetloopError as error:
            for finding in error.findings:
                self.report(finding)
            return None
        implicit = network.has_implicit_batch_dimension
        return build(whole_network, config.with_batches(whole_network, self.max_batch_size) if implicit else config)


class Runtime(ten.Runtime):
    """A runtime of TensorRT 8."""

    def deserialize_cuda_engine(self, serialized_engine: Any = None, *readers: Any, **named: Any) -> Any:
        """Deserialize a plan; None, with the reason in the log, if it is damaged or not a plan."""
        engine = super().deserialize_cuda_engine(serialized_engine, *readers, **named)
        return None if engine is None else ten.as_version(engine, ICudaEngine)


class OnnxParser(ten.OnnxParser):
    """The parser of TensorRT 8, which has no INT64: inputs and outputs of it are INT32."""

    def parse_model_proto(self) -> bool:
        """Add the model that was read; whether it has no errors."""
        if not super().parse_model_proto():
            return False
        for tensor in (*self._network.inputs, *self._network.outputs):
            if tensor.type.is_tensor and tensor.dtype is DataType.INT64:
                tensor.dtype = DataType.INT32
        return True


class IGpuAllocator(netloop.IGpuAllocator):
    """An allocator of device memory, which is never called: XLA manages memory."""

    def free(self, memory: int) -> bool:
        """Free the memory at an address; whether that succeeded."""
        return False
