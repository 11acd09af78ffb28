"""The region tree of a flat network, derived from its data flow."""

from netloop.model.nest.live import layers_before as layers_before
from netloop.model.nest.live import live_layers as live_layers
from netloop.model.nest.scope import Scopes as Scopes
from netloop.model.nest.steps import Block as Block
from netloop.model.nest.steps import IfStep as IfStep
from netloop.model.nest.steps import LayerStep as LayerStep
from netloop.model.nest.steps import LoopStep as LoopStep
from netloop.model.nest.steps import Step as Step
from netloop.model.nest.steps import depths_of as depths_of
from netloop.model.nest.steps import layers_of as layers_of
from netloop.model.nest.steps import own_reads as own_reads
from netloop.model.nest.steps import walk as walk
from netloop.model.nest.steps import weight_only_tensors as weight_only_tensors
from netloop.model.nest.tree import nest as nest
