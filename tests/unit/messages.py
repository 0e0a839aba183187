"""Any message there is, made by Hypothesis from the types of its fields."""

from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from cluster.machine import Envelope
from cluster.wire.apis import APIS
from cluster.wire.errors import Error
from cluster.wire.fields import Message, versions_of


def values(annotation: Any, version: int) -> st.SearchStrategy[Any]:
    """Values that a field of this type may have in this version."""
    bounds = next((mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, msgspec.Meta)), None)
    kind = get_args(annotation)[0] if bounds is not None else annotation
    if bounds is not None and bounds.extra is not None:
        return values(kind, version)
    if kind is int:
        return st.integers(bounds.ge if bounds else None, bounds.le if bounds else None)
    if get_origin(kind) in (Union, UnionType):
        return st.one_of([values(each, version) for each in get_args(kind)])
    if get_origin(kind) is tuple:
        return st.lists(values(get_args(kind)[0], version), max_size=3).map(tuple)
    if get_origin(kind) is dict:
        return st.dictionaries(*(values(each, version) for each in get_args(kind)), max_size=3)
    if isinstance(kind, type) and issubclass(kind, Message):
        return messages(kind, version)
    simple = {
        str: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        bytes: st.binary(max_size=8),
        bool: st.booleans(),
        NoneType: st.none(),
        Error: st.sampled_from(Error),
    }
    return simple[kind]


def messages(kind: type[Message], version: int) -> st.SearchStrategy[Message]:
    hints = get_type_hints(kind, include_extras=True)
    known = {
        field.name: values(hints[field.name], version)
        for field in msgspec.structs.fields(kind)
        if versions_of(hints[field.name]).first <= version <= versions_of(hints[field.name]).last
    }
    return st.fixed_dictionaries(known).map(lambda fields: kind(**fields))


KINDS = [
    (api, version, body)
    for api in APIS.values()
    for version in range(api.first, api.last + 1)
    for body in (api.request, api.response)
    if body is not None
]


@st.composite
def envelopes(draw: st.DrawFn) -> Envelope:
    api, version, body = draw(st.sampled_from(KINDS))
    name = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    return Envelope(
        draw(name),
        draw(st.integers(0, 2**31 - 1)),
        draw(name),
        api.key,
        version,
        draw(st.integers(0, 2**63 - 1)),
        draw(name),
        draw(messages(body, version)),
    )
