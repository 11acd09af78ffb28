"""Peers: other runtimes that run the same network, to compare results and times with."""

from netloop.tools.peers import Agreement as Agreement
from netloop.tools.peers import Failure as Failure
from netloop.tools.peers import Peer as Peer
from netloop.tools.peers import agreements as agreements
from netloop.tools.peers import difference_from as difference_from
from netloop.tools.peers import kind_of as kind_of
from netloop.tools.peers import peer as peer
from netloop.tools.peers import precision_note as precision_note
from netloop.tools.peers import smallest_failure as smallest_failure
