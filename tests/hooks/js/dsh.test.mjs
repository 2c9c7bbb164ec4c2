// dsh's plugin file, driven as dsh 0.1.5 and 0.2.1 drive it: waterfalls whose listeners must never throw.
import assert from "node:assert/strict"
import fs from "node:fs"
import path from "node:path"
import test from "node:test"
import { home, loaded, timed, whole } from "./home.mjs"

const TOOL = {
  name: "lore_get_node",
  description: "Open one memory",
  inputSchema: { type: "object", properties: { uri: { type: "string" } }, required: ["uri"] },
}

// A service that answers like ours: numbered boot blocks, recall for prompts about deploys.
const service = (socket, n, { head, body }) => {
  const event = /^POST \/hooks\/v1\/dsh\/(\S+)/.exec(head)[1]
  if (event === "session.start") socket.end(whole(JSON.stringify({ systemContext: `BOOT ${n}` })))
  else if (event === "tool") socket.end(whole(JSON.stringify({ text: `${body.name} for ${body.session_id}`, is_error: false })))
  else socket.end(whole(JSON.stringify(body.prompt?.includes("deploy") ? { promptContext: "RECALL" } : {})))
}

async function dsh(t, { serve = service } = {}) {
  const made = await home(t, serve)
  fs.writeFileSync(path.join(made.root, "bin", "tools", "dsh.json"), JSON.stringify({ tools_list: { tools: [TOOL] } }))
  const plugin = await loaded("dsh.mjs", made.root)
  const [listeners, tools, undone] = [{}, [], []]
  const ctx = {
    on: (name, listener) => (listeners[name] = listener),
    tools: { register: (tool) => tools.push(tool) },
    effect: (set) => undone.push(set()),
  }
  await plugin.apply(ctx, {})
  const agent = (id, more = {}) => ({ session: { header: { id, cwd: "/home/user/proj", version: 4, isSeeded: false, ...more } } })
  const assemble = (of) => listeners["system-prompt/assemble"]({}, { agent: of }, async () => ({ sections: [{ name: "own" }], tools: [] }))
  const step = (of, messages, down = { kind: "enter", messages }) => listeners["agent/pre-step"]({ agent: of, messages, turn: 1, step: 1 }, async () => down)
  const prompt = (text) => ({ id: "m1", role: "user", content: [{ type: "text", text }], source: { kind: "user" } })
  const starts = () => made.requests.filter(({ body }) => "source" in body).map(({ body }) => body.source)
  return { ...made, plugin, listeners, tools, undone, agent, assemble, step, prompt, starts }
}

test("boot is one section more in every step, no template, the same for the whole session", async (t) => {
  const { listeners, agent, assemble, requests, plugin } = await dsh(t)
  assert.deepEqual([plugin.name, plugin.inject], ["lorehooks", ["tools", "systemPrompt"]])
  const one = agent("session-1")
  assert.equal(await listeners["agent/created"]({ agent: one, source: "startup" }), undefined)
  const section = { name: "lorehooks:boot", text: "BOOT 1", interpolate: false }
  for (let each = 0; each < 3; each++) assert.deepEqual(await assemble(one), { sections: [{ name: "own" }, section], tools: [] })
  assert.deepEqual(requests.map(({ body }) => body), [{ cwd: "/home/user/proj", session_id: "session-1", source: "startup" }])
  assert.deepEqual(await assemble(undefined), { sections: [{ name: "own" }], tools: [] })
})

test("recall is one message of our own kind after the prompt, only where something fits", async (t) => {
  const { agent, step, prompt, requests } = await dsh(t)
  const one = agent("session-1")
  const down = await step(one, [prompt("how do we deploy?")])
  assert.equal(down.messages.length, 2)
  const { id, ...rest } = down.messages[1]
  assert.match(id, /^[0-9a-f-]{36}$/)
  assert.deepEqual(rest, { role: "user", content: [{ type: "text", text: "RECALL" }], source: { kind: "lorehooks" } })
  assert.equal((await step(one, [prompt("the sky?")])).messages.length, 1)
  const asked = requests.length
  const ours = { ...prompt("deploy"), source: { kind: "lorehooks" } }
  for (const [messages, answer] of [[[], undefined], [[ours], undefined], [[prompt("  ")], undefined], [[prompt("deploy")], { kind: "reject" }]])
    assert.deepEqual(await step(one, messages, answer), answer ?? { kind: "enter", messages })
  assert.equal(requests.length, asked)
})

