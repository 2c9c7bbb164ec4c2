// OpenClaw's plugin file, driven as OpenClaw 2026.9.6 drives it (shapes recorded from its Gateway and its local runs).
import assert from "node:assert/strict"
import fs from "node:fs"
import path from "node:path"
import test from "node:test"
import { home, installed, timed, whole } from "./home.mjs"

const TOOL = {
  name: "lore_get_node",
  title: "Open a memory",
  description: "Open one memory",
  inputSchema: { type: "object", properties: { uri: { type: "string" } }, required: ["uri"] },
}
const OLD = [{ role: "user", content: "before" }]

// A service that answers like ours: numbered boot blocks, recall for prompts about deploys.
const service = (socket, n, { head, body }) => {
  const event = /^POST \/hooks\/v1\/openclaw\/(\S+)/.exec(head)[1]
  if (event === "session.start") socket.end(whole(JSON.stringify({ appendSystemContext: `BOOT ${n}` })))
  else if (event === "tool") socket.end(whole(JSON.stringify({ text: `${body.name} for ${body.session_id}`, is_error: false })))
  else socket.end(whole(JSON.stringify(body.prompt.includes("deploy") ? { prependContext: "RECALL" } : {})))
}

async function openclaw(t, { serve = service } = {}) {
  const made = await home(t, serve)
  fs.writeFileSync(path.join(made.root, "bin", "tools", "openclaw.json"), JSON.stringify({ tools_list: { tools: [TOOL] } }))
  const plugin = await installed("openclaw.js", made.root)
  const [handlers, options, tools] = [{}, {}, []]
  const api = {
    registrationMode: "full",
    on: (name, handler, more) => Object.assign(handlers, { [name]: handler }) && Object.assign(options, { [name]: more }),
    registerTool: (factory, more) => tools.push({ factory, more }),
  }
  assert.equal(plugin.register(api), undefined)
  const context = (sessionId, more = {}) => ({ sessionId, sessionKey: "agent:main:main", agentId: "main", workspaceDir: "/home/user/ws", trigger: "user", ...more })
  const ask = (id, prompt, { messages = OLD, event = {}, ...more } = {}) => handlers.before_prompt_build({ prompt, messages, ...event }, context(id, more))
  const starts = () => made.requests.filter(({ body }) => "source" in body).map(({ body }) => body.source)
  const prompts = () => made.requests.filter(({ body }) => "prompt" in body).map(({ body }) => body)
  return { ...made, plugin, api, handlers, options, tools, context, ask, starts, prompts }
}

test("boot is appended in every run, the same to the byte; recall only where something fits", async (t) => {
  const { ask, requests, options, plugin } = await openclaw(t)
  assert.equal(plugin.id, "lorehooks")
  assert.deepEqual(await ask("s1", "how do we deploy?", { messages: [] }), { appendSystemContext: "BOOT 1", prependContext: "RECALL" })
  assert.deepEqual(await ask("s1", "the sky?"), { appendSystemContext: "BOOT 1" })
  const facts = { cwd: "/home/user/ws", session_key: "agent:main:main", session_id: "s1" }
  assert.deepEqual(requests[0].body, { ...facts, source: "startup" })
  assert.deepEqual(requests[1].body, { ...facts, trigger: "user", prompt: "how do we deploy?" })
  assert.ok(options.before_prompt_build.timeoutMs > 15_000)
})

test("the Gateway says when a session begins; `/new` keeps its id and begins anew all the same", async (t) => {
  const { ask, handlers, context, starts } = await openclaw(t)
  await handlers.session_start({ sessionId: "s1", sessionKey: "agent:main:main" }, context("s1"))
  await ask("s1", "one", { messages: [] })
  await ask("s1", "two")
  await handlers.session_start({ sessionId: "s1", resumedFrom: "s1" }, context("s1"))
  await ask("s1", "three", { messages: [] })
  await ask("s1", "four")
  await handlers.after_compaction({ messageCount: 2, compactedCount: 2 }, context("s1"))
  await ask("s1", "five")
  await handlers.session_start({ sessionId: "s2", resumedFrom: "s1" }, context("s2"))
  await ask("s2", "six", { messages: [] })
  assert.deepEqual(starts(), ["startup", "clear", "compact", "startup"])
})

