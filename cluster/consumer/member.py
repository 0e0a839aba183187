"""Who this client is in its group: state, generation, member id; and whether it has to join again.

`move` is the only place where the state changes. A reset forgets what the coordinator told us; it touches neither the
partitions nor the coordinator: the next poll finds out what was lost.
"""

import msgspec

from cluster.consumer.states import MOVES, MemberState, Why


class Generation(msgspec.Struct, frozen=True):
    number: int = -1
    member_id: str = ""
    protocol: str | None = None


NOBODY = Generation()


class Member:
    state = MemberState.UNJOINED

    def __init__(self, group_id: str, instance_id: str | None) -> None:
        self.group_id = group_id
        self.instance_id = instance_id
        self.generation = NOBODY
        self.must_rejoin = True
        self.must_prepare = True               # partitions are not ready for the next join yet
        self.reason = ""                       # why it rejoins, for the coordinator's log
        self.public = NOBODY                   # generation and id since the last assignment: what the application sees

    def move(self, why: Why) -> None:
        self.state = MOVES[self.state, why]

    def is_rebalancing(self) -> bool:
        return self.state in (MemberState.PREPARING, MemberState.COMPLETING)

    def is_nobody(self) -> bool:
        """Whatever this member owned is lost."""
        return self.generation.number < 0 or not self.generation.member_id

    def rejoin(self, reason: str) -> None:
        self.must_rejoin = True
        self.reason = reason

    def rejoin_if_settled(self, reason: str) -> None:
        """Ask to rejoin, unless it was asked before for another reason."""
        if not self.must_rejoin:
            self.rejoin(reason)

    def reset(self, reason: str, *, keep_id: bool = False) -> None:
        self.move(Why.RESET)
        self.generation = Generation(member_id=self.generation.member_id) if keep_id else NOBODY
        self.rejoin(reason)
        self.must_prepare = True
