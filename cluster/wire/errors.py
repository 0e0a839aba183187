"""Kafka's error codes. A refusal is a value in a response; nothing in the protocol is ever raised.

`retriable`: trying again may help. `definite`: it certainly did not happen; after an indefinite error (a commit that
timed out) it may or may not have, and whoever checks must allow both.
"""

from enum import IntEnum


class Error(IntEnum):
    retriable: bool
    definite: bool

    def __new__(cls, code: int, *marks: str) -> "Error":
        error = int.__new__(cls, code)
        error._value_ = code
        error.retriable = "retriable" in marks
        error.definite = "indefinite" not in marks
        return error

    UNKNOWN_SERVER_ERROR = -1, "indefinite"
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2, "retriable"
    UNKNOWN_TOPIC_OR_PARTITION = 3, "retriable"
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5, "retriable"
    NOT_LEADER_OR_FOLLOWER = 6, "retriable", "indefinite"
    REQUEST_TIMED_OUT = 7, "retriable", "indefinite"
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13, "retriable", "indefinite"
    COORDINATOR_LOAD_IN_PROGRESS = 14, "retriable"
    COORDINATOR_NOT_AVAILABLE = 15, "retriable", "indefinite"
    NOT_COORDINATOR = 16, "retriable", "indefinite"
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19, "retriable"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "retriable", "indefinite"
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    NOT_CONTROLLER = 41, "retriable"
    INVALID_REQUEST = 42
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    KAFKA_STORAGE_ERROR = 56, "retriable", "indefinite"
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70, "retriable"
    INVALID_FETCH_SESSION_EPOCH = 71, "retriable"
    FENCED_LEADER_EPOCH = 74, "retriable"
    UNKNOWN_LEADER_EPOCH = 75, "retriable"
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78, "retriable"
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "retriable"
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "retriable"
    ELECTION_NOT_NEEDED = 84
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88, "retriable"
    INVALID_UPDATE_VERSION = 95
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INELIGIBLE_REPLICA = 107
