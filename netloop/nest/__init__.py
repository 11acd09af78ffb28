"""The region tree of a flat network, derived from its data flow."""

from netloop.nest.live import live_layers as live_layers
from netloop.nest.scope import Scopes as Scopes
from netloop.nest.steps import Block as Block
from netloop.nest.steps import IfStep as IfStep
from netloop.nest.steps import LayerStep as LayerStep
from netloop.nest.steps import LoopStep as LoopStep
from netloop.nest.steps import Step as Step
from netloop.nest.steps import depths_of as depths_of
from netloop.nest.steps import layers_of as layers_of
from netloop.nest.steps import walk as walk
from netloop.nest.steps import weight_only_tensors as weight_only_tensors
from netloop.nest.tree import nest as nest
