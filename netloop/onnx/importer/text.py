"""Strings of a model: protobuf returns bytes for one that is not valid UTF-8."""

from google.protobuf.message import Message

UNREAD = {
    "denotation", "doc_string", "graphs", "metadata_props", "producer_name", "producer_version", "training_info",
    "value_info",
}  # fmt: skip
"""Fields that no importer reads, which may have any contents."""


def has_broken_text(message: Message) -> bool:
    """Whether a string of a message or of those inside it is not valid UTF-8."""
    for field, value in message.ListFields():
        if field.type in (field.TYPE_STRING, field.TYPE_MESSAGE) and field.name not in UNREAD:
            values = [value] if isinstance(value, str | bytes | Message) else value
            if any(has_broken_text(each) if isinstance(each, Message) else isinstance(each, bytes) for each in values):
                return True
    return False
