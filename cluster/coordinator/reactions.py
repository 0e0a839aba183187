"""The words of the table that are about members and phases: what each one does.

None of them looks at the group's state: if one had to, the table would need another word. Each does one thing to the
group, its timers and those who wait, and leaves what comes next to the next word in the cell.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cluster.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from cluster.coordinator.answers import join_refused, joined, member_list, synced
from cluster.coordinator.group import Held, Member, names_of
from cluster.coordinator.states import Do, On, Why
from cluster.coordinator.writes import Place, Plan
from cluster.events import (
    GenerationStarted,
    MemberAdded,
    MemberNamed,
    MemberReplaced,
    PlanPublished,
    RebalanceStarted,
)
from cluster.wire.errors import Error
from cluster.wire.groups import JoinGroupResponse, LeaveGroupResponse, MemberIdentity, MemberResponse, SyncGroupResponse

if TYPE_CHECKING:
    from cluster.coordinator.turn import Turn

CAUSES = {                                     # why members must rejoin: Kafka's reasons, by what happened
    On.JOIN_NEW: "member joined",
    On.JOIN_LEADER: "leader rejoined",
    On.JOIN_CHANGED: "subscription changed",
    On.JOIN_BACK: "static member restarted",
    On.JOIN_BACK_REVOTE: "protocol will change",
    On.SESSION_OVER: "session expired",
    On.LEAVE: "member left",
    On.SYNC_OVER: "sync timed out",
    On.PLAN_LOST: "plan not stored",
    On.TOO_LARGE: "group too large",
}


# Members come


def name(turn: "Turn") -> None:
    shard, group, request, envelope = turn.shard, turn.group, turn.request, turn.envelope
    assert envelope is not None
    member_id = shard.new_member_id(envelope.client_id)
    group.pending[member_id] = None
    shard.out.arm(shard.session_of(group, member_id), shard.out.now + request.session_timeout_ms)
    shard.out.emit(MemberNamed(group.group_id, member_id, request.session_timeout_ms))
    shard.out.answer(envelope, join_refused(Error.MEMBER_ID_REQUIRED, member_id, envelope.api_version))


def add(turn: "Turn") -> None:
    """A new member cannot heartbeat until it is answered. So its session does not run yet: it has five minutes."""
    shard, group, request, envelope = turn.shard, turn.group, turn.request, turn.envelope
    assert envelope is not None
    instance_id = request.group_instance_id
    member_id = request.member_id or shard.new_member_id(envelope.client_id if instance_id is None else instance_id)
    member = Member(member_id, instance_id, envelope.client_id, f"/{envelope.source}", request.session_timeout_ms,
                    rebalance_timeout_ms(turn), request.protocols, names_of(request.protocols),
                    shard.session_of(group, member_id), is_new=True)
    if group.is_first_phase:
        group.newcomer = True
    led_by = group.leader
    group.add(member, request.protocol_type)
    shard.out.emit(MemberAdded(group.group_id, member_id, member.client_id, member.session_timeout_ms,
                               member.rebalance_timeout_ms, instance_id))
    shard.tell_leader(group, led_by)
    _hold_join(turn, member)
    shard.out.arm(member.session, shard.out.now + NEW_MEMBER_JOIN_TIMEOUT_MS)
    turn.member = member
    turn.cause = f"{member_id}; client reason: {request.reason or 'not provided'}"


def update(turn: "Turn") -> None:
    member, request = turn.member, turn.request
    assert member is not None
    turn.group.update(member, request.protocols, rebalance_timeout_ms(turn), request.session_timeout_ms)
    _hold_join(turn, member)
    turn.cause = f"{member.member_id}; client reason: {request.reason or 'not provided'}"


def replace(turn: "Turn") -> None:
    shard, group, request = turn.shard, turn.group, turn.request
    instance_id = request.group_instance_id
    old = group.members[group.static[instance_id]]
    old_leader = group.leader or ""
    if old.join is not None:
        version = old.join.envelope.api_version
        shard.answer_held(old.join, join_refused(Error.FENCED_INSTANCE_ID, old.member_id, version))
    shard.answer_held(old.sync, SyncGroupResponse(Error.FENCED_INSTANCE_ID))
    shard.out.cancel(old.session)
    member_id = shard.new_member_id(instance_id)
    member = group.rename(old, member_id, shard.session_of(group, member_id))
    shard.out.emit(MemberReplaced(group.group_id, instance_id, old.member_id, member_id))
    shard.tell_leader(group, old_leader)
    shard.renew(group, member, "replace")
    group.update(member, request.protocols, rebalance_timeout_ms(turn), request.session_timeout_ms)
    _hold_join(turn, member)
    assert member.join is not None
    turn.about = Place(group, member, old, old_leader, member.join)
    turn.member = member
    turn.cause = f"{member_id} of instance {instance_id}; client reason: {request.reason or 'not provided'}"


def keep(turn: "Turn") -> None:
    group = turn.group
    held = {member.member_id: member.assignment for member in group.members.values()}
    turn.shard.write(group, [turn.shard.record_of(group, held)], turn.about)


def settle(turn: "Turn") -> None:
    """Since v9 a leader that restarted is told the members, and to make no plan; before, not even that it leads."""
    group, place = turn.group, turn.about
    member: Member = place.member
    leads = group.leader == member.member_id
    if place.held.envelope.api_version >= 9:
        body = JoinGroupResponse(Error.NONE, group.generation, group.protocol_type, group.protocol_name or "",
                                 group.leader or "", leads, member.member_id, member_list(group) if leads else ())
    else:
        body = JoinGroupResponse(Error.NONE, group.generation, group.protocol_type, group.protocol_name or "",
                                 place.old_leader, False, member.member_id)
    turn.shard.answer_held(place.held, body)
    if member.join is place.held:
        group.hold_join(member, None)


def restore(turn: "Turn") -> None:
    shard, group, place = turn.shard, turn.group, turn.about
    old: Member = place.old
    new: Member = place.member
    if group.members.get(new.member_id) is new:
        group.update(new, old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms)
        shard.out.cancel(new.session)
        member = group.rename(new, old.member_id, old.session)
        shard.out.emit(MemberReplaced(group.group_id, member.instance_id or "", new.member_id, old.member_id))
        shard.renew(group, member, "replace")
    assert turn.error is not None
    shard.answer_held(place.held, JoinGroupResponse(turn.error, group.generation, group.protocol_type,
                                                    group.protocol_name or "", place.old_leader))


def repeat(turn: "Turn") -> None:
    assert turn.envelope is not None
    assert turn.member is not None
    leads = turn.group.leader == turn.member.member_id
    turn.shard.out.answer(turn.envelope, joined(turn.group, turn.member, with_members=leads))


# The join phase


def delay(turn: "Turn") -> None:
    group, wait_ms = turn.group, turn.shard.config.group_initial_rebalance_delay_ms
    group.is_first_phase = True
    group.delay_ms = wait_ms
    group.delay_left_ms = max(group.rebalance_timeout_ms() - wait_ms, 0)
    turn.shard.arm("delay", group, wait_ms)
    _start_rebalance(turn)


def extend(turn: "Turn") -> bool:
    group = turn.group
    if not group.newcomer or group.delay_left_ms == 0:
        return True
    group.newcomer = False
    wait_ms = min(turn.shard.config.group_initial_rebalance_delay_ms, group.delay_left_ms)
    group.delay_left_ms = max(group.delay_left_ms - group.delay_ms, 0)
    group.delay_ms = wait_ms
    turn.shard.arm("delay", group, wait_ms)
    return False


def open_phase(turn: "Turn") -> None:
    group = turn.group
    group.unsynced.clear()
    turn.shard.disarm(group, "sync")
    _start_rebalance(turn)
    if group.all_joined():
        close(turn)
    else:
        turn.shard.arm("join", group, group.rebalance_timeout_ms())


def reset(turn: "Turn") -> None:
    for member in turn.group.members.values():
        member.assignment = b""
        if member.sync is not None:
            _answer_sync(turn, member, SyncGroupResponse(turn.error or Error.REBALANCE_IN_PROGRESS))


def try_to_close(turn: "Turn") -> None:
    if turn.group.all_joined() and not turn.group.is_first_phase:
        close(turn)


def finish(turn: "Turn") -> None:
    if turn.group.all_joined():
        close(turn)


def close(turn: "Turn") -> None:
    """Static members that did not rejoin stay; with only such left, the phase goes on for a rebalance timeout more."""
    shard, group = turn.shard, turn.group
    shard.disarm(group, "delay", "join")
    absent = [each.member_id for each in group.members.values() if each.join is None and each.instance_id is None]
    for member_id in absent:
        shard.remove(group, member_id, "did not rejoin")
    led_by = group.leader
    if not group.elect() and group.members:
        shard.arm("join", group, group.rebalance_timeout_ms())
        return
    shard.tell_leader(group, led_by)
    group.is_first_phase = False
    group.next_generation()
    if group.members:
        _begin_generation(turn)
    else:
        shard.move(group, Why.NOBODY_LEFT)
        shard.write(group, [shard.record_of(group, {})])


def _begin_generation(turn: "Turn") -> None:
    shard, group = turn.shard, turn.group
    shard.move(group, Why.JOIN_PHASE_CLOSED)
    shard.out.emit(GenerationStarted(group.group_id, group.generation, group.protocol_name or "", group.leader or "",
                                     tuple(group.members)))
    for member in group.members.values():
        if member.join is not None:
            shard.answer_held(member.join, joined(group, member, with_members=member.member_id == group.leader))
            member.join = None
        member.is_new = False
        shard.renew(group, member, "join")
    group.waiting = 0
    group.unsynced = dict.fromkeys(group.members)
    shard.arm("sync", group, group.rebalance_timeout_ms())


# The sync phase


def hold(turn: "Turn") -> None:
    assert turn.envelope is not None
    assert turn.member is not None
    turn.member.sync = Held(turn.envelope)
    _has_synced(turn)
    turn.shard.must_not_wait_for_ever(turn.member.sync)


def store(turn: "Turn") -> None:
    """Members that the plan leaves out get an empty assignment; ids that are no members are ignored."""
    shard, group = turn.shard, turn.group
    plan = {each.member_id: each.assignment for each in turn.request.assignments}
    shard.write(group, [shard.record_of(group, plan)], Plan(group, group.generation, plan))


def publish(turn: "Turn") -> None:
    group, plan = turn.group, turn.about.plan
    for member in group.members.values():
        member.assignment = plan.get(member.member_id, b"")
        if member.sync is not None:
            _answer_sync(turn, member, synced(group, member))
    turn.shard.move(group, Why.PLAN_STORED)
    left_out = tuple([member_id for member_id in group.members if not plan.get(member_id)])
    turn.shard.out.emit(PlanPublished(group.group_id, group.generation, len(group.members), left_out))


def tell(turn: "Turn") -> None:
    assert turn.envelope is not None
    assert turn.member is not None
    _has_synced(turn)
    turn.shard.out.answer(turn.envelope, synced(turn.group, turn.member))


# Sessions, and members go


def touch(turn: "Turn") -> None:
    assert turn.member is not None
    turn.shard.renew(turn.group, turn.member, "heartbeat" if turn.on is On.HEARTBEAT else "commit")


def drop(turn: "Turn") -> bool:
    """An instance id alone is enough to be removed. Before v3 there was one member in a request, and one error."""
    assert turn.envelope is not None
    before_v3 = turn.envelope.api_version < 3
    leaving = (MemberIdentity(turn.request.member_id),) if before_v3 else turn.request.members
    answers = tuple([MemberResponse(one.member_id, one.group_instance_id, _drop(turn, one)) for one in leaving])
    turn.body = LeaveGroupResponse(answers[0].error_code) if before_v3 else LeaveGroupResponse(members=answers)
    gone = [answer.member_id for answer in answers if answer.error_code is Error.NONE]
    turn.cause = ", ".join(gone)
    return bool(gone)


def _drop(turn: "Turn", one: MemberIdentity) -> Error:
    shard, group = turn.shard, turn.group
    if one.member_id in group.pending:
        shard.remove(group, one.member_id, "left")
        return Error.NONE
    instance_id = one.group_instance_id
    if one.member_id and instance_id is not None and group.static.get(instance_id, one.member_id) != one.member_id:
        return Error.FENCED_INSTANCE_ID
    member = group.member_of(one.member_id, instance_id)
    if member is None or (instance_id is not None and instance_id not in group.static):
        return Error.UNKNOWN_MEMBER_ID
    _refuse_waiting(turn, member)
    shard.remove(group, member.member_id, "left")
    return Error.NONE


def expel(turn: "Turn") -> None:
    member = turn.member
    assert member is not None
    _refuse_waiting(turn, member)
    turn.shard.remove(turn.group, member.member_id, "session expired")
    turn.cause = member.member_id


def expel_late(turn: "Turn") -> bool:
    late = list(turn.group.unsynced)
    for member_id in late:
        turn.shard.remove(turn.group, member_id, "did not sync")
    turn.cause = ", ".join(late)
    return bool(late)


def evict(turn: "Turn") -> None:
    member_id = turn.request.member_id
    if member_id in turn.group.members or member_id in turn.group.pending:
        turn.shard.remove(turn.group, member_id, "group full")


def forget(turn: "Turn") -> None:
    turn.shard.remove(turn.group, turn.about, "id not used")


def bury(turn: "Turn") -> None:
    for member in turn.group.members.values():
        if member.join is not None:
            turn.shard.answer_held(member.join, join_refused(Error.NOT_COORDINATOR, member.member_id,
                                                             member.join.envelope.api_version))
        turn.shard.answer_held(member.sync, SyncGroupResponse(Error.NOT_COORDINATOR))
    turn.shard.move(turn.group, Why.UNLOADED)


# Parts of the above


def rebalance_timeout_ms(turn: "Turn") -> int:
    """JoinGroup v0 had none of its own."""
    assert turn.envelope is not None
    request = turn.request
    return int(request.session_timeout_ms if turn.envelope.api_version == 0 else request.rebalance_timeout_ms)


def _hold_join(turn: "Turn", member: Member) -> None:
    assert turn.envelope is not None
    turn.group.hold_join(member, Held(turn.envelope))
    turn.shard.must_not_wait_for_ever(member.join)


def _start_rebalance(turn: "Turn") -> None:
    group, who = turn.group, "" if turn.member is None else turn.member.member_id
    on = On.JOIN_LEADER if turn.on is On.JOIN_CHANGED and who == group.leader else turn.on     # as Kafka has it
    turn.shard.out.emit(RebalanceStarted(group.group_id, group.generation, CAUSES[on], who, turn.cause))
    turn.shard.move(group, Why.REBALANCE_NEEDED, CAUSES[on])


def _answer_sync(turn: "Turn", member: Member, body: SyncGroupResponse) -> None:
    """Whoever waited here could not expire, so its session starts with the answer."""
    turn.shard.answer_held(member.sync, body)
    member.sync = None
    turn.shard.renew(turn.group, member, "sync")


def _has_synced(turn: "Turn") -> None:
    assert turn.member is not None
    turn.group.unsynced.pop(turn.member.member_id, None)
    if not turn.group.unsynced:
        turn.shard.disarm(turn.group, "sync")


def _refuse_waiting(turn: "Turn", member: Member) -> None:
    """Kafka leaves a sync that waits without an answer when its member leaves: see docs/differences.md."""
    if member.join is not None:
        turn.shard.answer_held(member.join, join_refused(Error.UNKNOWN_MEMBER_ID, "", member.join.envelope.api_version))
    turn.shard.answer_held(member.sync, SyncGroupResponse(Error.UNKNOWN_MEMBER_ID))


WORDS: dict[Do, Callable[["Turn"], bool | None]] = {
    Do.NAME: name, Do.ADD: add, Do.UPDATE: update, Do.REPLACE: replace, Do.KEEP: keep, Do.SETTLE: settle,
    Do.RESTORE: restore, Do.REPEAT: repeat, Do.DELAY: delay, Do.EXTEND: extend, Do.OPEN: open_phase, Do.RESET: reset,
    Do.TRY: try_to_close, Do.FINISH: finish, Do.CLOSE: close, Do.HOLD: hold, Do.STORE: store, Do.PUBLISH: publish,
    Do.TELL: tell, Do.TOUCH: touch, Do.DROP: drop, Do.EXPEL: expel, Do.EXPEL_LATE: expel_late, Do.EVICT: evict,
    Do.FORGET: forget, Do.BURY: bury,
}
