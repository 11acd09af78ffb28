"""The region tree of a flat network, derived from its data flow."""

from netloop.nest.live import live_layers as live_layers
from netloop.nest.scope import Scopes as Scopes
from netloop.nest.tree import Block as Block
from netloop.nest.tree import IfStep as IfStep
from netloop.nest.tree import LayerStep as LayerStep
from netloop.nest.tree import LoopStep as LoopStep
from netloop.nest.tree import Step as Step
from netloop.nest.tree import layers_of as layers_of
from netloop.nest.tree import nest as nest
from netloop.nest.walk import walk as walk
from netloop.nest.walk import weights_alone as weights_alone
