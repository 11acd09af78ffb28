"""Host execution: networks run step by step in Python, with compiled pieces.

A network runs on the host if one compiled program cannot hold it: a shape is data-dependent, or a layer computes on
the host. So does a network with a long loop that is to be interruptible, and one whose tensors are observed.

================  ============================================================================================
``program.py``    ``HostProgram``: steps in order, as many as possible in one piece
``pieces.py``     which steps can be one piece, and the compiled pieces, one for each set of shapes
``layers.py``     single layers and conditionals, with values at hand, by their references
``loop.py``       a loop with at least one step that is no piece, iteration by iteration
``frame.py``      ``HostFrame``: the values at a point of a run, and ``Poisoned``, which stands for a failed one
``observer.py``   ``TensorObserver``: reports the elements of chosen tensors as they are computed
================  ============================================================================================
"""

from netloop.host.frame import Poisoned as Poisoned
from netloop.host.observer import Listener as Listener
from netloop.host.pieces import is_long as is_long
from netloop.host.program import HostProgram as HostProgram
