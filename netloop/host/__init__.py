"""Host execution: networks with data-dependent shapes, run in Python with compiled pieces."""

from netloop.host.program import HostProgram as HostProgram
from netloop.host.program import Poisoned as Poisoned
from netloop.host.program import is_long as is_long
