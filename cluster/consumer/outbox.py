"""What a client does to the world during one step, the timers that are armed, and pauses that grow."""

from random import Random

import msgspec

from cluster import outbox

NEVER = 1 << 62


class Backoff(msgspec.Struct, frozen=True):
    """Twice as long each time, give or take a fifth, up to a limit; constant if the limit is not above the first."""

    first_ms: int
    longest_ms: int

    def ms(self, failures: int, rng: Random) -> int:
        """The pause before the next attempt, after so many more than one failure."""
        if self.longest_ms <= self.first_ms:
            return self.longest_ms
        grown = min(self.first_ms << min(failures, 31), self.longest_ms)
        return min(int(grown * rng.uniform(0.8, 1.2)), self.longest_ms)


class Outbox(outbox.Outbox):
    """An outbox that remembers when its timers fire, and when the application wants to look again."""

    def __init__(self) -> None:
        super().__init__()
        self.wakes_at = NEVER
        self._armed: dict[str, int] = {}

    def wake(self, due: int) -> None:
        """The application, which is about to wait, must look again then at the latest."""
        if due < self.wakes_at:
            self.wakes_at = due

    def arm(self, timer: str, due: int) -> None:
        if self._armed.get(timer) != due:
            self._armed[timer] = due
            self.set_timer(timer, due)

    def arm_sooner(self, timer: str, due: int) -> None:
        """Arm it, unless it fires before: whoever listens to it arms it again for what is left."""
        if due < self._armed.get(timer, NEVER):
            self.arm(timer, due)

    def disarm(self, timer: str) -> None:
        if self._armed.pop(timer, None) is not None:
            self.cancel_timer(timer)

    def fired(self, timer: str) -> None:
        self._armed.pop(timer, None)
