"""Layers by formula: what an importer writes networks with."""

from netloop.compose.arrange import Length as Length
from netloop.compose.arrange import Numbers as Numbers
from netloop.compose.base import Operand as Operand
from netloop.compose.base import as_dtype as as_dtype
from netloop.compose.complaints import Broken as Broken
from netloop.compose.complaints import Complaints as Complaints
from netloop.compose.complaints import Skip as Skip
from netloop.compose.complaints import bytes_of as bytes_of
from netloop.compose.composer import Composer as Composer
from netloop.compose.looped import Carried as Carried
from netloop.compose.looped import Limits as Limits
from netloop.compose.looped import Row as Row
from netloop.compose.looped import Step as Step
from netloop.compose.looped import looped as looped
from netloop.compose.names import mark_output as mark_output
from netloop.compose.names import name_layers as name_layers
from netloop.compose.names import name_tensor as name_tensor
from netloop.compose.prune import keep_live as keep_live
