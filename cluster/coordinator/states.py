"""The protocol of a classic consumer group, on one page. It is executed: what stands here is what happens.

Something happens to a group (`On`). The checks of that row are asked in their order (`CHECKS`); the first that fails
answers. If none fails, the words in the cell under the group's state are carried out from left to right
(`REACTIONS`). A lower-case word is a `Do`, carried out by reactions.py; an upper-case one is an error code, and the
answer. The words that move a group to another state do so through `MOVES`; nothing else ever writes a state.
"""

from enum import Enum, StrEnum

from cluster.wire.errors import Error


class GroupState(StrEnum):
    EMPTY = "Empty"                            # no members; offsets may be there
    PREPARING = "PreparingRebalance"           # waiting for members to (re)join
    COMPLETING = "CompletingRebalance"         # waiting for the leader's plan (once called AwaitingSync)
    STABLE = "Stable"                          # everybody may fetch an assignment
    DEAD = "Dead"                              # given up here: it lives on at another coordinator, if at all


class Why(StrEnum):
    REBALANCE_NEEDED = "members must rejoin"
    JOIN_PHASE_CLOSED = "the members of the next generation are known"
    NOBODY_LEFT = "the join phase closed without members"
    PLAN_STORED = "the leader's plan is committed"
    UNLOADED = "this coordinator gave up the group"


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState
OCCUPIED = PREPARING, COMPLETING, STABLE

MOVES: dict[tuple[GroupState, Why], GroupState] = {
    (EMPTY, Why.REBALANCE_NEEDED): PREPARING,          (COMPLETING, Why.PLAN_STORED): STABLE,
    (PREPARING, Why.JOIN_PHASE_CLOSED): COMPLETING,    (COMPLETING, Why.REBALANCE_NEEDED): PREPARING,
    (PREPARING, Why.NOBODY_LEFT): EMPTY,               (STABLE, Why.REBALANCE_NEEDED): PREPARING,
    **{(state, Why.UNLOADED): DEAD for state in GroupState},
}


class On(StrEnum):
    """What can happen to a group: requests, by who sends them; timers; its own records; loading and unloading."""

    JOIN_UNNAMED = "JoinGroup of a dynamic member without an id, v4 and later (KIP-394)"
    JOIN_NEW = "JoinGroup that makes a member: an id given out before, a new instance, or v3 and earlier"
    JOIN_SAME = "JoinGroup of a follower with the protocols it had"
    JOIN_LEADER = "JoinGroup of the leader with the protocols it had"
    JOIN_CHANGED = "JoinGroup of a member with other protocols"
    JOIN_BACK = "JoinGroup of a static member that restarted (KIP-345)"
    JOIN_BACK_REVOTE = "the same, where the vote for a protocol would now go another way"
    SYNC = "SyncGroup of a follower"
    SYNC_LEADER = "SyncGroup of the leader"
    HEARTBEAT = "Heartbeat"
    LEAVE = "LeaveGroup"
    COMMIT = "OffsetCommit"
    FETCH = "OffsetFetch"
    PRUNE = "OffsetDelete"
    DESCRIBE = "DescribeGroups"
    DELETE = "DeleteGroups"
    SESSION_OVER = "a member was silent for its session.timeout.ms"
    PENDING_OVER = "an id was given out, and nobody came back with it"
    DELAY_OVER = "group.initial.rebalance.delay.ms is over"
    JOIN_OVER = "the rebalance timeout is over while joining"
    SYNC_OVER = "the rebalance timeout is over while syncing"
    PLAN_STORED = "the record with the leader's plan is committed"
    PLAN_LOST = "the record with the leader's plan could not be written"
    PLACE_STORED = "the record with a restarted static member's new id is committed"
    PLACE_LOST = "the record with a restarted static member's new id could not be written"
    TOO_LARGE = "loaded with more members than group.max.size"
    EXPIRE = "the offsets of the group are looked through for old ones"
    UNLOAD = "another broker leads the group's partition of __consumer_offsets"


