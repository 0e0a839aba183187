"""What the application around a consumer can be told."""

import msgspec


class Subscribe(msgspec.Struct, frozen=True):
    """Want these topics, or all whose whole name matches the pattern. The first time, it starts the consumer."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None


class Unsubscribe(msgspec.Struct, frozen=True):
    """Leave the group and poll no more."""


class Close(msgspec.Struct, frozen=True):
    """Commit, if commits are automatic; leave the group; close all connections."""


class SetProcessing(msgspec.Struct, frozen=True):
    """How long each record takes from now on, even those that are being processed."""

    ms_per_record: float


class EnforceRebalance(msgspec.Struct, frozen=True):
    """Rejoin with the next poll, for this reason."""

    reason: str = ""


Command = Subscribe | Unsubscribe | Close | SetProcessing | EnforceRebalance
