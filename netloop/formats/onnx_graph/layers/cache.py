"""Key-value caches."""

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.model.layers.cache import IKVCacheUpdateLayer
from netloop.values.enums import AttentionIOForm


@exports(IKVCacheUpdateLayer)
def kv_cache_update(
    layer: IKVCacheUpdateLayer,
    make: NodeBuilder,
    cache: Value,
    update: Value,
    places: Value,
    lengths: Value | None = None,
) -> Value:
    """Each position of the cache gathers its token of the update, if the update has one for it."""
    zero, first = make.number(0, INT64), make.expand_dims(make.cast(places, INT64), [1])
    columns = make.arange(make.length(cache, make.type(0), 2))
    token = make.op("Sub", columns, first)
    if layer.update_form is AttentionIOForm.PACKED_NHD:
        assert lengths is not None
        bounds = make.cast(lengths, INT64)
        before = make.expand_dims(make.op("Slice", bounds, make.int64s(0), make.int64s(-1)), [1])
        after = make.expand_dims(make.op("Slice", bounds, make.int64s(1), make.shape(bounds)), [1])
        count, total = make.op("Sub", after, before), make.length(update, make.type(1), 0)
    else:
        count = total = make.length(update, make.type(1), 2)
        before = zero
    written = make.op("And", make.compare("GreaterOrEqual", token, zero), make.compare("Less", token, count))
    index = make.where(written, make.op("Add", before, token), total)
    if layer.update_form is AttentionIOForm.PACKED_NHD:
        rows = make.gather(_with_empty_token(make, update, 0, 3), index, 0)
    else:
        tokens = make.transpose(_with_empty_token(make, update, 2, 4), [0, 2, 1, 3])
        rows = make.op("GatherND", tokens, make.expand_dims(index, [2]), batch_dims=1)
    value = make.transpose(rows, [0, 2, 1, 3])
    return make.where(make.expand_dims(written, [1, 3]), value, cache)


def _with_empty_token(make: NodeBuilder, update: Value, axis: int, rank: int) -> Value:
    """The update with a token of zeros at its end, for positions without one."""
    ends = [int(index == axis) for index in range(rank)]
    return make.op("Pad", update, make.int64s(*[0] * rank, *ends))