class Check(Enum):
    """What is asked first: the claim, the states in which it is asked, the answer if it is false (or nothing)."""

    HAS_ROOM = "is a member, or members < group.max.size", (COMPLETING, STABLE), "evict FULL"
    HAS_ROOM_TO_WAIT = "waits already, or members that wait < group.max.size", (PREPARING,), "evict FULL"
    OFFERS = "names a protocol type and a protocol", (EMPTY,), "MISFIT"
    SHARES = "has the group's protocol type, and a protocol that every member has", OCCUPIED, "MISFIT"
    STAYS_DYNAMIC = "an id given out to a dynamic member comes without instance id", (EMPTY, *OCCUPIED), "BUG"
    INSTANCE_KNOWN = "its instance id, if any, belongs to a member", OCCUPIED, "UNKNOWN"
    NOT_FENCED = "its instance id, if any, belongs to this very member", OCCUPIED, "FENCED"
    KNOWN = "is a member", OCCUPIED, "UNKNOWN"
    CURRENT = "names the current generation", OCCUPIED, "ILLEGAL"
    MATCHES = "protocol type and name, if any, are the group's", OCCUPIED, "MISFIT"
    OUTSIDE = "names no generation: it comes from outside the group", (EMPTY,), "UNKNOWN"
    CONSUMES = "the group's protocol type is `consumer`", OCCUPIED, "NON_EMPTY"
    AWAITED = "is new, or has neither a join nor a sync waiting here", OCCUPIED, ""
    STILL_CURRENT = "the plan is of the current generation", (COMPLETING,), ""


IDENTITY = Check.INSTANCE_KNOWN, Check.NOT_FENCED, Check.KNOWN
JOINING = Check.HAS_ROOM, Check.HAS_ROOM_TO_WAIT, Check.OFFERS, Check.SHARES

CHECKS: dict[On, tuple[Check, ...]] = {
    On.JOIN_UNNAMED: JOINING,                      On.SYNC: (*IDENTITY, Check.CURRENT, Check.MATCHES),
    On.JOIN_NEW: (*JOINING, Check.STAYS_DYNAMIC),  On.SYNC_LEADER: (*IDENTITY, Check.CURRENT, Check.MATCHES),
    On.JOIN_SAME: (*JOINING, *IDENTITY),           On.HEARTBEAT: (*IDENTITY, Check.CURRENT),
    On.JOIN_LEADER: (*JOINING, *IDENTITY),         On.COMMIT: (Check.OUTSIDE, *IDENTITY, Check.CURRENT),
    On.JOIN_CHANGED: (*JOINING, *IDENTITY),        On.PRUNE: (Check.CONSUMES,),
    On.JOIN_BACK: JOINING,                         On.SESSION_OVER: (Check.AWAITED,),
    On.JOIN_BACK_REVOTE: JOINING,                  On.PLAN_STORED: (Check.STILL_CURRENT,),
    On.PLAN_LOST: (Check.STILL_CURRENT,),
}


class Do(Enum):
    """What a reaction is made of. A word that finds nothing to do ends its cell."""

    ADD = "make it a member and hold its join; the session starts with the answer"
    UPDATE = "take its new protocols and timeouts, hold its join"
    REPLACE = "the new id takes the old one's place, which is fenced; hold its join"
    NAME = "give out a member id and ask to come back with it"
    REPEAT = "answer with the current generation once more"
    KEEP = "write the group with the new id; the join waits for that record"
    DELAY = "open the first join phase, for group.initial.rebalance.delay.ms"
    OPEN = "open a join phase: until all have rejoined, or the longest rebalance timeout"
    RESET = "forget the assignments; those waiting in sync are told to rejoin"
    TRY = "close the join phase if all have joined, unless it is the first one"
    FINISH = "close the join phase if all have joined, even the first one"
    EXTEND = "somebody new came: wait once more, then look again"
    CLOSE = "close the join phase: drop dynamic members that are missing, next generation, answer the joins"
    HOLD = "hold its sync until the plan is stored"
    STORE = "write the leader's plan; those who sync wait for that record"
    TELL = "answer with the stored assignment"
    PUBLISH = "hand out the assignments"
    TOUCH = "restart its session"
    DROP = "remove those who leave, answer for each"
    EXPEL = "remove the member"
    EXPEL_LATE = "remove the members that have not synced"
    EVICT = "remove the id, member or not yet"
    FORGET = "forget the id"
    SETTLE = "answer the join of the restarted member"
    RESTORE = "give the old id its place back"
    COMMIT = "write the offsets"
    READ = "answer with the offsets"
    PRUNE = "write tombstones for the offsets of topics that are not subscribed"
    DESCRIBE = "answer with the members and what they hold"
    DESCRIBE_ALL = "answer with protocol, members, what they want and what they hold"
    DELETE = "write tombstones for the offsets and the group"
    EXPIRE = "write tombstones for old offsets; for the group, if none is left"
    EXPIRE_REST = "write tombstones for the old offsets of topics that are not subscribed"
    BURY = "answer all who wait with NOT_COORDINATOR, forget the group"


