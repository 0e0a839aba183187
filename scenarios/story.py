"""Events as sentences, in English and Chinese: what `seesaw run` and the demonstration print while things happen."""

from collections.abc import Callable

import msgspec

from cluster.events import (
    Event,
    GenerationStarted,
    GroupDeleted,
    GroupMoved,
    LeaderChosen,
    LoadFailed,
    MemberAdded,
    MemberNamed,
    MemberRemoved,
    MemberReplaced,
    OffsetCommitted,
    OffsetsExpired,
    PlanPublished,
    RebalanceStarted,
    ShardLoaded,
    Stamped,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
    WriteFailed,
)

SENTENCES: dict[str, dict[type[Event], str]] = {
    "en": {
        GroupMoved: "group {group_id}: {before} -> {after}",
        RebalanceStarted: "group {group_id}: everybody must rejoin ({cause})",
        GenerationStarted:
            "group {group_id}: generation {generation} of {count} members, led by {leader}, assignor {protocol}",
        PlanPublished:
            "group {group_id}: the plan of generation {generation} is stored; each member may have its share",
        MemberNamed: "group {group_id}: {member_id} is given an id, and asked to come back with it",
        MemberAdded: "group {group_id}: {member_id} joins (session timeout {session_timeout_ms} ms)",
        MemberReplaced: "group {group_id}: {member_id} takes the place of {old_member_id} (instance {instance_id})",
        MemberRemoved: "group {group_id}: {member_id} is out ({cause})",
        LeaderChosen: "group {group_id}: {member_id} leads",
        OffsetCommitted: "group {group_id}: {topic}-{partition} is committed up to {offset}",
        OffsetsExpired: "group {group_id}: removed {count} expired offsets",
        GroupDeleted: "group {group_id} is gone ({cause})",
        ShardLoaded: "partition {partition} of the offsets topic is loaded: {groups} groups, {offsets} offsets",
        LoadFailed: "partition {partition} of the offsets topic cannot be loaded: {problem}",
        WriteFailed: "a record of partition {partition} is not committed: {error}",
        TopicCreated: "topic {topic} is made, with {partitions} partitions",
        TopicGrown: "topic {topic} has {partitions} partitions now",
        TopicDeleted: "topic {topic} is deleted",
    },
    "zh": {
        GroupMoved: "消费组 {group_id}：{before} -> {after}",
        RebalanceStarted: "消费组 {group_id}：所有成员须重新加入（{cause}）",
        GenerationStarted:
            "消费组 {group_id}：第 {generation} 代，{count} 个成员，分配策略 {protocol}，leader 是 {leader}",
        PlanPublished: "消费组 {group_id}：第 {generation} 代的分配方案已写入，成员可以领取各自的分区",
        MemberNamed: "消费组 {group_id}：{member_id} 得到成员 ID，须带着它再来一次",
        MemberAdded: "消费组 {group_id}：{member_id} 加入（会话超时 {session_timeout_ms} 毫秒）",
        MemberReplaced: "消费组 {group_id}：{member_id} 顶替 {old_member_id}（实例 {instance_id}）",
        MemberRemoved: "消费组 {group_id}：{member_id} 被移除（{cause}）",
        LeaderChosen: "消费组 {group_id}：{member_id} 成为 leader",
        OffsetCommitted: "消费组 {group_id}：{topic}-{partition} 的位移提交到 {offset}",
        OffsetsExpired: "消费组 {group_id}：删除了 {count} 个过期位移",
        GroupDeleted: "消费组 {group_id} 已不存在（{cause}）",
        ShardLoaded: "位移主题的分区 {partition} 加载完毕：{groups} 个消费组，{offsets} 个位移",
        LoadFailed: "位移主题的分区 {partition} 无法加载：{problem}",
        WriteFailed: "分区 {partition} 的一条记录没有提交：{error}",
        TopicCreated: "创建主题 {topic}，{partitions} 个分区",
        TopicGrown: "主题 {topic} 扩展到 {partitions} 个分区",
        TopicDeleted: "删除主题 {topic}",
    },
}

CAUSES: dict[str, dict[str, str]] = {          # causes as events state them -> how a language says it
    "en": {},
    "zh": {
        "member joined": "新成员加入", "leader rejoined": "leader 重新加入",
        "subscription changed": "成员改变了订阅", "static member restarted": "静态成员重启",
        "protocol will change": "投票结果将改变", "session expired": "会话超时", "member left": "成员离开",
        "sync timed out": "有成员没有同步", "plan not stored": "分配方案没有写入", "group too large": "成员数超过上限",
        "left": "主动离开", "did not rejoin": "没有重新加入", "did not sync": "没有同步", "group full": "组已满",
        "id not used": "ID 没有使用", "deleted": "被删除", "expired": "已过期",
    },
}


def tell(stamped: Stamped, language: str = "en", name_of: Callable[[str], str] = str) -> str | None:
    """The sentence for an event; None for one that is not worth a line."""
    event = stamped.event
    if isinstance(event, ShardLoaded) and not event.records:
        return None
    sentence = SENTENCES[language].get(type(event))
    if sentence is None:
        return None
    fields = msgspec.structs.asdict(event)
    fields["count"] = fields.get("count", len(event.members) if isinstance(event, GenerationStarted) else 0)
    for key in ("member_id", "old_member_id", "leader"):
        if key in fields:
            fields[key] = name_of(fields[key])
    if "cause" in fields:
        fields["cause"] = CAUSES[language].get(fields["cause"], fields["cause"])
    return sentence.format(**fields)