test("outside the Gateway a session without messages begins, and one with messages goes on", async (t) => {
  const { ask, starts } = await openclaw(t)
  await ask("s1", "one")
  await ask("s1", "two", { messages: [] })
  await ask("s1", "three")
  await ask("s2", "one", { messages: [] })
  assert.deepEqual(starts(), ["resume", "clear", "startup"])
})

test("registered several times in one process it knows its sessions once", async (t) => {
  const { plugin, api, handlers, context, starts, ask } = await openclaw(t)
  await ask("s1", "one")
  const first = handlers.before_prompt_build
  plugin.register({ ...api, registrationMode: "discovery" })
  assert.notEqual(handlers.before_prompt_build, first)
  await ask("s1", "two")
  await first({ prompt: "three", messages: OLD }, context("s1"))
  assert.deepEqual(starts(), ["resume"])
})

test("the request itself is what recall reads; a timer's run keeps its boot block", async (t) => {
  const { ask, prompts } = await openclaw(t)
  const history = "deploy\n---\nwhat was that?"
  assert.deepEqual(await ask("s1", history, { event: { currentUserMessage: "what was that?" } }), { appendSystemContext: "BOOT 1" })
  assert.deepEqual(await ask("s1", history, { event: { currentUserMessage: "" } }), { appendSystemContext: "BOOT 1" })
  await ask("s1", "HEARTBEAT", { trigger: "heartbeat" })
  assert.deepEqual(prompts().map(({ prompt, trigger }) => [prompt, trigger]), [["what was that?", "user"], ["HEARTBEAT", "heartbeat"]])
})

test("a sub-agent names its parent and asks for no recall; an internal session is told by its key", async (t) => {
  const { ask, requests, prompts } = await openclaw(t)
  await ask("s2", "deploy it", { sessionKey: "agent:main:subagent:5f2c" })
  await ask("s3", "deploy it", { sessionKey: "agent:main:main:active-memory:1a2b" })
  assert.equal(requests[0].body.parent_session_id, "agent:main")
  assert.deepEqual(prompts().map(({ session_key }) => session_key), ["agent:main:main:active-memory:1a2b"])
})

test("tools stand directly before the model, keep their schema and know the session", async (t) => {
  const { tools } = await openclaw(t)
  const [{ factory, more }] = tools
  assert.deepEqual(more, { name: "lore_get_node" })
  const { execute, ...rest } = factory({ sessionId: "s1", sessionKey: "agent:main:main" })
  assert.deepEqual(rest, { name: "lore_get_node", label: "Open a memory", description: "Open one memory", parameters: TOOL.inputSchema, catalogMode: "direct-only" })
  assert.deepEqual(await execute("call", { uri: "project://a" }, new AbortController().signal), { content: [{ type: "text", text: "lore_get_node for s1" }], details: {} })
  assert.equal((await factory().execute("call", {})).content[0].text, "lore_get_node for null")
})

test("neither registering nor a handler throws or waits beyond its limit, whatever it gets", async (t) => {
  const { plugin, handlers, root } = await openclaw(t, { serve: () => {} })
  for (const handler of Object.values(handlers))
    for (const event of [undefined, null, {}, { prompt: 7, messages: {} }, { sessionId: "s", prompt: "deploy", messages: [] }])
      for (const context of [undefined, {}, { sessionId: 7, sessionKey: 7 }, { sessionId: "s", trigger: "user" }]) {
        const { ms } = await timed(handler(event, context))
        assert.ok(ms < 2500, `${ms} ms`)
      }
  for (const api of [undefined, {}, { on: () => {} }]) plugin.register(api)
  fs.rmSync(path.join(root, "bin"), { recursive: true })
  plugin.register({ on: assert.fail, registerTool: assert.fail })
})