SHORT = {                                      # error codes, by the words that stand for them in the tables
    "OK": Error.NONE, "UNKNOWN": Error.UNKNOWN_MEMBER_ID, "BUSY": Error.REBALANCE_IN_PROGRESS,
    "MOVED": Error.COORDINATOR_NOT_AVAILABLE, "ILLEGAL": Error.ILLEGAL_GENERATION, "FENCED": Error.FENCED_INSTANCE_ID,
    "MISFIT": Error.INCONSISTENT_GROUP_PROTOCOL, "FULL": Error.GROUP_MAX_SIZE_REACHED,
    "NON_EMPTY": Error.NON_EMPTY_GROUP, "NOT_FOUND": Error.GROUP_ID_NOT_FOUND, "BUG": Error.UNKNOWN_SERVER_ERROR,
}

REACTIONS: dict[On, tuple[str, str, str, str, str]] = {
    #                      Empty        Preparing        Completing               Stable             Dead
    On.JOIN_UNNAMED:      ("name",      "name",          "name",                  "name",            "MOVED"),
    On.JOIN_NEW:          ("add delay", "add try",       "add reset open",        "add open",        "MOVED"),
    On.JOIN_SAME:         ("UNKNOWN",   "update try",    "repeat",                "repeat",          "MOVED"),
    On.JOIN_LEADER:       ("UNKNOWN",   "update try",    "repeat",                "update open",     "MOVED"),
    On.JOIN_CHANGED:      ("UNKNOWN",   "update try",    "update reset open",     "update open",     "MOVED"),
    On.JOIN_BACK:         ("BUG",       "replace try",   "replace reset open",    "replace keep",    "MOVED"),
    On.JOIN_BACK_REVOTE:  ("BUG",       "replace try",   "replace reset open",    "replace open",    "MOVED"),
    On.SYNC:              ("UNKNOWN",   "BUSY",          "hold",                  "tell",            "MOVED"),
    On.SYNC_LEADER:       ("UNKNOWN",   "BUSY",          "hold store",            "tell",            "MOVED"),
    On.HEARTBEAT:         ("UNKNOWN",   "touch BUSY",    "touch OK",              "touch OK",        "MOVED"),
    On.LEAVE:             ("drop",      "drop try",      "drop reset open",       "drop open",       "MOVED"),
    On.COMMIT:            ("commit",    "touch commit",  "BUSY",                  "touch commit",    "MOVED"),
    On.FETCH:             ("read",      "read",          "read",                  "read",            "read"),
    On.PRUNE:             ("prune",     "prune",         "prune",                 "prune",           "NOT_FOUND"),
    On.DESCRIBE:          ("describe",  "describe",      "describe",              "describe_all",    "describe"),
    On.DELETE:            ("delete",    "NON_EMPTY",     "NON_EMPTY",             "NON_EMPTY",       "NOT_FOUND"),
    On.SESSION_OVER:      ("",          "expel finish",  "expel reset open",      "expel open",      ""),
    On.PENDING_OVER:      ("forget",    "forget finish", "forget",                "forget",          ""),
    On.DELAY_OVER:        ("",          "extend close",  "",                      "",                ""),
    On.JOIN_OVER:         ("",          "close",         "",                      "",                ""),
    On.SYNC_OVER:         ("",          "",              "expel_late reset open", "expel_late open", ""),
    On.PLAN_STORED:       ("",          "",              "publish",               "",                ""),
    On.PLAN_LOST:         ("",          "",              "reset open",            "",                ""),
    On.PLACE_STORED:      ("",          "settle",        "settle",                "settle",          ""),
    On.PLACE_LOST:        ("",          "restore",       "restore",               "restore",         ""),
    On.TOO_LARGE:         ("",          "",              "",                      "open",            ""),
    On.EXPIRE:            ("expire",    "",              "",                      "expire_rest",     ""),
    On.UNLOAD:            ("bury",      "bury",          "bury",                  "bury",            ""),
}

Cell = tuple[Do | Error, ...]


def words(text: str) -> Cell:
    """The words of a cell, as they are carried out."""
    return tuple(SHORT[word] if word in SHORT else Do[word.upper()] for word in text.split())


def reaction(on: On, state: GroupState) -> tuple[tuple[tuple[Check, Cell], ...], Cell]:
    """What is asked (with the answer where it is false) and then done when this happens in that state."""
    asked = tuple((check, words(check.value[2])) for check in CHECKS.get(on, ()) if state in check.value[1])
    return asked, words(REACTIONS[on][list(GroupState).index(state)])
