"""A small table of programming vocabulary: words of English and Chinese that mean about the same.

Data, written from general knowledge. One line is one concept: English words and phrases, `|`, Chinese words. It lets a
question in one language find a memory in the other, and a memory that says `heap` answer to `malloc`. A concept is
weaker evidence than the word itself (see `evidence.py`), so a loose line costs little.
"""

from __future__ import annotations

from functools import cache

from lorehooks.core.text import is_cjk, sequence

_TABLE = """
deploy, deployment, rollout, go live, ship | 部署, 上线, 发布, 发版
release, publish | 发布, 发版, 版本发布
rollback, roll back, revert, undo | 回滚, 回退, 撤销, 还原, 退回
test, testing, spec, unit test | 测试, 单测, 用例, 单元测试
integration test, end to end, e2e | 集成测试, 端到端
mock, stub, fake | 模拟, 打桩
fixture, sample data, seed data | 测试数据, 样例数据
coverage | 覆盖率
flaky, unstable, intermittent | 不稳定, 时好时坏, 偶发
assert, assertion | 断言
benchmark, measure, profiling | 基准, 压测, 测速, 评测
database, db, datastore | 数据库, 库里, 落库, 入库
table | 表, 数据表
column, field, attribute | 列, 字段
row, record | 行数, 记录
schema, table definition, ddl | 表结构, 模式, 建表
migration, migrate | 迁移, 改表
index | 索引
query, select, sql | 查询, 语句
transaction | 事务
lock, locking, mutex | 锁, 加锁, 锁住
deadlock | 死锁
replica, standby, secondary | 从库, 副本, 备库
partition, shard | 分区, 分片, 分表
backup | 备份
restore, recover, recovery | 恢复, 还原
snapshot | 快照
archive | 归档, 存档
cache, caching | 缓存
evict, expire, expiry, ttl, stale | 过期, 失效, 淘汰
queue | 队列, 排队
message, event | 消息, 事件
topic, broker | 主题
consumer, subscriber, worker | 消费者, 消费组, 工作进程
producer, publisher | 生产者
schedule, scheduler, scheduling, cron | 调度, 定时, 排期, 计划任务
job, task | 任务, 作业
pipeline, dag, workflow | 流水线, 管道, 工作流
batch | 批量, 批次, 批处理
stream, streaming | 流式, 流处理
retry, repeat, retries, attempt, resend, retransmit | 重试, 重发, 重传
backoff, interval | 退避, 间隔
timeout, time out, timed out | 超时
rate limit, throttle, throttling | 限流, 节流, 限速
circuit breaker, fallback, degrade | 熔断, 降级, 兜底
idempotent, idempotency, twice | 幂等, 重复提交
duplicate, dedupe, deduplicate, twice | 重复, 去重, 查重
error, exception, failure, fault | 错误, 异常, 报错, 出错, 故障
error handling, catch, swallow | 异常处理, 捕获, 吞掉
error code, status code | 错误码, 状态码
crash, panic, abort | 崩溃, 闪退, 死机, 挂掉, 挂了
hang, stuck, freeze, frozen | 卡死, 卡住, 不动, 冻结
bug, defect | 缺陷, 漏洞, 故障
debug, debugging, troubleshoot, investigate | 调试, 排查, 排错, 定位
log, logging, logs | 日志, 打日志, 打印
trace, tracing | 链路, 追踪
monitor, monitoring, observe | 监控, 监测
alert, alarm | 告警, 报警, 警报
dashboard, panel | 看板, 面板, 仪表盘, 大盘
metric, indicator, figure | 指标
threshold, limit, cap | 阈值, 上限, 门槛, 限制
latency, delay, slow | 延迟, 耗时, 响应时间
throughput, qps | 吞吐, 吞吐量
performance, speed | 性能, 速度
load, traffic | 负载, 流量
memory, ram | 内存
out of memory, oom | 内存不足, 内存溢出, 爆内存, 显存不够
leak | 泄漏, 泄露
heap, malloc, allocate, allocation | 堆, 分配, 动态内存
stack, stack overflow | 栈, 栈溢出, 堆栈
buffer | 缓冲, 缓冲区
pointer | 指针
disk, storage | 磁盘, 硬盘, 存储
file | 文件
directory, folder | 目录, 文件夹
path | 路径
thread | 线程
process | 进程
concurrency, concurrent, parallel | 并发, 并行
race condition | 竞态, 竞争条件
async, asynchronous | 异步
interrupt, isr | 中断
watchdog | 看门狗, 喂狗
recursion, recursive | 递归
loop | 循环
variable | 变量
constant | 常量
function, method | 函数, 方法
argument, parameter | 参数
return value | 返回值
class, object | 类, 对象
interface | 接口
module, package | 模块, 包
library, dependency, third party | 库, 依赖, 第三方
import | 导入, 引入
export | 导出
type, typing | 类型, 类型标注
enum, enumeration | 枚举
string, text | 字符串, 文本
integer, int | 整数, 整型
float, floating point, double, decimal | 浮点, 小数
boolean, flag | 布尔, 标志
array, list | 数组, 列表
struct, structure, layout | 结构体, 结构
encoding, charset, utf 8 | 编码, 字符集
serialize, serialise, serialization, marshal | 序列化
parse, parser | 解析
validate, validation, verify, check | 校验, 验证, 检查
convert, conversion | 转换, 换算
format, formatter | 格式, 格式化
comment | 注释, 评论
naming, name, rename | 命名, 取名, 起名, 改名, 重命名, 名字
refactor, cleanup | 重构, 整理
lint, linter, static analysis | 静态检查, 代码检查
style, styling, css | 样式, 风格
compile, compiler, build | 编译, 构建, 打包
link, linker | 链接
bundle, bundle size, package size | 打包, 体积, 打包体积
toolchain, cross compile | 工具链, 交叉编译
version | 版本
upgrade, update | 升级, 更新
downgrade | 降级
deprecate, deprecated, obsolete, legacy, old | 废弃, 弃用, 过时, 旧的, 老的, 遗留
compatibility, compatible, backward | 兼容
configuration, config, setting, settings | 配置, 设置
environment, env | 环境
environment variable, env variable | 环境变量
feature flag, toggle, gradual rollout, canary | 开关, 灰度, 放量
default | 默认
override | 覆盖
template | 模板
script, shell script, bash | 脚本
command, cli | 命令
terminal, console | 终端, 控制台
editor, ide | 编辑器
repository, repo | 仓库, 代码库
branch | 分支
commit | 提交
commit message | 提交信息, 提交说明
merge | 合并
rebase | 变基
push, force push | 推送, 强推
pull request, merge request, pr, mr | 合并请求, 拉取请求, 提 PR
review, code review | 评审, 审查, 代码审查
tag | 标签, 打标签
diff, patch | 差异, 补丁
git history | 提交历史
ticket, issue | 工单, 议题
documentation, docs, document, readme | 文档, 说明文档
changelog | 变更日志, 更新日志
report, summary, status update | 汇报, 报告, 周报, 总结
meeting | 会议, 开会
approval, approve, permission to | 审批, 批准, 同意
permission, access, privilege, role, authorization | 权限, 授权, 访问控制, 角色
forbidden, denied, reject, refused | 拒绝, 禁止, 不允许
authentication, authenticate, login, sign in, log in | 认证, 登录, 鉴权, 登陆
log out, sign out | 登出, 退出登录
session | 会话
token | 令牌
password, credential | 密码, 凭证, 凭据, 口令
secret, key | 密钥, 秘钥
encrypt, encryption, cipher | 加密
decrypt | 解密
hash, digest | 哈希, 摘要, 散列
signature, sign, signing, hmac | 签名, 验签, 加签
certificate, cert, tls, ssl, https | 证书
rotate, rotation | 轮换
vulnerability, security | 安全, 漏洞
injection | 注入
personal data, pii, privacy | 个人信息, 隐私, 敏感信息
mask, masking, redact, anonymize, scrub | 脱敏, 打码, 掩码
phone number, mobile number | 手机号, 电话
email, mail | 邮箱, 邮件
id card | 身份证
address | 地址
user, customer, client | 用户, 客户
merchant, shop, store, seller | 商户, 商家, 店铺, 门店
order, purchase | 订单, 下单
product, item, sku | 商品, 产品
price, pricing | 价格, 定价
amount, money, sum | 金额, 钱
currency | 币种, 货币
yen, jpy | 日元
exchange rate, fx | 汇率
rounding, round off | 四舍五入, 舍入, 取整
cent, minor unit | 分, 最小单位
tax, vat | 税, 税率
fee, commission, charge | 手续费, 费用, 收费, 扣款
discount, coupon, promotion | 折扣, 优惠, 优惠券, 打折
invoice, bill, billing | 发票, 账单, 开票
receipt | 小票, 收据
payment, pay, acquirer | 支付, 付款, 收款
payment provider, payment channel, gateway | 支付渠道, 支付通道, 支付网关
payout, transfer | 打款, 付款, 转账
refund, money back | 退款, 退钱
settlement, settle, clearing | 结算, 清算
reconciliation, reconcile | 对账, 对帐, 平账
ledger, accounting, accountant, finance | 账本, 财务, 会计, 记账
balance | 余额
card number, card data, pan | 卡号, 银行卡
fraud, risk | 风控, 欺诈, 风险
subscription, recurring | 订阅
wechat pay, wechat | 微信支付, 微信
alipay | 支付宝
inventory, stock | 库存
shipping, delivery, logistics | 物流, 发货, 配送
webhook, callback | 回调, 回调通知, 推送
notify, notification, push message | 通知, 推送, 提醒
subscribe, listen | 订阅, 监听
api, endpoint | 接口
request | 请求
response, reply | 响应, 回复, 返回
header | 请求头, 头部
body, payload | 请求体, 载荷, 报文
url, link | 链接, 网址
redirect | 重定向, 跳转
cookie | 会话标识
proxy, reverse proxy | 代理
gateway, ingress | 网关, 入口
domain, host name, hostname, dns | 域名, 解析
expose, external, outside | 对外, 暴露, 外部
network, networking, connection | 网络, 连接, 连通
firewall, network policy | 防火墙, 网络策略
port | 端口
server, machine, host | 服务器, 机器, 主机
service, microservice | 服务, 微服务
cluster | 集群
node | 节点
container, docker, image | 容器, 镜像
pod | 容器组
kubernetes, k8s | 集群
namespace | 命名空间
replica count, scale, scaling, autoscale | 扩容, 缩容, 副本数, 伸缩
drain, evacuate, cordon | 排空, 驱逐, 下线
resource, quota | 资源, 配额
cpu | 处理器, 核数
gpu, graphics card, accelerator | 显卡, 卡数, 显存
cloud | 云, 云上
region, zone | 地域, 区域, 可用区
cost, expense, budget | 成本, 费用, 预算
infrastructure, infra, terraform | 基础设施
state file, state lock | 状态锁, 状态文件
provision, create resource | 开通, 新建资源
freeze, change freeze | 封网, 冻结, 封版
incident, outage | 事故, 故障, 宕机
on call, on duty, pager | 值班, 轮值
runbook, playbook | 手册, 预案
production, prod, live | 生产, 线上, 正式环境
staging, preview, sandbox | 预发, 测试环境, 预览, 沙箱
holiday, weekend | 假期, 节假日, 周末
friday | 周五, 星期五
time zone, timezone, utc, local time | 时区, 本地时间
daylight saving, dst, summer time | 夏令时
date, day | 日期, 天
time, clock, now | 时间, 时钟
timestamp | 时间戳
daily, per day | 每日, 每天, 按天
monthly, per month | 每月, 月度, 按月
hourly | 每小时
overnight, night, midnight | 夜里, 半夜, 凌晨
page, screen, view | 页面, 界面
frontend, front end, client side | 前端
backend, back end, server side | 后端, 后台
component, widget | 组件, 控件
button | 按钮
form, input | 表单, 输入框
form validation | 表单校验
dialog, modal, popup | 弹窗, 对话框
menu | 菜单
route, router, routing | 路由
state management, store, global state | 状态管理, 全局状态
hook | 钩子
render, rendering | 渲染
browser | 浏览器
theme, dark mode | 主题, 暗色, 深色, 夜间模式
color, colour | 颜色, 色值
font | 字体
icon | 图标
layout, responsive | 布局, 排版
table view, grid, virtual scroll | 表格, 虚拟滚动
chart, graph, plot | 图表, 图
translation, translate, i18n, localization | 翻译, 国际化, 多语言, 本地化
copy, wording, ui text, label | 文案, 措辞
accessibility, a11y, screen reader | 无障碍, 可访问性
animation | 动画
upload | 上传
download | 下载
image, picture, photo | 图片, 照片
video | 视频
search | 搜索, 检索
filter | 过滤, 筛选
sort, ordering | 排序
pagination, paging | 分页
crash report, error report, error tracking | 错误上报, 报错上报, 上报
checkout, cart | 结账, 结算页, 购物车
warehouse, data warehouse | 数仓, 数据仓库
data model, fact table, mart | 模型, 宽表, 事实表
incremental, increment | 增量
full refresh, full load, rebuild | 全量, 重建, 全量刷新
backfill, reload history, historical | 补数, 回填, 历史数据, 重跑
freshness, late, on time | 及时性, 延迟, 准时, 晚到
data quality | 数据质量
analyst, analytics, bi | 分析师, 分析, 报表
csv, spreadsheet, excel | 表格, 电子表格
source, upstream | 来源, 上游, 数据源
downstream, sink | 下游
sensor | 传感器
firmware | 固件
flash, burn, program the board | 烧录, 刷机, 刷写
bootloader, boot | 引导, 启动
over the air, ota, remote update | 远程升级, 空中升级
brick, bricked | 变砖
device, unit, meter | 设备, 终端, 表计
board, pcb, circuit | 电路板, 板子, 单板
chip, mcu, microcontroller | 芯片, 单片机
battery | 电池, 电量
power, power consumption, current draw | 功耗, 耗电, 电流, 省电
sleep, standby mode, low power | 休眠, 睡眠, 低功耗
wake, wake up, wakeup | 唤醒
timer | 定时器
register, peripheral | 寄存器, 外设
driver | 驱动
hardware | 硬件
simulator, emulator | 仿真, 模拟器
radio, wireless, antenna | 无线, 射频, 天线
uplink | 上行
downlink | 下行
join the network, join | 入网
gateway station, base station | 网关, 基站
calibration, calibrate | 标定, 校准
temperature | 温度
water | 水
factory, manufacturing | 出厂, 产线, 工厂
crc, checksum | 校验和, 校验码
train, training, trainer | 训练
model, neural network | 模型
dataset, training data | 数据集, 训练数据, 训练集
evaluation, evaluate, eval | 评测, 评估
validation set, holdout | 验证集
accuracy, error rate | 准确率, 精度, 错误率, 字错率
loss | 损失
learning rate | 学习率
hyperparameter | 超参, 超参数
epoch, step | 轮次, 步数
seed, random seed, reproducible | 随机种子, 可复现, 种子
checkpoint, weights | 检查点, 权重, 存档
resume, continue training | 断点续训, 恢复训练, 接着训
fine tune, finetune | 微调
precision, half precision, mixed precision | 混合精度, 半精度
gradient | 梯度
distributed, multi node, multi gpu | 分布式, 多机, 多卡
inference, serving | 推理
augmentation, augment | 数据增强, 增广
flip, mirror | 翻转, 镜像
tokenizer, vocabulary, vocab | 分词器, 词表
prompt | 提示词
embedding, vector | 向量, 嵌入
experiment, run name | 实验
cluster job, submit a job, slurm | 提交作业, 排队
licence, license | 许可证, 授权, 协议
compliance, legal, audit | 合规, 法务, 审计
contract | 合同
delete, remove, drop, wipe, prune, destroy, purge | 删除, 删掉, 清空, 清理, 删库
add, create, new | 新增, 添加, 新建, 增加
skip, ignore, suppress | 跳过, 忽略, 屏蔽
block, blocked | 阻塞, 拦截
language | 语言
chinese | 中文
english | 英文, 英语
tone, verbosity, answer style | 语气, 口吻
emoji | 表情, 表情符号
working hours, office hours | 工作时间, 上班
laptop, computer | 电脑, 笔记本
boss, manager, leadership, vp | 领导, 老板
colleague, team, teammate | 同事, 团队
owner, responsible | 负责人, 归属
review comment | 评审意见
scope | 范围
plan, design | 方案, 计划, 设计
goal, requirement | 需求, 目标
deadline, due | 截止, 期限
priority | 优先级
accept, agree | 接受, 同意
account | 账号, 账户, 帐号
acknowledge, ack, confirm, confirmation | 确认, 应答
activate, enable, turn on, switch on | 启用, 开启, 打开, 激活
disable, turn off, switch off, deactivate | 禁用, 关闭, 停用
admin, administrator | 管理员
algorithm | 算法
alias | 别名
analysis, analyze, analyse | 分析
android | 安卓
ios, iphone | 苹果
mobile, phone app, mobile app | 移动端, 手机端, 手机
app store | 应用商店
desktop | 桌面端, 桌面
annotation, decorator | 注解, 装饰器
announce, announcement | 公告, 通告
apply | 应用, 套用
attach, attachment | 附件
attack, attacker | 攻击
available, availability | 可用, 可用性
average, mean value | 平均, 平均值
bandwidth | 带宽
bar code, qr code | 条码, 二维码
big, large, huge, oversized | 太大, 过大, 很大
small, tiny | 太小, 很小
binary | 二进制
bottleneck | 瓶颈
break, broken | 坏了, 损坏, 破坏
call, invoke | 调用
cancel, canceled, cancelled | 取消, 作废
capacity | 容量
character, symbol | 字符
chat, conversation | 聊天, 对话
child, sub | 子节点, 下级
choose, select an option, pick | 选择, 挑选, 选用
cipher text, plain text, plaintext | 密文, 明文
clean up, housekeeping, garbage collection | 清理, 回收, 垃圾回收
click, tap | 点击
clone | 克隆
close | 关闭
collision, conflict | 冲突
company | 公司
compare, comparison | 比较, 对比
compress, compression, gzip, zip | 压缩
condition | 条件
consistent, consistency | 一致, 一致性
copy, duplicate a file | 复制, 拷贝
corrupt, corrupted, damaged | 损坏, 坏数据
count, counter | 计数, 计数器
country | 国家
cross origin, cors | 跨域
customer support, support team | 客服, 技术支持
cycle, circular | 循环依赖, 环
data center | 机房, 数据中心
data loss, lose data | 丢数据, 数据丢失
dead letter | 死信
decide, decision | 决定, 决策
declare, definition | 声明
dedicated, exclusive | 专用, 独占
delivery, dispatch | 投递, 派发
department | 部门
destination, target | 目标, 目的地
detect, detection | 检测, 探测
developer, engineer | 开发者, 开发, 工程师
digit, decimal place | 位数, 小数位
disaster recovery, failover | 容灾, 灾备, 切换
discover, discovery | 发现
display, show | 显示, 展示
download link | 下载链接
draft | 草稿, 起草
drop down, select box | 下拉框, 下拉
dynamic | 动态
static | 静态
edge case, corner case | 边界情况, 边界
edit, modify, change | 编辑, 修改, 改动
efficient, efficiency | 效率
empty, blank, null | 空, 为空, 空值
encode, decode | 编解码, 解码
end of line, line ending, newline | 换行, 行尾
entry point, entrance | 入口
estimate, estimation | 估算, 预估
every, each time | 每次
exceed, overflow, over the limit | 超过, 超出, 溢出
execute, execution, run | 执行, 运行
exit, quit | 退出
expensive, heavy | 昂贵, 开销大, 重型
experiment, a b test, trial | 实验, 试验
expression, regular expression, regex | 表达式, 正则
extension, plugin, add on | 扩展, 插件
feedback | 反馈
fetch, pull | 拉取, 抓取
floor, ceiling | 向下取整, 向上取整
flow, process step | 流程
foreign key | 外键
primary key | 主键
fork | 派生, 分叉
fraction, ratio, percent, percentage | 比例, 百分比, 占比
framework | 框架
frequency, how often | 频率, 多久一次
generate, generated, generator | 生成
global | 全局
local | 本地, 局部
group | 分组, 小组
growth, increase | 增长, 变大, 上涨
decrease, reduce, shrink | 减少, 降低, 缩小
guide, guideline, convention, rule, policy | 规范, 约定, 规则, 规定, 策略
hardcode, hardcoded, hard coded | 硬编码, 写死
health check, liveness, readiness | 健康检查, 探针
hidden, hide | 隐藏
history, log history | 历史
hot fix, hotfix, emergency fix | 热修, 紧急修复, 救火
identifier, id | 标识, 编号
idle | 空闲, 闲置
illegal, invalid | 非法, 无效
immutable, read only | 只读, 不可变
inline | 内联
insert | 插入
install, installation | 安装
instance | 实例
instruction | 指令, 说明
insurance | 保险
interactive | 交互
internal | 内部
external | 外部
internet, public network | 外网, 公网, 互联网
intranet, private network | 内网, 专网
interview | 面试
isolate, isolation | 隔离
join table, join query | 关联, 连表
json | 报文格式
label | 标签, 标注
large file | 大文件
small file | 小文件
launch, start up, startup | 启动
line, line number | 行号
listener | 监听器
load balancer, load balancing | 负载均衡
location | 位置
loop back, callback | 回调
lost, missing, absent | 丢失, 缺失, 缺少, 没了
mail list, newsletter | 邮件列表
maintain, maintenance | 维护, 保养
manual, by hand, handwritten | 手动, 手工, 手改, 人工
automatic, automated, automation | 自动, 自动化
map, mapping | 映射
market | 市场
match | 匹配
maximum, upper bound | 最大, 上限
minimum, lower bound | 最小, 下限
media | 媒体
member | 成员, 会员
middleware | 中间件
minutes, meeting notes | 纪要, 会议纪要
mirror, mirror site | 镜像源
mode | 模式
money transfer, bank transfer, wire | 转账, 汇款
bank | 银行
mount | 挂载
move | 移动, 挪动, 搬
multiple, several | 多个
nested | 嵌套
normalize, normalise, normalization | 归一化, 规范化
number, numeric | 数字, 编号
offline | 离线, 断网
online | 在线
operation, ops | 运维, 操作
optimize, optimise, optimization | 优化
optional | 可选
required, mandatory | 必填, 必需, 必须
order by, sequence, in order | 顺序, 次序
output | 输出
input | 输入
overwrite, overwritten, clobber | 覆盖, 冲掉
package manager | 包管理
parent | 父节点, 上级
partial, partially | 部分
partner | 合作方, 伙伴
paste | 粘贴
pause, suspend | 暂停, 挂起
peak, peak hours | 高峰, 峰值
pending | 待处理, 挂起
persist, persistent, persistence | 持久化, 落盘
pixel | 像素
placeholder | 占位
platform | 平台
pool | 池, 资源池
connection pool | 连接池
pop up message, toast | 提示框, 弹出
postpone, delay it | 推迟, 延后
pre release, beta | 内测, 公测
prefix | 前缀
suffix | 后缀
preload, warm up, warmup | 预热, 预加载
print | 打印, 输出
private | 私有
public | 公开, 公共
private key | 私钥
public key | 公钥
probability | 概率
problem, trouble | 问题, 毛病
progress | 进度, 进展
project | 项目, 工程
promote | 提升, 晋级
protect, protection | 保护
protocol | 协议
query string | 查询参数
quality | 质量
quantity | 数量
random | 随机
range | 范围, 区间
raw | 原始
read | 读取, 读
write | 写入
real time, realtime | 实时
reboot, restart | 重启
reason, cause, root cause | 原因, 根因
receive | 接收, 收到
recent, latest, newest | 最新, 最近
recipient, receiver | 收件人, 接收方
recover, heal, repair | 修复, 恢复
recycle | 回收
reference | 引用, 参考
refresh | 刷新
reload | 重新加载, 重载
regenerate | 重新生成
register, registration, sign up | 注册
registry | 注册中心, 镜像仓库
reject, decline, declined | 拒绝, 驳回
relation, relationship | 关系
relative path | 相对路径
absolute path | 绝对路径
remote | 远程, 远端
remove, strip | 移除, 去掉
rent, lease | 租约, 租期
replace, substitute | 替换
reply | 回复
report a bug | 提缺陷
request limit, quota limit | 配额, 额度
reserve, reserved | 预留, 保留
reset | 重置
resolution, image size | 分辨率
resolve | 解决
responsive | 自适应
retention, keep for | 保留, 保存期
reuse | 复用
reverse | 反向, 倒序
root user, superuser, sudo | 超级用户, 管理员权限
route table | 路由表
salary, payroll | 工资, 薪资
sample, sampling | 采样, 抽样, 样本
save, store | 保存, 存储
scan | 扫描, 扫
schedule a meeting | 约会议, 约时间
score, rating | 评分, 打分
screen | 屏幕
scroll | 滚动
self signed | 自签
serial, serial port, uart | 串口, 串行
server error | 服务器错误
shared, share | 共享
shutdown, shut down, stop | 停机, 关机, 停止
side effect | 副作用
sign off | 签字, 审核
silent, silently, quiet | 静默, 悄悄
single point | 单点
size | 大小, 尺寸, 体积
skeleton, scaffold, boilerplate | 骨架, 脚手架
software | 软件
spec, specification | 规格, 规范
split | 拆分, 切分
staff, employee | 员工, 人员
standard | 标准
standard library | 标准库
status, state | 状态
step | 步骤
stop the service | 停服
strategy | 策略
stress test, load test | 压测, 压力测试
strict | 严格
submit | 提交
success, successful, succeed | 成功
failure, failed | 失败
suite, test suite | 测试集
switch | 切换, 开关
sync, synchronize, synchronise | 同步
system | 系统
target | 目标
team lead, tech lead | 组长
temporary, temp | 临时
tenant | 租户
tool | 工具
top level | 顶层
touch screen | 触摸屏
transform, transformation | 变换, 转换
tree | 树
trigger | 触发
trim | 裁剪
truncate | 截断, 清空
trust, trusted | 信任, 可信
tune, tuning | 调优, 调参
undefined, unknown | 未知, 未定义
unique, uniqueness | 唯一
unit, measurement unit | 单位
unlock | 解锁
unused, dead code | 没用, 死代码, 无用
update in place | 原地更新
url parameter | 路径参数
usage, how to use | 用法, 使用方法
valid, validity | 有效, 有效期
value | 取值, 数值
vendor, supplier | 供应商, 厂商
verify identity, two factor, mfa, 2fa | 双因素, 二次验证
virtual | 虚拟
virtual machine, vm | 虚拟机
visible, visibility | 可见
visit, page view | 访问, 浏览量
voltage | 电压
volume | 卷, 音量
wait | 等待
warning | 警告
web page | 网页
white list, allow list, allowlist | 白名单
black list, block list, denylist | 黑名单
wildcard | 通配符
window, time window | 窗口, 时段
working day, business day | 工作日, 业务日
workspace | 工作区
wrap, wrapper | 包装, 封装
zero downtime | 不停机
risk | 风险
"""

