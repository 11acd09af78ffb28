"""Peers: other runtimes that run the same network, to compare results and times with."""

from netloop.tools.peers import (
    Agreement,
    Failure,
    Peer,
    agreements,
    difference_from,
    kind_of,
    peer,
    precision_note,
    smallest_failure,
)

__all__ = [
    "Agreement",
    "Failure",
    "Peer",
    "agreements",
    "difference_from",
    "kind_of",
    "peer",
    "precision_note",
    "smallest_failure",
]
