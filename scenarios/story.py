"""Events as sentences, in English and Chinese: what `seesaw run` prints while things happen.

`tell` has the sentence for an event, if it is worth one. A `Narrator` tells a whole run: it knows what is over when
something is over, and does not say the same thing a hundred times when a hundred members start.
"""

from collections.abc import Callable, Mapping

import msgspec

from cluster.broker.image import OFFSETS_TOPIC
from cluster.events import (
    BrokerFenced,
    BrokerStopped,
    BrokerUnfenced,
    ConsumerFailed,
    CoordinatorFound,
    CoordinatorLost,
    Event,
    FaultBegan,
    FaultEnded,
    GenerationStarted,
    GroupDeleted,
    GroupLoaded,
    GroupMoved,
    LeaderChosen,
    LeaderElected,
    LoadFailed,
    MemberAdded,
    MemberLeft,
    MemberRemoved,
    MemberReplaced,
    OffsetsExpired,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    PlanPublished,
    PollIntervalExceeded,
    ProcessStarted,
    RebalanceStarted,
    RecordsGivenUp,
    ShardLoaded,
    Stamped,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
    WriteFailed,
)
from cluster.faults import Duration

SENTENCES: dict[str, dict[type[Event], str]] = {
    "en": {
        FaultBegan: "{what}: {target}{detail}",
        FaultEnded: "over: {what} {target}",
        ProcessStarted: "{name} starts again",
        GroupMoved: "group {group_id}: {before} -> {after}",
        RebalanceStarted: "group {group_id}: everybody must rejoin ({cause})",
        GenerationStarted:
            "group {group_id}: generation {generation} of {count} members, led by {leader}, assignor {protocol}",
        PlanPublished:
            "group {group_id}: the plan of generation {generation} is stored; each member may have its share",
        MemberAdded: "group {group_id}: {member_id} joins (session timeout {session_timeout_ms} ms)",
        MemberReplaced: "group {group_id}: {member_id} takes the place of {old_member_id} (instance {instance_id})",
        MemberRemoved: "group {group_id}: {member_id} is out ({cause})",
        LeaderChosen: "group {group_id}: {member_id} leads",
        OffsetsExpired: "group {group_id}: removed {count} expired offsets",
        GroupDeleted: "group {group_id} is gone ({cause})",
        ShardLoaded: "partition {partition} of the offsets topic is loaded: {groups} groups, {offsets} offsets",
        GroupLoaded: "group {group_id} is found again: {state}, generation {generation}, {count} members",
        LoadFailed: "partition {partition} of the offsets topic cannot be loaded: {problem}",
        WriteFailed: "a record of partition {partition} is not committed: {error}",
        TopicCreated: "topic {topic} is made, with {partitions} partitions",
        TopicGrown: "topic {topic} has {partitions} partitions now",
        TopicDeleted: "topic {topic} is deleted",
        LeaderElected: "broker {leader} leads {topic}-{partition} (epoch {epoch})",
        BrokerFenced: "broker {broker} counts as gone ({cause})",
        BrokerUnfenced: "broker {broker} is there",
        BrokerStopped: "broker {broker} has handed over what it led, and ends",
        CoordinatorFound: "{machine} finds its coordinator: broker {node}",
        CoordinatorLost: "{machine} has lost its coordinator ({cause})",
        PartitionsAssigned: "{machine} owns {owned}",
        PartitionsRevoked: "{machine} gives up {partitions}",
        PartitionsLost: "{machine} has lost {partitions}: they are somebody else's already",
        PollIntervalExceeded: "{machine} has not polled for max.poll.interval.ms, and leaves by itself",
        MemberLeft: "{machine} leaves ({cause})",
        ConsumerFailed: "{machine} ends with an error: {error}",
        RecordsGivenUp: "{machine} gives up {count} records of {topic}-{partition}: {error}",
    },
    "zh": {
        FaultBegan: "{what}：{target}{detail}",
        FaultEnded: "结束：{what} {target}",
        ProcessStarted: "{name} 重新启动",
        GroupMoved: "消费组 {group_id}：{before} -> {after}",
        RebalanceStarted: "消费组 {group_id}：所有成员须重新加入（{cause}）",
        GenerationStarted:
            "消费组 {group_id}：第 {generation} 代，{count} 个成员，分配策略 {protocol}，leader 是 {leader}",
        PlanPublished: "消费组 {group_id}：第 {generation} 代的分配方案已写入，成员可以领取各自的分区",
        MemberAdded: "消费组 {group_id}：{member_id} 加入（会话超时 {session_timeout_ms} 毫秒）",
        MemberReplaced: "消费组 {group_id}：{member_id} 顶替 {old_member_id}（实例 {instance_id}）",
        MemberRemoved: "消费组 {group_id}：{member_id} 被移除（{cause}）",
        LeaderChosen: "消费组 {group_id}：{member_id} 成为 leader",
        OffsetsExpired: "消费组 {group_id}：删除了 {count} 个过期位移",
        GroupDeleted: "消费组 {group_id} 已不存在（{cause}）",
        ShardLoaded: "位移主题的分区 {partition} 加载完毕：{groups} 个消费组，{offsets} 个位移",
        GroupLoaded: "消费组 {group_id} 已恢复：{state}，第 {generation} 代，{count} 个成员",
        LoadFailed: "位移主题的分区 {partition} 无法加载：{problem}",
        WriteFailed: "分区 {partition} 的一条记录没有提交：{error}",
        TopicCreated: "创建主题 {topic}，{partitions} 个分区",
        TopicGrown: "主题 {topic} 扩展到 {partitions} 个分区",
        TopicDeleted: "删除主题 {topic}",
        LeaderElected: "broker {leader} 成为 {topic}-{partition} 的 leader（epoch {epoch}）",
        BrokerFenced: "broker {broker} 被视为失效（{cause}）",
        BrokerUnfenced: "broker {broker} 已就绪",
        BrokerStopped: "broker {broker} 已移交所有 leader 分区，退出",
        CoordinatorFound: "{machine} 找到协调者：broker {node}",
        CoordinatorLost: "{machine} 失去协调者（{cause}）",
        PartitionsAssigned: "{machine} 拥有 {owned}",
        PartitionsRevoked: "{machine} 交出 {partitions}",
        PartitionsLost: "{machine} 丢失 {partitions}：它们已属于别人",
        PollIntervalExceeded: "{machine} 超过 max.poll.interval.ms 没有 poll，自行离开",
        MemberLeft: "{machine} 离开（{cause}）",
        ConsumerFailed: "{machine} 因错误结束：{error}",
        RecordsGivenUp: "{machine} 放弃 {topic}-{partition} 的 {count} 条记录：{error}",
    },
}

