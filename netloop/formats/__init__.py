"""The common part of all model formats: what importers and exporters share."""

from netloop.formats.import_errors import Broken as Broken
from netloop.formats.import_errors import Complaints as Complaints
from netloop.formats.import_errors import Skip as Skip
from netloop.formats.import_errors import bytes_of as bytes_of
from netloop.formats.loops import Carried as Carried
from netloop.formats.loops import Limits as Limits
from netloop.formats.loops import Row as Row
from netloop.formats.loops import Step as Step
from netloop.formats.loops import looped as looped
from netloop.formats.names import mark_output as mark_output
from netloop.formats.names import name_layers as name_layers
from netloop.formats.names import name_tensor as name_tensor
from netloop.formats.pruning import keep_live as keep_live
