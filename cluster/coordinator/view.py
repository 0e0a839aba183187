"""Groups and offsets as the records of one partition of __consumer_offsets tell them, up to some record.

A shard has two views: the latest, which includes what is written but not yet committed, and the committed one, which
is what a plain read may see. Both are changed by records only, so that a load from the log ends with the same.
"""

import msgspec

from cluster.coordinator.group import Group
from cluster.coordinator.records import GroupRecord, Offset, OffsetRecord, Stored

Offsets = dict[tuple[str, int], Offset]        # (topic, partition) -> what was committed


class Change(msgspec.Struct, frozen=True):
    """A record, with the group that it is about, and who made it be written: a member id, its generation, and when."""

    stored: Stored
    group: Group
    author: tuple[str, int, int] = ("", -1, 0)


class View:
    def __init__(self, groups: dict[str, Group] | None = None, offsets: dict[str, Offsets] | None = None) -> None:
        self.groups: dict[str, Group] = {} if groups is None else groups
        self.offsets: dict[str, Offsets] = {} if offsets is None else offsets

    def copy(self) -> "View":
        return View(dict(self.groups), {group_id: dict(offsets) for group_id, offsets in self.offsets.items()})

    def apply(self, change: Change) -> None:
        stored = change.stored
        if isinstance(stored, OffsetRecord):
            self._apply_offset(stored, change.group)
        elif stored.metadata is None:
            self.groups.pop(stored.group_id, None)
        else:
            self.groups[stored.group_id] = change.group

    def _apply_offset(self, stored: OffsetRecord, group: Group) -> None:
        where = stored.topic, stored.partition
        if stored.offset is not None:
            self.groups.setdefault(stored.group_id, group)
            self.offsets.setdefault(stored.group_id, {})[where] = stored.offset
            return
        offsets = self.offsets.get(stored.group_id)
        if offsets is not None:
            offsets.pop(where, None)
            if not offsets:
                del self.offsets[stored.group_id]

    def offsets_of(self, group_id: str) -> Offsets:
        return self.offsets.get(group_id, {})


def tombstones(group: Group, offsets: Offsets) -> list[Stored]:
    """Records that delete these offsets of a group."""
    return [OffsetRecord(group.group_id, topic, partition, None) for topic, partition in offsets]


def group_tombstone(group: Group) -> GroupRecord:
    return GroupRecord(group.group_id, None)
