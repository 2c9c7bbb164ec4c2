"""What a cosine of a model is worth: below `low` it is chance, from `high` on as close as texts get.

Every model has its own scale. In one, texts that have nothing in common lie at 0.1, in another at 0.7. Both ends are read
off texts of the model at hand: how near the questions of memories come to the gists of others, and to their own. With the
static model this gives, to a hundredth, the two numbers that were found by trying (`STATIC`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CHANCE_QUANTILE, CLOSE_QUANTILE = 0.75, 0.5
"""Three of four questions are further than `low` from the gist of another memory; half are nearer than `high` to their own."""
MOST_PAIRS = 256
"""Memories that are looked at; more change the third decimal."""
ENOUGH_PAIRS = 48
"""Memories below which the samples below are looked at as well: a few say more about themselves than about the model."""
_LEAST_SPAN = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """The two ends of a model's scale. Plain numbers, so that a record of a run can hold them."""

    low: float
    high: float

    def closeness(self, cosine: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cosines as 0 (chance) to 1."""
        return np.clip((cosine - self.low) / (self.high - self.low), 0.0, 1.0)


STATIC = Calibration(0.15, 0.72)
"""The static model's, found by trying on labelled prompts."""


def derive(questions: NDArray[np.float32], gists: NDArray[np.float32]) -> Calibration:
    """The scale of a model from unit vectors of questions and gists, row by row of the same memory; at least two rows.

    The same rows in the same order give the same numbers.
    """
    cosines = np.asarray(questions @ gists.T, dtype=np.float64)
    own = np.diagonal(cosines)
    others = cosines[~np.eye(len(cosines), dtype=bool)]
    low = float(np.quantile(others, CHANCE_QUANTILE))
    high = float(np.quantile(own, CLOSE_QUANTILE))
    return Calibration(round(low, 4), round(max(high, low + _LEAST_SPAN), 4))


SAMPLES: tuple[tuple[str, str], ...] = (
    ("How do we publish a release?\nWhat must happen before the tag is pushed?",
     "Releases are cut on Tuesdays from the main branch; the changelog is written before the tag is pushed."),
    ("Which database do the integration tests use?\nHow is the test database reset?",
     "Integration tests run against PostgreSQL in a container and roll back after each case; SQLite hides locking problems."),
    ("Where are the logs of the mail worker?\nWhy was an e-mail not sent?",
     "The mail worker logs to the journal under its unit name; a refused message is retried for six hours."),
    ("How should dates be shown to users?\nWhich time zone do we store?",
     "Store moments in UTC and show them in the zone of the reader, day first, with the month written out."),
    ("May I change the colours of a button?\nWho decides about the design system?",
     "Colours come from the design tokens; the design team reviews each change of a token."),
    ("How are invoices numbered?\nWhat about gaps in invoice numbers?",
     "Invoice numbers run without gaps within a year; a cancelled invoice keeps its number and gets a credit note."),
    ("What does the user expect of commit messages?\nHow long may a subject line be?",
     "Commit messages say why, in the imperative, with a subject of at most fifty characters."),
    ("Why is the image build slow?\nHow is the build cache shared?",
     "Image builds pull the cache layer of the last nightly build; without it they take twenty minutes."),
    ("数据库迁移怎么上线？\n迁移失败了怎么回退？",
     "数据库迁移分两步上线：先加字段并双写，确认一周后再删旧字段；任何一步都要能单独回退。"),
    ("前端表单校验放在哪里？\n错误提示用什么语气？",
     "表单校验前后端各做一次，以后端为准；错误提示说明怎么改，不责怪用户。"),
    ("压测要在什么环境跑？\n压测报告要包含哪些指标？",
     "压测只在独立环境跑，报告里写清并发数、九十五分位延迟和错误率。"),
    ("用户喜欢怎样的回答风格？\n回答里要不要举例？",
     "用户喜欢先给结论再给理由，例子要短，不要客套话。"),
    ("定时任务重复执行怎么办？\n任务之间怎样加锁？",
     "定时任务用数据库行锁防止重复执行，锁超时设为任务平均时长的三倍。"),
    ("图片上传的大小有限制吗？\n缩略图在哪里生成？",
     "图片上传上限十兆，缩略图由队列里的工作进程生成，原图保存三十天。"),
    ("权限检查写在哪一层？\n新接口怎样声明权限？",
     "权限检查统一写在路由装饰器里，新接口没有声明权限就拒绝启动。"),
    ("生产告警先看什么？\n半夜的告警谁来处理？",
     "收到生产告警先看最近一次发布和队列长度，半夜由值班的人处理并写复盘。"),
)  # fmt: skip
"""Questions and gists of invented memories, as different from each other as memories are."""
