"""Envelopes to MessagePack and back. Bytes from outside are not trusted: they become an Envelope, or they are Refused.

A frame is one array: api key, version, whether it is a response, correlation id, source, incarnation, destination,
client id, and the body, a map under Kafka's field names. A body carries exactly what its version knows.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, get_args, get_type_hints

import msgspec

from cluster.machine import Envelope
from cluster.wire.apis import API_OF_REQUEST, API_OF_RESPONSE, APIS, NOT_EMULATED, Api
from cluster.wire.fields import Int16, Int32, Int64, Label, Message, Text, Versions, versions_of

MAX_FRAME_BYTES = 104857600                    # socket.request.max.bytes


class Fault(StrEnum):
    """What is wrong with a frame."""

    OVERSIZED = "oversized"
    MALFORMED = "malformed"
    UNKNOWN_API = "unknown api"
    UNSUPPORTED_VERSION = "unsupported version"
    NOT_IN_VERSION = "not in this version"


class Refused(ValueError):
    """These bytes are no message, or this message cannot be written. Nothing of it was taken."""

    def __init__(self, fault: Fault, detail: str) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault = fault


class _Frame(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    api_key: Int16
    api_version: Int16
    is_response: bool
    correlation_id: Int64
    source: Text
    incarnation: Int32
    destination: Text
    client_id: Label
    body: Any


class _RawFrame(_Frame, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    body: msgspec.Raw


_encode = msgspec.msgpack.Encoder().encode
_decode_frame = msgspec.msgpack.Decoder(_RawFrame).decode
_decode_body: dict[tuple[int, bool], Callable[[msgspec.Raw], Message]] = {
    (api.key, is_response): msgspec.msgpack.Decoder(body).decode
    for api in APIS.values()
    for is_response, body in ((False, api.request), (True, api.response))
    if body is not None
}


def encode(envelope: Envelope, limit: int = MAX_FRAME_BYTES) -> bytes:
    """The frame of an envelope. Refused if its version has no place for something it says, or it is too large."""
    body = envelope.body
    api, is_response = _kind(body)
    version = envelope.api_version
    _check_version(api, version)
    without = _WITHOUT[type(body), version]
    if without is not None:
        body = without.strip(body, api, version)
    frame = _encode(_Frame(api.key, version, is_response, envelope.correlation_id, envelope.source,
                           envelope.incarnation, envelope.destination, envelope.client_id, body))
    if len(frame) > limit:
        raise Refused(Fault.OVERSIZED, f"{type(body).__name__} takes {len(frame)} bytes, more than {limit}")
    return frame


def decode(frame: bytes, limit: int = MAX_FRAME_BYTES) -> Envelope:
    """The envelope in a frame. Refused if it is no frame, too large, of an unknown api or version, or dishonest."""
    if len(frame) > limit:
        raise Refused(Fault.OVERSIZED, f"a frame of {len(frame)} bytes, more than {limit}")
    try:
        head = _decode_frame(frame)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise Refused(Fault.MALFORMED, str(problem)) from None
    api = APIS.get(head.api_key)
    if api is None:
        known = NOT_EMULATED.get(head.api_key)
        raise Refused(Fault.UNKNOWN_API, f"there is no api {head.api_key}" if known is None else
                      f"{known} (api {head.api_key}) is not emulated: transactions are not")
    _check_version(api, head.api_version)
    read = _decode_body.get((head.api_key, head.is_response))
    if read is None:
        raise Refused(Fault.MALFORMED, f"{api.name} has no response")
    try:
        body = read(head.body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise Refused(Fault.MALFORMED, f"{_name(api, head.is_response)} v{head.api_version}: {problem}") from None
    without = _WITHOUT[type(body), head.api_version]
    if without is not None:
        without.refuse(body, api, head.api_version)
    return Envelope(head.source, head.incarnation, head.destination, head.api_key, head.api_version,
                    head.correlation_id, head.client_id, body)


class _Without:
    """The fields that one version of a message lacks, in itself and in its parts."""

    def __init__(self, fields: dict[str, tuple[Any, Versions]], parts: dict[str, "_Without"]) -> None:
        self.fields = fields                   # name -> default, versions
        self.parts = parts                     # name of an array of structs -> what those lack

    def strip(self, body: Any, api: Api, version: int) -> Any:
        """The body without what the version lacks, if that may be left out."""
        changed: dict[str, Any] = {}
        for name, (default, versions) in self.fields.items():
            if getattr(body, name) != default:
                if not versions.ignorable:
                    raise _dishonest(body, name, api, version)
                changed[name] = default
        for name, lacking in self.parts.items():
            old = getattr(body, name)
            if old:
                changed[name] = tuple(lacking.strip(part, api, version) for part in old)
        return msgspec.structs.replace(body, **changed) if changed else body

    def refuse(self, body: Any, api: Api, version: int) -> None:
        """Raise if the body says what its version cannot say."""
        for name, (default, _) in self.fields.items():
            if getattr(body, name) != default:
                raise _dishonest(body, name, api, version)
        for name, lacking in self.parts.items():
            for part in getattr(body, name) or ():
                lacking.refuse(part, api, version)


def _dishonest(body: Any, name: str, api: Api, version: int) -> Refused:
    return Refused(Fault.NOT_IN_VERSION, f"{type(body).__name__}.{name} does not exist in {api.name} v{version}")


def _without(message: type[Message], version: int) -> _Without | None:
    hints = get_type_hints(message, include_extras=True)
    fields: dict[str, tuple[Any, Versions]] = {}
    parts: dict[str, _Without] = {}
    for field in msgspec.structs.fields(message):
        versions = versions_of(hints[field.name])
        if not versions.first <= version <= versions.last:
            fields[field.name] = (field.default, versions)
        elif (part := _part_of(hints[field.name])) is not None and (lacking := _without(part, version)) is not None:
            parts[field.name] = lacking
    return _Without(fields, parts) if fields or parts else None


def _part_of(annotation: Any) -> type[Message] | None:
    """The struct that a field is an array of, if it is one."""
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return annotation
    for argument in get_args(annotation):
        if (part := _part_of(argument)) is not None:
            return part
    return None


def _kind(body: Any) -> tuple[Api, bool]:
    api = API_OF_REQUEST.get(type(body))
    return (api, False) if api is not None else (API_OF_RESPONSE[type(body)], True)


def _name(api: Api, is_response: bool) -> str:
    return f"{api.name} {'response' if is_response else 'request'}"


def _check_version(api: Api, version: int) -> None:
    if not api.first <= version <= api.last:
        raise Refused(Fault.UNSUPPORTED_VERSION, f"{api.name} v{version}; v{api.first} to v{api.last} are understood")


_WITHOUT: dict[tuple[type, int], _Without | None] = {
    (body, version): _without(body, version)
    for api in APIS.values()
    for version in range(api.first, api.last + 1)
    for body in (api.request, api.response)
    if body is not None
}
