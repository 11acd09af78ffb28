"""The graph of a network: tensors, layers and the inference of types, for all kinds of layers.

Four modules refer to each other, three of them by annotations only: a tensor has its producer and a type table, a layer
has tensors, ``layer_compat`` is a base class of layers, and the type table of ``infer`` walks both.
"""

from netloop.model.graph.attributes import check_instance as check_instance
from netloop.model.graph.attributes import check_member as check_member
from netloop.model.graph.infer import TypeTable as TypeTable
from netloop.model.graph.layer import Elementary as Elementary
from netloop.model.graph.layer import ILayer as ILayer
from netloop.model.graph.layer import Operation as Operation
from netloop.model.graph.layer import check_tensor as check_tensor
from netloop.model.graph.layer import layer as layer
from netloop.model.graph.network_base import NetworkBase as NetworkBase
from netloop.model.graph.network_base import check_tensors as check_tensors
from netloop.model.graph.padded_axes import NO_AXES as NO_AXES
from netloop.model.graph.padded_axes import Axes as Axes
from netloop.model.graph.tensor import ITensor as ITensor
