# ruff: noqa: SIM905 (sixty quoted syllables are unreadable)
"""Invented memories and prompts of any number, in English, Chinese and both, the same for the same seed.

They read like a developer's notes: a project, a part of it, a rule with a reason, names of tools and files, and a
glossary of about four terms. Contents are 200 to 600 characters. Meant for load, speed and properties, not for quality.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from lorehooks.core.model import Node

_EPOCH = "2025-{month:02}-{day:02}T{hour:02}:00:00.000Z"

_SYLLABLES = (
    "ba be bi bo ca ce co da de di do fa fe fi ga go ha he hi ka ke ki la le li lo ma me mi mo na ne no pa pe pi "
    "ra re ri ro sa se si so ta te ti to va ve vi za zo"
).split()
_PARTS = {
    "auth": "登录", "billing": "账单", "cache": "缓存", "calendar": "日历", "catalog": "目录", "chat": "聊天",
    "config": "配置", "consumer": "消费者", "dashboard": "看板", "database": "数据库", "deploy": "部署",
    "email": "邮件", "export": "导出", "firmware": "固件", "frontend": "前端", "gateway": "网关", "import": "导入",
    "index": "索引", "invoice": "发票", "logging": "日志", "metrics": "指标", "migration": "迁移", "mobile": "移动端",
    "monitoring": "监控", "network": "网络", "notification": "通知", "orders": "订单", "payments": "支付",
    "permissions": "权限", "pricing": "定价", "queue": "队列", "refund": "退款", "release": "发布", "report": "报表",
    "scheduler": "调度", "search": "搜索", "secrets": "密钥", "sensor": "传感器", "session": "会话",
    "shipping": "物流", "storage": "存储", "streaming": "流处理", "sync": "同步", "testing": "测试",
    "training": "训练", "translation": "翻译", "upload": "上传", "users": "用户", "webhook": "回调", "worker": "工作进程",
}  # fmt: skip
_ACTIONS = (
    ("retry a failed request", "重试失败的请求"), ("rename a column", "修改字段名"), ("delete old rows", "删除旧数据"),
    ("raise the timeout", "调大超时"), ("add an index", "新增索引"), ("rotate the certificate", "轮换证书"),
    ("skip a broken test", "跳过失败的用例"), ("roll back a release", "回滚版本"), ("change the schema", "修改表结构"),
    ("resize the pool", "调整连接池"), ("mask personal data", "脱敏个人信息"), ("reload the history", "重跑历史数据"),
    ("pin a dependency", "固定依赖版本"), ("open a port", "开放端口"), ("restart the consumer", "重启消费者"),
    ("compress the payload", "压缩报文"), ("split a large file", "拆分大文件"), ("drain a node", "排空节点"),
)  # fmt: skip
_REASONS = (
    ("an eviction once charged customers twice", "上次缓存淘汰导致重复扣款"),
    ("the upstream sends late events for two days", "上游两天内还会补发数据"),
    ("a direct call took the replica down", "直接调用把从库拖垮过"),
    ("the auditors read the log every quarter", "审计每个季度都会查日志"),
    ("old clients still depend on the string", "老客户端还依赖这个字符串"),
    ("the clock jumps when summer time ends", "夏令时结束时时钟会跳"),
    ("the vendor limits us to ten calls a second", "供应商限制每秒十次调用"),
    ("nobody is on call during the weekend", "周末没有人值班"),
)
_FILLERS = (
    ("Ask the owner before you touch it.", "动手之前先问负责人。"),
    ("The runbook has the exact command.", "具体命令写在手册里。"),
    ("Numbers from before May are not comparable.", "五月以前的数字不能拿来比较。"),
    ("A second review is needed for production.", "生产环境需要第二个人评审。"),
    ("The nightly job checks it and opens a ticket.", "每晚的任务会检查并开工单。"),
    ("Keep the old path until the contract ends.", "合同到期之前保留旧路径。"),
)
_ASKS = (
    ("can I {action} in {part} now?", "现在能{action}吗，{part}这边"),
    ("{part}: how do we {action}", "{part}要{action}，怎么做"),
    ("{name} fails after I tried to {action}", "{name} 报错了，我刚刚{action}"),
    ("write a small change for {part} that will {action}", "给{part}写个改动：{action}"),
    ("what is {name}?", "{name} 是什么"),
    ("thanks, looks good", "好的，继续"),
)


def synthetic_nodes(n: int, seed: int = 0) -> list[Node]:
    """`n` memories with distinct URIs and uuids."""
    rng = random.Random(seed)
    projects = [_name(rng) for _ in range(max(3, n // 60))]
    taken: set[str] = set()
    return [_node(rng, number, projects, taken) for number in range(n)]


def synthetic_prompts(n: int, seed: int = 0) -> list[str]:
    """`n` prompts of 10 to a few hundred characters about the same kinds of things, some of them idle."""
    rng = random.Random(f"prompts-{seed}")
    return [_prompt(rng) for _ in range(n)]


def _node(rng: random.Random, number: int, projects: list[str], taken: set[str]) -> Node:
    chinese = rng.random() < 0.4
    part, tool, action, reason = rng.choice(list(_PARTS)), _tool(rng), rng.choice(_ACTIONS), rng.choice(_REASONS)
    uri = f"project://{rng.choice(projects)}/{part}/{tool.lower().replace('.', '_').replace('-', '_')}"
    if uri in taken:
        uri = f"{uri}_{number}"
    taken.add(uri)
    text = "".join(_sentences(rng, part, tool, action, reason, chinese=chinese))
    what = _PARTS[part] if chinese else part
    moment = _EPOCH.format(month=rng.randint(1, 12), day=rng.randint(1, 28), hour=rng.randint(0, 23))
    disclosure = f"要{action[1]}的时候。" if chinese else f"When you are about to {action[0]}."
    terms = [tool, what, action[1] if chinese else action[0].rsplit(" ", 1)[-1], f"{_word(rng)} {part}"]
    return Node(
        f"synthetic-{number:06}", uri, text, rng.choice((1, 2, 2, 3, 3, 4)), disclosure,
        tuple(dict.fromkeys(terms)), moment, moment, moment,
    )  # fmt: skip


def _sentences(
    rng: random.Random, part: str, tool: str, action: tuple[str, str], reason: tuple[str, str], *, chinese: bool
) -> Iterator[str]:
    number = rng.randint(2, 900)
    if chinese:
        yield f"{_PARTS[part]}要{action[1]}必须走 {tool}，上限 {number}，因为{reason[1]}。"
    else:
        yield f"To {action[0]} in {part}, go through {tool} with at most {number}, since {reason[0]}. "
    written, most = 0, rng.randint(2, 6)
    while written < most:
        written += 1
        other, filler = rng.choice(list(_PARTS)), rng.choice(_FILLERS)
        if chinese:
            yield f"{_tool(rng)} 只管{_PARTS[other]}，阈值是 {rng.randint(1, 500)}，见 {_word(rng)}.md。{filler[1]}"
        else:
            yield f"{_tool(rng)} owns the {other} side and stops at {rng.randint(1, 500)} {_word(rng)}s. {filler[0]} "


def _prompt(rng: random.Random) -> str:
    ask = rng.choice(_ASKS)
    language = int(rng.random() < 0.4)
    part, action = rng.choice(list(_PARTS.items())), rng.choice(_ACTIONS)
    text = ask[language].format(part=part[language], action=action[language], name=_tool(rng))
    if rng.random() < 0.15:  # a pasted log
        text += "\n" + "\n".join(f"ERROR {_tool(rng)} {_word(rng)} line {rng.randint(1, 999)}" for _ in range(8))
    return text


def _word(rng: random.Random) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 3)))


def _name(rng: random.Random) -> str:
    return f"{_word(rng)}_{rng.choice(list(_PARTS))}"


def _tool(rng: random.Random) -> str:
    first, second = _word(rng), _word(rng)
    return rng.choice((f"{first}.{second.title()}", f"{first}_{second}", f"{first}-{second}", first.title()))