WORDS: dict[str, dict[str, str]] = {           # causes and faults as events state them -> how a language says it
    "en": {"not-tcp": "not TCP", "slow-disk": "slow disk"},
    "zh": {
        "member joined": "新成员加入", "leader rejoined": "leader 重新加入",
        "subscription changed": "成员改变了订阅", "static member restarted": "静态成员重启",
        "protocol will change": "投票结果将改变", "session expired": "会话超时", "member left": "成员离开",
        "sync timed out": "有成员没有同步", "plan not stored": "分配方案没有写入", "group too large": "成员数超过上限",
        "left": "主动离开", "did not rejoin": "没有重新加入", "did not sync": "没有同步", "group full": "组已满",
        "id not used": "ID 没有使用", "deleted": "被删除", "expired": "已过期", "closed": "关闭",
        "unsubscribed": "取消订阅", "poll interval": "poll 间隔超时", "shutting down": "正在停止",
        "restarted": "已重启", "disconnected": "连接断开", "session timed out": "会话超时",
        "pause": "冻结", "crash": "杀死", "silence": "整机失联", "stop": "请求停止", "cut": "断网", "delay": "延迟",
        "loss": "丢包", "not-tcp": "非 TCP", "slow-disk": "慢磁盘",
    },
}
MORE = {"en": "... and {count} more of these", "zh": "……以及另外 {count} 条同类事件"}


