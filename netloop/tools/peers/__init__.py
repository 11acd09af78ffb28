"""Peers: other runtimes that run the same network, to compare results and times with.

``peer("onnxruntime", network)`` is a function from a dict of arrays to the dict of the outputs. The reference is one of
them: it shares no delicate code with engines.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from netloop.model.network import INetworkDefinition
from netloop.tools.peers.agreement import Agreement as Agreement
from netloop.tools.peers.agreement import agreements as agreements
from netloop.tools.peers.base import Peer as Peer
from netloop.tools.peers.differences import difference_from as difference_from
from netloop.tools.peers.differences import precision_note as precision_note
from netloop.tools.peers.subnetwork import Failure as Failure
from netloop.tools.peers.subnetwork import smallest_failure as smallest_failure
from netloop.values.diagnostics import did_you_mean, listed

CLASSES = {
    "onnxruntime": "netloop.tools.peers.in_onnxruntime:OnnxRuntimePeer",
    "openvino": "netloop.tools.peers.in_openvino:OpenVinoPeer",
    "reference": "netloop.tools.peers.in_reference:ReferencePeer",
}
"""The classes of the peers, with their modules, which need a package of their name."""


def peer(name: str, network: INetworkDefinition, model: Path | None = None) -> Peer:
    """A peer that runs a network.

    Args:
        name: ``onnxruntime``, ``openvino`` or ``reference``.
        network: the network.
        model: the file that the network was loaded from; a peer that reads its format runs the file, and otherwise
            what netloop exports.

    Raises:
        ValueError: there is no such peer.
        ModuleNotFoundError: its package is not installed.
        NetworkError: the network cannot be exported.
        ExecutionError: the peer refuses the model.
    """
    return kind_of(name)(network, model)


def kind_of(name: str) -> type[Peer]:
    """The class of a peer.

    Raises:
        ValueError: there is no such peer.
        ModuleNotFoundError: its package is not installed.
    """
    if name not in CLASSES:
        raise ValueError(
            f"there is no peer {name!r}; {did_you_mean(name, CLASSES) or f'there are {listed([*CLASSES])}'}"
        )
    if name != "reference" and find_spec(name) is None:
        raise ModuleNotFoundError(f"a comparison with {name} needs its package: pip install {name}", name=name)
    module, _, kind = CLASSES[name].partition(":")
    return getattr(import_module(module), kind)