test("both lines of dsh say how a session began; a fork and a compaction begin anew", async (t) => {
  const { listeners, agent, assemble, step, prompt, starts } = await dsh(t)
  const [old, resumed, fork] = [agent("old"), agent("resumed"), agent("fork", { isSeeded: true, parentSession: "old" })]
  await listeners["agent/created"]({ agent: old })
  await listeners["agent/session-start"]({ agent: old, source: "startup" })
  await listeners["agent/created"]({ agent: resumed, source: "resume" })
  await listeners["agent/created"]({ agent: fork, source: "startup" })
  for (const each of [old, resumed, fork]) await assemble(each)
  assert.deepEqual(starts(), ["startup", "resume", "fork"])
  assert.equal((await step(fork, [prompt("deploy")])).messages.length, 2)
  const before = await assemble(old)
  await listeners["session/event"](old.session, { type: "turn/end", data: {} })
  await listeners["session/event"](old.session, { type: "compaction/end", data: { error: "no" } })
  assert.deepEqual(await assemble(old), before)
  await listeners["session/event"](old.session, { type: "compaction/end", data: {} })
  assert.notDeepEqual(await assemble(old), before)
  assert.deepEqual(starts().slice(3), ["compact"])
})

test("a sub-agent names its parent and asks for no recall", async (t) => {
  const { agent, assemble, step, prompt, requests } = await dsh(t)
  const child = agent("child", { origin: "subagent", parentSession: "old", delegationDepth: 1 })
  await assemble(child)
  assert.equal((await step(child, [prompt("deploy")])).messages.length, 1)
  assert.deepEqual(requests.map(({ body }) => body.parent_session_id), ["old"])
})

test("tools keep their schema and know the session", async (t) => {
  const { tools, agent } = await dsh(t)
  const [{ execute, output, ...rest }] = tools
  assert.deepEqual(rest, { name: "lore_get_node", description: "Open one memory", parameters: TOOL.inputSchema })
  assert.deepEqual(output.schema, { type: "string" })
  const text = await execute({ uri: "project://a" }, { agent: agent("session-1"), callId: "c", signal: new AbortController().signal })
  assert.deepEqual(output.render({}, text), [{ type: "text", text: "lore_get_node for session-1" }])
  assert.equal(await execute({}, {}), "lore_get_node for null")
})

test("no listener throws or waits beyond its limit, whatever it gets; what others throw goes through", async (t) => {
  const { listeners, agent, undone } = await dsh(t, { serve: () => {} })
  const down = { kind: "enter", messages: [], sections: [] }
  const odd = [undefined, null, {}, { agent: {} }, { agent: agent("s"), source: "startup", messages: [null] }, { agent: agent("s"), messages: [{ source: { kind: "user" }, content: [{ type: "text", text: "deploy" }] }] }]
  for (const each of odd) {
    for (const name of ["agent/created", "agent/session-start"]) assert.equal((await timed(listeners[name](each))).value, undefined)
    assert.equal(await listeners["session/event"](each, { type: "compaction/end" }), undefined)
    assert.equal(await listeners["session/event"](each, each), undefined)
    const steps = [listeners["agent/pre-step"](each, async () => down), listeners["system-prompt/assemble"]({}, each, async () => down)]
    for (const { value, ms } of await Promise.all(steps.map(timed))) {
      assert.equal(value, down)
      assert.ok(ms < 2500, `${ms} ms`)
    }
  }
  for (const name of ["agent/pre-step", "system-prompt/assemble"])
    await assert.rejects(listeners[name](name === "agent/pre-step" ? odd[5] : {}, name === "agent/pre-step" ? () => Promise.reject(new Error("theirs")) : {}, () => Promise.reject(new Error("theirs"))), /theirs/)
  for (const undo of undone) undo()
})

test("a context that has nothing is no reason to throw, and with the home gone nothing is touched", async (t) => {
  const made = await dsh(t)
  await made.plugin.apply(undefined)
  await made.plugin.apply({})
  fs.rmSync(path.join(made.root, "bin"), { recursive: true })
  await made.plugin.apply({ on: assert.fail, tools: { register: assert.fail } })
})