def tell(stamped: Stamped, language: str = "en", name_of: Callable[[str], str] = str) -> str | None:
    """The sentence for an event; None for one that is not worth a line."""
    event = stamped.event
    sentence = SENTENCES[language].get(type(event))
    if sentence is None or _is_dull(event):
        return None
    fields = msgspec.structs.asdict(event) | {"machine": stamped.machine}
    if isinstance(event, (GenerationStarted, GroupLoaded)):
        fields["count"] = len(event.members)
    for key in ("member_id", "old_member_id", "leader"):
        if isinstance(fields.get(key), str):
            fields[key] = name_of(fields[key])
    for key in ("cause", "what"):
        if key in fields:
            fields[key] = WORDS[language].get(fields[key], fields[key])
    for key in ("owned", "partitions"):
        if isinstance(fields.get(key), Mapping):
            fields[key] = _listed(fields[key])
    if isinstance(event, FaultBegan):
        fields["target"] = event.target or event.who
        fields["detail"] = _detail(event)
    return sentence.format(**{"what": "", "target": ""} | fields)


def _is_dull(event: Event) -> bool:
    if isinstance(event, ShardLoaded):
        return not event.groups
    if isinstance(event, LeaderElected):
        return event.epoch == 0 or event.topic == OFFSETS_TOPIC
    if isinstance(event, PartitionsRevoked):
        return not event.partitions
    return isinstance(event, GroupLoaded) and not event.members


def _listed(partitions: Mapping[str, tuple[int, ...]]) -> str:
    shown = [f"{topic} {_ranges(numbers)}" for topic, numbers in partitions.items() if numbers]
    return ", ".join(shown) or "-"


def _ranges(numbers: tuple[int, ...]) -> str:
    """0 1 2 5 as 0-2 5."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}-{last}" if first < last else str(first) for first, last in runs)


def _detail(event: FaultBegan) -> str:
    """Whom a role meant, and how bad it is."""
    told = [] if event.who.replace("-", " ") in event.target.replace("/", " ") or "->" in event.who else [event.who]
    for key, value in event.detail.items():
        if key not in ("hosts", "processes") and value:
            told.append(f"{key} {Duration(value) if isinstance(value, int) else value}")
    return f" ({', '.join(told)})" if told else ""


def client_of(member_id: str) -> str:
    """A member id without its random part."""
    return member_id[:-37] if len(member_id) > 37 else member_id


Line = Callable[[int, type[Event], str], None]             # when, about what, the sentence


class Narrator:
    """Tells a run as it happens, in lines. Of many things of one kind at nearly one time it tells the first few; what
    happens again and again, like looking for a coordinator that is dead, it tells once."""

    AGAIN_MS = 10_000
    WINDOW_MS = 500
    AT_MOST = 6                                # lines of one kind within a window

    def __init__(self, say: Line, language: str = "en") -> None:
        self.say = say
        self.language = language
        self.faults: dict[int, FaultBegan] = {}
        self._told: dict[str, int] = {}        # sentence -> when it was so
        self._windows: dict[type[Event], list[int]] = {}   # kind -> when it began, how many were told, were not

    def __call__(self, stamped: Stamped) -> None:
        event = stamped.event
        if isinstance(event, FaultBegan):
            self.faults[event.fault] = event
        sentence = self._over(event) if isinstance(event, FaultEnded) else tell(stamped, self.language, client_of)
        if sentence is not None and not self._is_old(stamped, sentence):
            self._close(stamped.at - self.WINDOW_MS)
            window = self._windows.setdefault(type(event), [stamped.at, 0, 0])
            if window[1] < self.AT_MOST:
                window[1] += 1
                self.say(stamped.at, type(event), sentence)
            else:
                window[2] += 1

    def _is_old(self, stamped: Stamped, sentence: str) -> bool:
        if not isinstance(stamped.event, (CoordinatorFound, CoordinatorLost)):
            return False
        told = self._told.get(sentence)
        self._told[sentence] = stamped.at
        return told is not None and stamped.at - told < self.AGAIN_MS

    def _over(self, event: FaultEnded) -> str | None:
        began = self.faults.pop(event.fault, None)
        if began is None:
            return None
        what = WORDS[self.language].get(began.what, began.what)
        return SENTENCES[self.language][FaultEnded].format(what=what, target=began.target)

    def finish(self) -> None:
        self._close(1 << 62)

    def _close(self, before: int) -> None:
        """Windows that are over: say how much was left out."""
        for kind, (began, _, left_out) in list(self._windows.items()):
            if began <= before:
                del self._windows[kind]
                if left_out:
                    self.say(began + self.WINDOW_MS, kind, MORE[self.language].format(count=left_out))
