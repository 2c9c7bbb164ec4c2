# ruff: noqa: SIM905 (a list of five hundred quoted words is unreadable)
"""Words that say nothing about a topic: data for `text.py`, written from general knowledge of the two languages.

`FUNCTION_WORDS` carry no evidence at all. `COMMON_WORDS` are everyday words that a small memory may happen to hold only
once, so that counting alone would take them for rare and telling.
"""

from __future__ import annotations

FUNCTION_WORDS = frozenset(
    """
    a an the and or but nor if then else than as so because while although though unless until whether
    i me my mine myself we us our ours you your yours he him his she her hers it its itself they them their theirs
    this that these those here there where when why how what which who whom whose
    am is are was were be been being do does did done doing have has had having
    can could shall should will would may might must ought need dare
    to of in on at by for from with into onto over under about above below after before between through during
    against without within across per via up down out off again further
    not no yes ok okay yeah yep nope please thanks thank just only also too very really quite rather
    some any all both each every few many much more most less least other another such same own one ones
    now today still already yet ever never always often sometimes
    s t d m re ve ll don didn doesn isn aren wasn weren won wouldn shouldn couldn can't let lets
    hi hello hey hmm lol wow oh ah um uh
    im ive id hes shes whats thats theres dont doesnt didnt isnt cant wont wouldnt shouldnt arent wasnt youre theyre
    pls plz thx gonna wanna gotta
    etc eg ie vs
    """.split()
)

COMMON_WORDS = frozenset(
    """
    able add added again ago almost along another answer anybody anyone anything anyway anywhere around ask asked away
    back bad basically begin best better big bit bring call called came care case cause certain change changed check
    choose clear close come complete completely correct couple course current currently cut day days decide different
    directly doing drop easy edit either end enough entire especially everybody everyone everything exactly example
    explain explained extra fact fail fails far fast feel fill find fine first fit fix fixed follow following found four
    full fully gave general get gets getting give given gives go goes going gone good got great guess guy guys half hand
    happen happened happening happens hard he head help high hold home hope hour hours idea important include inside
    instead issue item job keep keeps kept kind knew know known last late later least leave left let like likely line
    list little live long look looked looking looks lot low made main make makes making matter maybe mean means middle
    mind minute minutes miss moment month months morning move moved name named near need needed needs new next nice night
    nobody normal nothing notice number odd old once open order original part pass people perhaps piece place plain plan
    point possible pretty previous probably problem put puts question quick quickly rather read ready real really reason
    remember remove replace rest result right rough roughly run running runs safe said save saw say says second see seem
    seems seen send sense sent separate set several short show shown shows side simple simply since single sit six small
    somebody somehow someone something somewhere soon sort stand start started starts stay step stick still stop stuff
    suppose sure take taken takes taking talk team tell ten thing things think thought three tick till time times together
    told tomorrow tonight took top total toward tried true try trying turn two type understand use used useful uses using
    usual usually various wait walk want wanted wants watch way ways week weeks well went whatever whenever whole wish
    wonder word words work worked working works worry worse worth write writes writing written wrong wrote year years
    yesterday
    difference meaning picture page third paragraph
    """.split()
)

GENERIC_WORDS = frozenset(
    """
    test error file code bug script function value data line class method variable user project program app application
    service system server tool command option version build setting config folder directory repo branch message
    string object list array output input log page table column row field api request response model module package
    library feature task job update create delete fix git github gitlab push commit repository
    """.split()
)
"""Words of every project: they narrow a topic down, and name none alone."""

CJK_FUNCTION_CHARS = frozenset(
    "的了是在把吗呢吧啊呀嘛哦嗯哈么我你您他她它们咱这那哪谁啥什怎都也还就又再才只很太更最和与或及而但若如因所以为于之其"
    "被让给对从向到往跟比等着过得地个些点下上里中会能可要想应该当请没不有无一二三四五六七八九十几多少来去做用看说吃好"
)
"""Characters that mostly build grammar. A pair with one of them is weak evidence, a pair of two is none."""

CJK_COMMON_WORDS = frozenset(
    """
    一下 现在 今天 明天 昨天 刚才 刚刚 然后 之后 之前 以后 以前 时候 有点 已经 还是 可以 可能 应该 需要 直接 帮我 帮忙 看看
    怎么 什么 为啥 为什 哪个 哪里 哪些 这个 那个 这里 那里 这样 那样 问题 事情 东西 情况 地方 一个 一直 一起 一共 一样 一点
    继续 开始 结束 完成 知道 觉得 感觉 好像 大概 大家 自己 别人 所有 全部 部分 其他 另外 如果 因为 所以 但是 不过 而且 或者
    谢谢 辛苦 收到 好的 明白 确定 随便 顺便 顺手 麻烦 打开 关闭 改成 换成 加个 加上 去掉 删掉 弄完 上面 下面 前面 后面 里面
    外面 旁边 第一 第二 第三 多少 多久 几个 每个 每次 哪儿 办法 方法 方式 意思 区别 解释 介绍 简单 复杂 重新 再次 同样 同时
    """.split()
)
