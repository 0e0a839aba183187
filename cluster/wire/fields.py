"""What the fields of messages are made of: bounded types, and in which versions of an api a field exists.

A field without a mark exists in every version. `since`, `until` and `between` mark the others; `ignorable` ones are
dropped when an older version is written, any other one is refused there, since its loss would change the meaning.
"""

from typing import Annotated, Any, dataclass_transform

import msgspec
from msgspec import Meta

Int8 = Annotated[int, Meta(ge=-(2**7), le=2**7 - 1)]
Int16 = Annotated[int, Meta(ge=-(2**15), le=2**15 - 1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Text = Annotated[str, Meta(max_length=8191)]         # at most 32,764 bytes: fits Kafka's strings in any record
Label = Annotated[str, Meta(max_length=4096)]        # client and instance ids: a member id made of one is still a Text
LongText = Annotated[str, Meta(max_length=32767)]


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Message(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A request, a response or a part of one: a MessagePack map under Kafka's field names, defaults left out."""


class Versions(msgspec.Struct, frozen=True):
    first: int = 0
    last: int = 32767
    ignorable: bool = False


def since(first: int, *, ignorable: bool = False) -> Meta:
    return between(first, 32767, ignorable=ignorable)


def until(last: int, *, ignorable: bool = False) -> Meta:
    return between(0, last, ignorable=ignorable)


def between(first: int, last: int, *, ignorable: bool = False) -> Meta:
    return Meta(extra={"versions": Versions(first, last, ignorable)})


def versions_of(annotation: Any) -> Versions:
    """The versions that a field's annotation names."""
    for mark in getattr(annotation, "__metadata__", ()):
        if isinstance(mark, Meta) and mark.extra and "versions" in mark.extra:
            versions: Versions = mark.extra["versions"]
            return versions
    return Versions()
