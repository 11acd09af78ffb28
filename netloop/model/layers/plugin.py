"""User-defined layers: plugins."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NoReturn

from netloop.model.graph import ILayer, ITensor, NetworkBase, Operation, check_instance, check_tensors, layer
from netloop.model.graph.call_site import call_site
from netloop.model.plugins.efficient_nms import efficient_nms as efficient_nms  # importing it registers it
from netloop.model.plugins.host_kernel import HostKernel
from netloop.model.plugins.interfaces import IPluginV3
from netloop.model.plugins.jax_plugin import JaxKernel, JaxPlugin
from netloop.model.plugins.kernel import Kernel, calling
from netloop.model.plugins.unavailable import V3, Unavailable, refuse
from netloop.values.diagnostics import Finding, LayerError, NetworkError, require
from netloop.values.enums import LayerType
from netloop.values.types import Array, TensorType


@layer(LayerType.PLUGIN_V3, "PluginV3_V3ONE")
class IPluginV3Layer(Operation):
    """Apply a user-defined plugin to the inputs.

    A ``JaxPlugin`` is part of the compiled program. Any other plugin runs on the host, by its ``enqueue``: the network
    then runs by host execution, and ``to_jax`` refuses it. The plugin defines the number and the types of the outputs;
    it is cloned when it is added, but must be a pure function of its inputs. Source: TensorRT's ``addPluginV3``.

    Attributes:
        plugin: the plugin.
        num_shape_inputs: the number of trailing inputs whose values determine shapes.
    """

    REQUIRED_INPUTS = 0
    READ_ONLY = frozenset({"plugin", "num_shape_inputs"})

    plugin: IPluginV3
    num_shape_inputs: int = 0

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel that runs the plugin."""
        return kernel_of(self.plugin)

    @property
    def NUM_OUTPUTS(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The number of outputs that the plugin defines."""
        return self.kernel.num_outputs

    @property
    def SHAPE_INPUTS(self) -> frozenset[int]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The positions of the shape inputs: the last inputs."""
        count = len(self.inputs) if self.num_shape_inputs else 0
        return frozenset(range(max(0, count - self.num_shape_inputs), count))

    @property
    def is_foldable(self) -> bool:
        return False

    @property
    def on_host(self) -> bool:
        return self.kernel.on_host

    def unshared(self) -> dict[str, Any]:
        try:
            plugin = cloned(self.plugin)
            return {"plugin": plugin, "kernel": kernel_of(plugin)}
        except LayerError as error:
            raise NetworkError(self.finding_of(error)) from error.__cause__

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        for tensor_type in inputs[self._first_shape(inputs) :]:
            require(
                tensor_type.is_index,
                f"a shape input is int32 or int64, not {tensor_type}",
                fix="convert it with add_cast",
            )
        return self.kernel.types(*self._parted(inputs))

    def evaluate(self, *inputs: Array) -> tuple[Array, ...]:
        return self.kernel.evaluate(*self._parted(inputs))

    def lower(self, *inputs: Any) -> tuple[Any, ...]:
        return self.kernel.lower(*self._parted(inputs))

    def _first_shape(self, inputs: Sequence[Any]) -> int:
        count = self.num_shape_inputs
        require(
            0 <= count <= len(inputs),
            f"{count} of {len(inputs)} inputs are to be shape inputs",
            why="the last inputs are shape inputs",
        )
        return len(inputs) - count

    def _parted(self, inputs: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        first = self._first_shape(inputs)
        return inputs[:first], inputs[first:]


class IPluginV2Layer(Unavailable, ILayer):
    """The layer of ``add_plugin_v2``, which no network of netloop has; refused when instantiated."""


def kernel_of(plugin: IPluginV3) -> Kernel:
    """Return the kernel that runs a plugin.

    Raises:
        LayerError: a capability of the plugin is missing, or fails.
    """
    return JaxKernel(plugin) if isinstance(plugin, JaxPlugin) else HostKernel(plugin)


def cloned(plugin: IPluginV3) -> IPluginV3:
    """Return a clone of a plugin.

    Raises:
        LayerError: the plugin fails.
    """
    with calling(f"clone of {type(plugin).__name__}"):
        return check_instance("the result of clone", plugin.clone(), IPluginV3)


class PluginMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "[plugins](plugins.md): functions of JAX, or TensorRT's `IPluginV3`"

    def add_plugin(self, *args: Any, **named: Any) -> NoReturn:
        """Refuse: it adds plugins of ``tensorrt.plugin``, whose kernels are for NVIDIA's devices.

        Raises:
            NetloopError: always.
        """
        refuse("add_plugin adds plugins of tensorrt.plugin, which netloop does not have", V3)

    def add_plugin_v2(self, inputs: Sequence[ITensor], plugin: Any) -> NoReturn:
        """Refuse: it adds plugins before version 3, whose kernels are for NVIDIA's devices.

        Raises:
            NetloopError: always.
        """
        refuse("add_plugin_v2 adds an IPluginV2, which netloop does not have", V3)

    def add_plugin_v3(
        self, inputs: Sequence[ITensor], shape_inputs: Sequence[ITensor], plugin: IPluginV3
    ) -> IPluginV3Layer:
        """Add a plugin: a ``JaxPlugin``, or an object that derives from IPluginV3 and its three capabilities.

        Args:
            inputs: the tensors that it reads.
            shape_inputs: int32 or int64 tensors whose values determine its output shapes.
            plugin: the plugin; the layer keeps a clone of it.

        Raises:
            TypeError: an argument is of another type.
            NetworkError: a capability of the plugin is missing, or fails.
        """
        tensors = check_tensors(inputs), check_tensors(shape_inputs, "shape_inputs")
        check_instance("plugin", plugin, IPluginV3)
        try:
            result = IPluginV3Layer(plugin=cloned(plugin), num_shape_inputs=len(tensors[1]))
            vars(result)["kernel"] = kernel_of(result.plugin)
        except LayerError as error:
            finding = Finding(error.code, error.what, str(call_site()), error.why, error.fix)
            raise NetworkError(finding) from error.__cause__
        return self.add(result, [*tensors[0], *tensors[1]])
