"""Engines below TensorRT's classes: the programs of a network, their cache, their weights and their calls.

- ``executable``: a network on one device, called with a dict of arrays; ``network_programs``: its programs, of which
  ``program_cache`` has one for each set of input shapes, or ``input_lengths`` one for many; ``ready_call``: calls that
  look nothing up; ``refittable``: weights that are replaced while other threads call.
- ``sharded_engine``: a network on a mesh of devices. ``slot_programs``: the requests of a loop in ``slots``.
  ``to_jax``: a network as a pure function, of which ``gradient`` makes a plugin.
- ``lowered_network``: a network after the passes, of which each of these traces functions of its own;
  ``weight_loading``: the arguments of these that are weights; ``engines``: what every kind of engine reports.
- ``trip_counts`` and ``probes`` run copies of a network with more outputs.
"""

# the creator of gradients registers itself, as plans name it
from netloop.compiler.execution import gradient as gradient
