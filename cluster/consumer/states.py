"""What a member of a classic group does about every answer, on one page. It is executed: what stands here happens.

A member is in one of four states (`MemberState`); nothing but `MOVES` changes that. An answer, or the lack of one, is
looked up in `ANSWERS` under what was asked: of the lines that name its error, the first whose `When` is true is carried
out, word by word. A word is a `Do`; the rooms of this package carry them out, and none of them knows error codes.
"""

from enum import StrEnum

from cluster.wire.errors import Error


class MemberState(StrEnum):
    UNJOINED = "UNJOINED"                                  # not in the group, as far as this member knows
    PREPARING = "PREPARING_REBALANCE"                      # JoinGroup is sent; no heartbeats
    COMPLETING = "COMPLETING_REBALANCE"                    # JoinGroup is answered, SyncGroup is not; heartbeats flow
    STABLE = "STABLE"                                      # SyncGroup is answered


class Why(StrEnum):
    JOIN_SENT = "JoinGroup was sent"
    JOIN_ANSWERED = "JoinGroup was answered"
    SYNC_ANSWERED = "SyncGroup was answered"
    RESET = "this member left, or was told that it is no longer one"


UNJOINED, PREPARING, COMPLETING, STABLE = MemberState

MOVES: dict[tuple[MemberState, Why], MemberState] = {
    (PREPARING, Why.JOIN_ANSWERED): COMPLETING,
    (COMPLETING, Why.SYNC_ANSWERED): STABLE,
    **{(state, Why.JOIN_SENT): PREPARING for state in MemberState},
    **{(state, Why.RESET): UNJOINED for state in MemberState},
}


class Asked(StrEnum):
    """What a client asks, by Kafka's names."""

    FIND = "FindCoordinator"
    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    BEAT = "Heartbeat"
    LEAVE = "LeaveGroup"
    COMMIT = "OffsetCommit"
    OFFSETS = "OffsetFetch"
    METADATA = "Metadata"
    FETCH = "Fetch"
    LIST = "ListOffsets"
    VALIDATE = "OffsetForLeaderEpoch"
    PRODUCE = "Produce"                                    # a producer asks that; it is not on this page


class When(StrEnum):
    """Under which circumstances a line holds; the first line that does is carried out."""

    ALWAYS = ""
    SAME = "asked in the generation that is still current"
    OUTRUN = "asked in another generation, and JoinGroup is sent"
    JOINING = "the member is PREPARING_REBALANCE"
    SYNCING = "the member is COMPLETING_REBALANCE"
    IN_GROUP = "the member is STABLE"
    MOVED_ON = "the position is no longer the one that was asked for"
    RESETS = "auto.offset.reset is earliest or latest"


class Do(StrEnum):
    # the coordinator
    FOUND = "this is the coordinator; the local session starts again"
    LOSE = "the coordinator is unknown; close the connection, and all that was asked on it is lost"
    SEEK = "look again, after a growing pause and a refresh of the metadata"
    # who this member is
    RESET_ALL = "UNJOINED; forget generation and member id; rejoin"
    RESET_GENERATION = "UNJOINED; forget the generation, keep the member id; rejoin"
    REJOIN = "rejoin with the next poll"
    NAME = "take the member id that was given out"
    # joining
    ENTER = "COMPLETING_REBALANCE, in this generation; heartbeats start; lead or follow, and sync"
    GRANT = "STABLE; the next poll takes over the assignment"
    AGAIN = "this join is over; the next one may start at once"
    PAUSE = "this join is over; the next one starts after retry.backoff.ms"
    # heartbeats
    BEATEN = "the local session starts again; failures are forgotten"
    MISSED = "the next heartbeat comes after a growing pause"
    STOP = "heartbeats stop for good"
    # commits: what their caller is told
    COMMITTED = "done"
    COMMIT_AGAIN = "failed, and may be tried again"
    COMMIT_LATER = "RebalanceInProgress"
    COMMIT_FAILED = "CommitFailed"
    COMMIT_THROWN = "this very error"
    # positions and records
    ADOPT = "begin where the group committed; where it did not, as auto.offset.reset says"
    ASK_OFFSETS = "ask for the committed offsets again, after a growing pause"
    BEGIN = "begin at this offset"
    VERIFY = "the position is good; or the log was cut off before it, and it is set back"
    ASK_LATER = "ask for this partition again, after retry.backoff.ms"
    TAKE = "these records can be returned"
    RESET_POSITION = "find out where the log begins or ends, as auto.offset.reset says"
    # the cluster
    LEARN = "this is the cluster"
    LEARN_LATER = "ask another broker, after a growing pause"
    REFRESH = "the metadata is stale"
    THROW = "the application gets this error from its poll"