ABBREVIATIONS = {
    "auth": "authentication", "authn": "authentication", "authz": "authorization", "btn": "button", "cfg": "config",
    "ckpt": "checkpoint", "cmd": "command", "conf": "config", "conn": "connection", "conv": "convert",
    "ctx": "context", "dep": "dependency", "deps": "dependencies", "dev": "development", "dir": "directory",
    "dup": "duplicate", "dups": "duplicates", "err": "error", "errs": "errors", "eval": "evaluation", "fe": "frontend",
    "be": "backend", "fn": "function", "func": "function", "gh": "github", "gl": "gitlab", "idx": "index",
    "img": "image", "impl": "implementation", "init": "initialize", "js": "javascript", "k8s": "kubernetes",
    "lang": "language", "lib": "library", "libs": "libraries", "lr": "learning rate", "mem": "memory", "mgr": "manager",
    "mig": "migration", "msg": "message", "msgs": "messages", "mtg": "meeting", "notif": "notification",
    "ns": "namespace", "num": "number", "obj": "object", "param": "parameter", "params": "parameters",
    "perf": "performance", "perms": "permissions", "pg": "postgres", "pkg": "package", "prefs": "preferences",
    "proc": "process", "prod": "production", "proj": "project", "pw": "password", "py": "python", "refs": "references",
    "regex": "regular expression", "repo": "repository", "repos": "repositories", "req": "request",
    "resp": "response", "sig": "signature", "spec": "specification", "src": "source", "srv": "server", "svc": "service",
    "sync": "synchronize", "sys": "system", "tbl": "table", "temp": "temporary", "tf": "terraform", "tmp": "temporary",
    "ts": "typescript", "tx": "transaction", "tz": "timezone", "util": "utility", "val": "validation", "var": "variable",
    "vars": "variables", "ver": "version", "wdt": "watchdog", "wk": "week",
    "acct": "account", "addr": "address", "alloc": "allocation", "arch": "architecture", "avg": "average",
    "calc": "calculate", "cert": "certificate", "certs": "certificates", "cli": "command line", "dist": "distribution",
    "doc": "document", "docs": "documents", "elem": "element", "env": "environment", "envs": "environments",
    "exec": "execute", "ext": "extension", "freq": "frequency", "fw": "firmware", "gen": "generate", "hw": "hardware",
    "id": "identifier", "infra": "infrastructure", "int": "integer", "len": "length",
    "max": "maximum", "min": "minimum", "mod": "module", "opt": "option", "orig": "original", "pos": "position",
    "prev": "previous", "pub": "publish", "qty": "quantity", "recon": "reconciliation", "rm": "remove",
    "seq": "sequence", "stat": "status", "str": "string", "sw": "software", "tmpl": "template", "txn": "transaction",
    "usr": "user", "vm": "virtual machine", "vuln": "vulnerability",
}  # fmt: skip
"""Short forms that developers type, to the word they stand for."""


@cache
def concepts() -> dict[tuple[str, ...], tuple[int, ...]]:
    """Sequence of a word or phrase (see `text.sequence`) to the numbers of the concepts it belongs to."""
    found: dict[tuple[str, ...], list[int]] = {}
    for number, line in enumerate(_lines()):
        for phrase in line.replace("|", ",").split(","):
            key = sequence(phrase)
            if not key or (len(key) == 1 and is_cjk(key[0])):
                continue  # a single Chinese character is part of too many other words to stand for one
            numbers = found.setdefault(key, [])
            if number not in numbers:
                numbers.append(number)
    return {key: tuple(numbers) for key, numbers in found.items()}


@cache
def english() -> dict[str, str]:
    """Chinese words of the table to the English of their line, so that an English model can read them."""
    found: dict[str, str] = {}
    for line in _lines():
        left, _, right = line.partition("|")
        words = " ".join(part.strip() for part in left.split(",")[:2])
        for word in right.split(","):
            found.setdefault(word.strip(), words)
    return found


@cache
def _lines() -> tuple[str, ...]:
    return tuple(line for line in _TABLE.strip().splitlines() if line)
