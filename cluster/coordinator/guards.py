"""The checks of the table: what each claim means. They only look; none of them knows the group's state."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cluster.coordinator.states import Check

if TYPE_CHECKING:
    from cluster.coordinator.turn import Turn


def has_room(turn: "Turn") -> bool:
    return turn.member is not None or len(turn.group.members) < turn.shard.config.group_max_size


def has_room_to_wait(turn: "Turn") -> bool:
    waits = turn.member is not None and turn.member.join is not None
    return waits or turn.group.waiting < turn.shard.config.group_max_size


def offers(turn: "Turn") -> bool:
    return bool(turn.request.protocol_type) and bool(turn.request.protocols)


def shares(turn: "Turn") -> bool:
    return turn.group.shares_a_protocol(turn.request.protocol_type, turn.request.protocols)


def stays_dynamic(turn: "Turn") -> bool:
    return turn.request.group_instance_id is None or turn.request.member_id not in turn.group.pending


def instance_known(turn: "Turn") -> bool:
    instance_id = turn.request.group_instance_id
    return instance_id is None or instance_id in turn.group.static


def not_fenced(turn: "Turn") -> bool:
    instance_id = turn.request.group_instance_id
    return instance_id is None or turn.group.static[instance_id] == turn.request.member_id


def known(turn: "Turn") -> bool:
    return turn.member is not None


def current(turn: "Turn") -> bool:
    return bool(turn.request.generation_id == turn.group.generation)


def matches(turn: "Turn") -> bool:
    protocol_type, protocol_name = turn.request.protocol_type, turn.request.protocol_name
    return (protocol_type is None or turn.group.protocol_type in (None, protocol_type)) and (
        protocol_name is None or turn.group.protocol_name in (None, protocol_name)
    )


def outside(turn: "Turn") -> bool:
    return bool(turn.request.generation_id < 0)


def consumes(turn: "Turn") -> bool:
    return turn.group.protocol_type == "consumer"


def awaited(turn: "Turn") -> bool:
    member = turn.member
    assert member is not None
    return member.is_new or (member.join is None and member.sync is None)


def still_current(turn: "Turn") -> bool:
    return bool(turn.about.generation == turn.group.generation)


TRUE: dict[Check, Callable[["Turn"], bool]] = {
    Check.HAS_ROOM: has_room, Check.HAS_ROOM_TO_WAIT: has_room_to_wait, Check.OFFERS: offers, Check.SHARES: shares,
    Check.STAYS_DYNAMIC: stays_dynamic, Check.INSTANCE_KNOWN: instance_known, Check.NOT_FENCED: not_fenced,
    Check.KNOWN: known, Check.CURRENT: current, Check.MATCHES: matches, Check.OUTSIDE: outside,
    Check.CONSUMES: consumes, Check.AWAITED: awaited, Check.STILL_CURRENT: still_current,
}
