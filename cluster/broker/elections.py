"""Who leads a partition: the rules by which a controller changes its replicas' roles. Plain functions of the image.

A leader comes from the in-sync replicas, in the order of preference, so that nothing that was acknowledged is lost. If
none of them is there, there is no leader, unless an unclean election is allowed.
"""

from collections.abc import Iterator

import msgspec

from cluster.broker.image import NO_LEADER, Image, PartitionChanged, PartitionState


def without(image: Image, broker_id: int, *, unclean: bool) -> Iterator[tuple[PartitionChanged, bool]]:
    """A broker is going or gone: it leaves every set of in-sync replicas, and leads nothing. Each change, and whether
    its election was unclean."""
    for topic, number, state in _partitions(image):
        if broker_id in state.isr or state.leader == broker_id:
            yield _changed(topic, number, state, *_elect(image, state, without=broker_id, unclean=unclean))


def back(image: Image, broker_id: int, *, unclean: bool) -> Iterator[tuple[PartitionChanged, bool]]:
    """A broker is there again: it may lead what nobody leads."""
    for topic, number, state in _partitions(image):
        if state.leader == NO_LEADER and broker_id in state.replicas:
            elected, was_unclean = _elect(image, state, without=None, unclean=unclean)
            if elected.leader != NO_LEADER:
                yield _changed(topic, number, state, elected, was_unclean)


def preferred(image: Image, state: PartitionState) -> PartitionState | None:
    """The first replica leads if it can; None if it does already, or cannot."""
    first = state.replicas[0]
    if state.leader == first or first not in state.isr or not image.is_active(first):
        return None
    return msgspec.structs.replace(state, leader=first)


def bumped(before: PartitionState, after: PartitionState) -> PartitionState:
    """The epochs of a change: a leader that is named anew, even the same one, has a new epoch."""
    return msgspec.structs.replace(after, partition_epoch=before.partition_epoch + 1,
                                   leader_epoch=before.leader_epoch + (after.leader != before.leader))


def _partitions(image: Image) -> Iterator[tuple[str, int, PartitionState]]:
    for topic, partitions in image.topics.items():
        for number, state in enumerate(partitions):
            yield topic, number, state


def _elect(image: Image, state: PartitionState, *, without: int | None, unclean: bool) -> tuple[PartitionState, bool]:
    """The last in-sync replica stays listed, though it is gone: only it may come back as leader."""
    isr = tuple(each for each in state.isr if each != without)
    eligible = [each for each in state.replicas if each in isr and image.is_active(each) and each != without]
    if state.leader in eligible:
        return msgspec.structs.replace(state, isr=isr), False
    if eligible:
        return msgspec.structs.replace(state, isr=isr, leader=eligible[0]), False
    alive = [each for each in state.replicas if image.is_active(each) and each != without]
    if unclean and alive:
        return msgspec.structs.replace(state, isr=(alive[0],), leader=alive[0]), True
    return msgspec.structs.replace(state, isr=isr or state.isr, leader=NO_LEADER), False


def _changed(topic: str, number: int, before: PartitionState, after: PartitionState,
             unclean: bool) -> tuple[PartitionChanged, bool]:
    return PartitionChanged(topic, number, bumped(before, after)), unclean