SHORT = {                                                  # error codes, by the words that stand for them below
    "OK": Error.NONE, "LOST": Error.NETWORK_EXCEPTION,     # LOST: the connection was closed, or nothing came in time
    "LOADING": Error.COORDINATOR_LOAD_IN_PROGRESS, "NOWHERE": Error.COORDINATOR_NOT_AVAILABLE,
    "ELSEWHERE": Error.NOT_COORDINATOR, "BUSY": Error.REBALANCE_IN_PROGRESS, "UNKNOWN": Error.UNKNOWN_MEMBER_ID,
    "ILLEGAL": Error.ILLEGAL_GENERATION, "FENCED": Error.FENCED_INSTANCE_ID, "NAMELESS": Error.MEMBER_ID_REQUIRED,
    "TIMEOUT": Error.REQUEST_TIMED_OUT, "TOPIC": Error.UNKNOWN_TOPIC_OR_PARTITION, "RANGE": Error.OFFSET_OUT_OF_RANGE,
    "FORBIDDEN": Error.TOPIC_AUTHORIZATION_FAILED, "NOT_LEADER": Error.NOT_LEADER_OR_FOLLOWER,
    "STORAGE": Error.KAFKA_STORAGE_ERROR, "OLD_EPOCH": Error.FENCED_LEADER_EPOCH,
    "NEW_EPOCH": Error.UNKNOWN_LEADER_EPOCH, "NOT_YET": Error.OFFSET_NOT_AVAILABLE, "BUG": Error.UNKNOWN_SERVER_ERROR,
}
GONE = "NOWHERE ELSEWHERE LOST"                            # whoever we asked does not coordinate this group, or is dead

