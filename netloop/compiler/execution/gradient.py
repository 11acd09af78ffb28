"""Gradients of networks: a plugin that differentiates a network of its own.

The network is an attribute of the plugin and not part of the one around it, because passes may share or reorder layers
of one network, and a derivative depends on the path from its variables to the value.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.compiler.execution.to_jax import to_jax
from netloop.compiler.lower.loop.reverse_guard import NO_REVERSE_MODE
from netloop.model import plan
from netloop.model.network import INetworkDefinition
from netloop.model.plugins.enums import PluginFieldType, TensorRTPhase
from netloop.model.plugins.fields import PluginField, PluginFieldCollection, PluginFieldCollection_
from netloop.model.plugins.interfaces import IPluginCreatorV3One
from netloop.model.plugins.jax_plugin import JaxPlugin
from netloop.model.plugins.registry import get_plugin_registry
from netloop.values.diagnostics import NetworkError, require

NETWORK, VARIABLES = "network", "variables"
"""The fields of a plan: the plan of the differentiated network, and the number of its variables."""

AT_ONCE = 64
"""The number of directions that forward mode differentiates along at once, which bounds its memory."""


class GradientPlugin(JaxPlugin):
    """The gradients of the output of a network with respect to its first inputs, at the inputs of the plugin.

    The gradients have the types of these inputs. The gradient of an output of several elements is that of their sum.
    Reverse mode is used where JAX has it; through a loop whose trip count is not known, forward mode, whose time grows
    with the number of elements of the variables. Errors inside of the network are not reported, as in ``to_jax``.

    Attributes:
        network: the network, of one floating-point output.
    """

    network: INetworkDefinition
    plugin_name, plugin_version, plugin_namespace = "Gradient", "1", "netloop"

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        """Return the network as a plan, and the number of variables."""
        count = np.array([self.num_outputs], np.int32)
        network = PluginField(NETWORK, plan.dumps(self.network), PluginFieldType.CHAR)
        return PluginFieldCollection([network, PluginField(VARIABLES, count, PluginFieldType.INT32)])


class GradientCreator(IPluginCreatorV3One):
    """Makes the plugins of plans."""

    name, plugin_version, plugin_namespace = "Gradient", "1", "netloop"
    field_names = PluginFieldCollection(
        [PluginField(NETWORK, b"", PluginFieldType.CHAR), PluginField(VARIABLES, b"", PluginFieldType.INT32)]
    )

    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection_, phase: TensorRTPhase
    ) -> GradientPlugin:
        """Return a plugin with the network from a plan."""
        fields = {field.name: field.data for field in field_collection}
        return gradient_plugin(plan.loads(fields[NETWORK].tobytes()), int(fields[VARIABLES].reshape(())))


def gradient_plugin(network: INetworkDefinition, variables: int) -> GradientPlugin:
    """Return the plugin for the gradients with respect to the first ``variables`` inputs of a network.

    Raises:
        LayerError: the output or one of these inputs is not floating-point, or there are other numbers of them.
        NetworkError: the network is invalid.
    """
    count = len(network.outputs)
    require(count == 1, f"the network has {count} outputs, and a gradient is that of one")
    require(
        1 <= variables <= len(network.inputs),
        f"there are {variables} variables, and {len(network.inputs)} inputs of the differentiated network",
    )
    for tensor in (network.outputs[0], *network.inputs[:variables]):
        what = f"{tensor.name!r} is {tensor.type}, and only floating-point values have derivatives"
        require(tensor.type.is_tensor and tensor.type.is_float, what)
    plugin = GradientPlugin(_gradient(network, variables), variables, lambda *types: types[:variables])
    vars(plugin)["network"] = network
    return plugin


def _gradient(network: INetworkDefinition, count: int) -> Callable[..., Any]:
    function, weights = to_jax(network)
    names = [tensor.name for tensor in network.inputs]

    def gradient(*arrays: Any) -> Any:
        def total(*variables: Any) -> Any:
            (value,) = function(weights, dict(zip(names, (*variables, *arrays[count:]), strict=True))).values()
            return value.sum()

        variables = arrays[:count]
        try:
            return jax.grad(total, tuple(range(count)))(*variables)
        except NetworkError as error:  # there is no reverse mode for loops whose trip count is not known
            if error.findings[0].code != NO_REVERSE_MODE:
                raise
            return _in_forward_mode(total, variables)

    return gradient


def _in_forward_mode(total: Callable[..., Any], variables: tuple[Any, ...]) -> tuple[Any, ...]:
    # each direction is along one element of one variable
    still = [jnp.zeros_like(variable) for variable in variables]

    def slopes(position: int, variable: Any) -> Any:
        def slope(element: Any) -> Any:
            along = jnp.zeros(variable.size, variable.dtype).at[element].set(1).reshape(variable.shape)
            directions = (*still[:position], along, *still[position + 1 :])
            return jax.jvp(total, variables, directions)[1]

        # a map by vmap alone would hold all directions in memory
        return jax.lax.map(slope, jnp.arange(variable.size), batch_size=AT_ONCE).reshape(variable.shape)

    return tuple(slopes(position, variable) for position, variable in enumerate(variables))


get_plugin_registry().register_creator(GradientCreator())
