"""Host execution: networks run step by step in Python, with compiled pieces.

A network runs on the host if one compiled program cannot hold it: a shape is data-dependent, or a layer computes on
the host. So does a network with a long loop that is to be interruptible, and one whose tensors are observed.
"""

from netloop.compiler.host.compiled_pieces import is_long as is_long
from netloop.compiler.host.frame import NO_TYPE as NO_TYPE
from netloop.compiler.host.frame import Listener as Listener
from netloop.compiler.host.program import HostProgram as HostProgram