ANSWERS: tuple[tuple[Asked, str, When, str], ...] = (
    # asked          answer                         when           what is done
    (Asked.FIND,     "OK",                          When.ALWAYS,   "found"),
    (Asked.FIND,     "RETRIABLE",                   When.ALWAYS,   "seek refresh"),
    (Asked.FIND,     "ANY",                         When.ALWAYS,   "seek throw"),

    (Asked.JOIN,     "OK",                          When.JOINING,  "enter"),
    (Asked.JOIN,     "OK LOADING",                  When.ALWAYS,   "pause"),
    (Asked.JOIN,     GONE,                          When.ALWAYS,   "lose pause"),
    (Asked.JOIN,     "UNKNOWN",                     When.SAME,     "reset_all again"),
    (Asked.JOIN,     "UNKNOWN BUSY",                When.ALWAYS,   "again"),
    (Asked.JOIN,     "NAMELESS",                    When.ALWAYS,   "again name"),
    (Asked.JOIN,     "ANY",                         When.ALWAYS,   "again throw"),

    (Asked.SYNC,     "OK",                          When.SYNCING,  "grant"),
    (Asked.SYNC,     "UNKNOWN",                     When.SAME,     "reset_all again"),
    (Asked.SYNC,     "ILLEGAL",                     When.SAME,     "reset_generation again"),
    (Asked.SYNC,     "OK UNKNOWN ILLEGAL BUSY",     When.ALWAYS,   "again"),
    (Asked.SYNC,     GONE,                          When.ALWAYS,   "lose pause"),
    (Asked.SYNC,     "ANY",                         When.ALWAYS,   "again throw"),

    (Asked.BEAT,     "BUSY",                        When.IN_GROUP, "rejoin beaten"),
    (Asked.BEAT,     "UNKNOWN",                     When.SAME,     "reset_all missed"),
    (Asked.BEAT,     "ILLEGAL",                     When.SAME,     "reset_generation missed"),
    (Asked.BEAT,     "FENCED",                      When.SAME,     "reset_all stop throw"),
    (Asked.BEAT,     "OK BUSY UNKNOWN ILLEGAL FENCED", When.ALWAYS, "beaten"),
    (Asked.BEAT,     GONE,                          When.ALWAYS,   "lose missed"),
    (Asked.BEAT,     "ANY",                         When.ALWAYS,   "missed"),

    (Asked.LEAVE,    "ANY",                         When.ALWAYS,   ""),

    (Asked.COMMIT,   "OK",                          When.ALWAYS,   "committed"),
    (Asked.COMMIT,   "LOADING TOPIC",               When.ALWAYS,   "commit_again"),
    (Asked.COMMIT,   f"TIMEOUT {GONE}",             When.ALWAYS,   "lose commit_again"),
    (Asked.COMMIT,   "BUSY",                        When.ALWAYS,   "rejoin commit_later"),
    (Asked.COMMIT,   "UNKNOWN ILLEGAL FENCED",      When.OUTRUN,   "commit_later"),
    (Asked.COMMIT,   "UNKNOWN",                     When.ALWAYS,   "reset_all commit_failed"),
    (Asked.COMMIT,   "ILLEGAL",                     When.ALWAYS,   "reset_generation commit_failed"),
    (Asked.COMMIT,   "FENCED",                      When.SAME,     "commit_thrown throw"),
    (Asked.COMMIT,   "FENCED",                      When.ALWAYS,   "commit_failed"),
    (Asked.COMMIT,   "ANY",                         When.ALWAYS,   "commit_thrown"),

    (Asked.OFFSETS,  "OK",                          When.ALWAYS,   "adopt"),
    (Asked.OFFSETS,  GONE,                          When.ALWAYS,   "lose ask_offsets"),
    (Asked.OFFSETS,  "TOPIC",                       When.ALWAYS,   "ask_offsets throw"),
    (Asked.OFFSETS,  "RETRIABLE",                   When.ALWAYS,   "ask_offsets"),
    (Asked.OFFSETS,  "ANY",                         When.ALWAYS,   "ask_offsets throw"),

    (Asked.METADATA, "OK",                          When.ALWAYS,   "learn"),
    (Asked.METADATA, "LOST",                        When.ALWAYS,   "learn_later"),
    (Asked.METADATA, "RETRIABLE",                   When.ALWAYS,   "refresh"),
    (Asked.METADATA, "ANY",                         When.ALWAYS,   "throw"),

    (Asked.FETCH,    "OK RANGE",                    When.MOVED_ON, ""),
    (Asked.FETCH,    "OK",                          When.ALWAYS,   "take"),
    (Asked.FETCH,    "RANGE",                       When.RESETS,   "reset_position"),
    (Asked.FETCH,    "NOT_LEADER OLD_EPOCH TOPIC STORAGE NOT_YET LOST", When.ALWAYS, "refresh"),
    (Asked.FETCH,    "NEW_EPOCH BUG",               When.ALWAYS,   ""),
    (Asked.FETCH,    "ANY",                         When.ALWAYS,   "throw"),

    (Asked.LIST,     "OK",                          When.ALWAYS,   "begin"),
    (Asked.LIST,     "FORBIDDEN",                   When.ALWAYS,   "ask_later throw"),
    (Asked.LIST,     "ANY",                         When.ALWAYS,   "refresh ask_later"),

    (Asked.VALIDATE, "OK",                          When.MOVED_ON, ""),
    (Asked.VALIDATE, "OK",                          When.ALWAYS,   "verify"),
    (Asked.VALIDATE, "FORBIDDEN",                   When.ALWAYS,   "ask_later throw"),
    (Asked.VALIDATE, "ANY",                         When.ALWAYS,   "refresh ask_later"),
)

Line = tuple[When, tuple[Do, ...]]


def names(answer: str, error: Error) -> bool:
    """Does a line with this answer name that error? RETRIABLE names those that trying again may mend, ANY all."""
    return any(word == "ANY" or (error.retriable if word == "RETRIABLE" else SHORT[word] is error)
               for word in answer.split())


def words(text: str) -> tuple[Do, ...]:
    return tuple(Do[word.upper()] for word in text.split())


def lines(asked: Asked, error: Error) -> tuple[Line, ...]:
    """The lines that may be carried out when this was asked and that is answered, up to the one that always holds."""
    found: list[Line] = []
    for row, answer, when, done in ANSWERS:
        if row is asked and names(answer, error):
            found.append((when, words(done)))
            if when is When.ALWAYS:
                break
    return tuple(found)


PROGRAM: dict[Asked, dict[Error, tuple[Line, ...]]] = {
    asked: {error: lines(asked, error) for error in Error} for asked in Asked if asked is not Asked.PRODUCE
}
