"""Tuning: the forms of passes that are fastest on this machine, found by timing and remembered in a timing cache.

The rules of passes were measured on one processor, and gain or lose on others. A pass names its other forms itself, in
``Pass.alternatives``; this package knows none of them.
"""

from netloop.compiler.tuning.candidates import SECONDS, Candidates, Tuning, fastest
from netloop.compiler.tuning.digest import digest_of
from netloop.compiler.tuning.entries import Decisions, TimingCacheKey, TimingCacheValue
from netloop.compiler.tuning.machine import this_machine
from netloop.compiler.tuning.measurement import Stopwatch, TimedPair
from netloop.compiler.tuning.sample_inputs import NoSamples, Samples, require_ending, sample_inputs
from netloop.compiler.tuning.search import Search, Tuned, with_alternatives
from netloop.compiler.tuning.trip_inputs import LONGEST, inputs_behind, trip_inputs

__all__ = ["LONGEST", "SECONDS", "Candidates", "Decisions", "NoSamples", "Samples", "Search", "Stopwatch", "TimedPair",
           "TimingCacheKey", "TimingCacheValue", "Tuned", "Tuning", "digest_of", "fastest", "inputs_behind",
           "require_ending", "sample_inputs", "this_machine", "trip_inputs",
           "with_alternatives"]  # fmt: skip
