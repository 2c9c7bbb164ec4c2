// OpenCode's and Pi's plugin files, driven as their hosts drive them (shapes recorded from OpenCode 1.18.33, Pi 0.74.2 and 1.6.0).
import assert from "node:assert/strict"
import fs from "node:fs"
import path from "node:path"
import test from "node:test"
import { home, installed, timed, whole } from "./home.mjs"

const TOOL = {
  name: "lore_get_node",
  title: "Open a memory",
  description: "Open one memory",
  inputSchema: { type: "object", properties: { uri: { type: "string" }, nav_only: { type: "boolean" } }, required: ["uri"] },
}

// A service that answers like ours: numbered boot blocks, recall for prompts about deploys.
const service = (bootKey, recallOf) => (socket, n, { head, body }) => {
  const event = /^POST \/hooks\/v1\/\w+\/(\S+)/.exec(head)[1]
  const recalled = event === "prompt.submit" && body.prompt.includes("deploy")
  if (event === "session.start") socket.end(whole(JSON.stringify({ [bootKey]: `BOOT ${n}` })))
  else if (event === "tool") socket.end(whole(JSON.stringify({ text: `${body.name} for ${body.session_id}`, is_error: false })))
  else socket.end(whole(JSON.stringify(recalled ? recallOf("RECALL") : {})))
}

const events = (requests) => requests.map(({ head, body }) => [/\/(\S+) HTTP/.exec(head.replace(/.*\/v1\/\w+/, ""))[1], body.source ?? ""])

async function withTools(t, serve, client, options) {
  const made = await home(t, serve, options)
  fs.writeFileSync(path.join(made.root, "bin", "tools", `${client}.json`), JSON.stringify({ tools_list: { tools: [TOOL] } }))
  return made
}

// --- OpenCode

async function opencode(t, { serve = service("systemContext", (text) => ({ promptContext: text })), sessions = {}, options } = {}) {
  const made = await withTools(t, serve, "opencode", options)
  const plugin = await installed("opencode.js", made.root)
  assert.deepEqual(Object.keys(plugin), ["id", "server"])
  const client = { session: { get: async ({ path }) => (sessions[path.id] ? { data: sessions[path.id] } : await new Promise(() => {})) } }
  const hooks = await plugin.server({ client, directory: "/home/user/proj" }, undefined)
  const created = (id, more = {}) => hooks.event({ event: { type: "session.created", properties: { sessionID: id, info: { id, title: "New session", ...more } } } })
  const system = async (sessionID, text = "You are opencode, an interactive CLI tool") => {
    const output = { system: [text] }
    await hooks["experimental.chat.system.transform"]({ sessionID, model: {} }, output)
    return output.system
  }
  const prompt = async (sessionID, text, parts = [{ id: "prt_228f18301001OMPFLt4a7oV56c", type: "text", text }]) => {
    const message = { id: "msg_1", role: "user", sessionID }
    await hooks["chat.message"]({ sessionID }, { message, parts })
    return parts
  }
  return { ...made, hooks, created, system, prompt }
}

test("OpenCode: the boot block ends the last system string, the same in each call of a session", async (t) => {
  const { created, system, requests, hooks } = await opencode(t)
  await created("ses_1")
  assert.deepEqual(await system("ses_1"), ["You are opencode, an interactive CLI tool\n\nBOOT 1"])
  assert.deepEqual(await system("ses_1", "other"), ["other\n\nBOOT 1"])
  assert.deepEqual(await system(undefined), ["You are opencode, an interactive CLI tool"])
  const twice = { system: ["a\n\nBOOT 1"] }
  await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, twice)
  assert.deepEqual(twice.system, ["a\n\nBOOT 1"])
  assert.deepEqual(requests.map(({ body }) => body), [{ cwd: "/home/user/proj", session_id: "ses_1", source: "startup" }])
})

test("OpenCode: calls that it makes for itself get no boot block, also with a user's own wording", async (t) => {
  const { created, system, hooks } = await opencode(t)
  await created("ses_1")
  await hooks.config({ agent: { title: { prompt: "Name this talk." } } })
  for (const text of ["You are a title generator. You output", "You are a context summarization agent.", "Name this talk.\n"])
    assert.deepEqual(await system("ses_1", text), [text])
})

test("OpenCode: recall is one hidden part after the others, and only where something fits", async (t) => {
  const { created, prompt, requests } = await opencode(t)
  await created("ses_1")
  const parts = await prompt("ses_1", "how do we deploy?")
  assert.equal(parts.length, 2)
  const [asked, added] = parts
  assert.deepEqual(
    { ...added, id: "" },
    { id: "", sessionID: "ses_1", messageID: "msg_1", type: "text", text: "RECALL", synthetic: true, metadata: { lorehooks: true } },
  )
  assert.match(added.id, /^prt_[0-9a-f]{12}[0-9a-zA-Z]{14}$/)
  assert.ok(added.id > asked.id)
  await prompt("ses_1", "", parts) // another copy of the plugin
  assert.equal(parts.length, 2)
  assert.equal((await prompt("ses_1", "what colour has the sky?")).length, 1)
  assert.equal((await prompt("ses_1", "  ")).length, 1)
  const mixed = [{ id: "prt_000000000001aaaaaaaaaaaaaa", type: "file" }, { id: "prt_000000000002aaaaaaaaaaaaaa", type: "text", text: "deploy", synthetic: true }]
  assert.equal((await prompt("ses_1", "", mixed)).length, 2)
  assert.equal(requests.filter(({ body }) => body.prompt).length, 2)
})

test("OpenCode: a resumed session, a fork and a compaction say so, and a sub-agent names its parent", async (t) => {
  const { created, system, prompt, requests, hooks } = await opencode(t, { sessions: { ses_old: { id: "ses_old" }, ses_child: { parentID: "ses_old" } } })
  assert.deepEqual(await system("ses_old", "x"), ["x\n\nBOOT 1"])
  await created("ses_fork", { title: "Deploys (fork #2)" })
  await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "ses_old" } } })
  assert.deepEqual(await system("ses_old", "x"), ["x\n\nBOOT 3"])
  assert.equal((await prompt("ses_child", "deploy it")).length, 1)
  await system("ses_child", "x")
  assert.deepEqual(events(requests), [["session.start", "resume"], ["session.start", "fork"], ["session.start", "compact"], ["session.start", "resume"]])
  assert.equal(requests.at(-1).body.parent_session_id, "ses_old")
  await hooks.event({ event: { type: "session.deleted", properties: { info: { id: "ses_old" } } } })
  await hooks.event({ event: { type: "no.such.event" } })
  await hooks.event({})
})

test("OpenCode: tools keep their own required parameters and know the session", async (t) => {
  const { hooks, requests } = await opencode(t)
  assert.deepEqual(Object.keys(hooks.tool), ["lore_get_node"])
  assert.deepEqual(hooks.tool.lore_get_node.args, TOOL.inputSchema.properties)
  const output = { description: "", parameters: {} }
  await hooks["tool.definition"]({ toolID: "lore_get_node" }, output)
  assert.deepEqual(output.jsonSchema, TOOL.inputSchema)
  const other = { description: "" }
  await hooks["tool.definition"]({ toolID: "bash" }, other)
  assert.deepEqual(other, { description: "" })
  const context = { sessionID: "ses_1", abort: new AbortController().signal }
  assert.equal(await hooks.tool.lore_get_node.execute({ uri: "project://a" }, context), "lore_get_node for ses_1")
  assert.deepEqual(requests[0].body.arguments, { uri: "project://a" })
})

test("OpenCode: no fact of the host's makes a hook throw or wait beyond its limit", async (t) => {
  const { hooks } = await opencode(t, { serve: () => {} })
  const odd = [undefined, null, {}, { sessionID: "ses_1" }, { sessionID: 7, message: null, parts: null }]
  for (const name of ["chat.message", "experimental.chat.system.transform", "tool.definition", "config"])
    for (const input of odd)
      for (const output of [undefined, {}, { system: [] }, { message: { role: "user" }, parts: [] }]) {
        const { ms } = await timed(hooks[name](input, output))
        assert.ok(ms < 2500, `${name} ${ms} ms`)
      }
  await hooks.dispose()
})

test("OpenCode: with the home gone or switched off the plugin does nothing at all", async (t) => {
  const made = await withTools(t, null, "opencode")
  const plugin = await installed("opencode.js", made.root)
  process.env.LORE_DISABLE = "1"
  assert.deepEqual(await plugin.server({}), {})
  delete process.env.LORE_DISABLE
  fs.rmSync(path.join(made.root, "bin"), { recursive: true })
  assert.deepEqual(await plugin.server({}), {})
})

// --- Pi

async function pi(t, { serve = service("systemPromptAppend", (content) => ({ message: { customType: "lore-recall", content, display: false } })), env = {} } = {}) {
  const made = await withTools(t, serve, "pi")
  Object.assign(process.env, env)
  t.after(() => Object.keys(env).forEach((name) => delete process.env[name]))
  const [handlers, tools] = [{}, []]
  await (await installed("pi.js", made.root))({ on: (name, handler) => (handlers[name] = handler), registerTool: (tool) => tools.push(tool) })
  const context = (id, history = false) => ({
    cwd: "/home/user/proj",
    sessionManager: { getSessionId: () => id, getBranch: () => (history ? [{ type: "message", message: { role: "assistant" } }] : []) },
  })
  const ask = (id, prompt, more = {}) =>
    handlers.before_agent_start({ type: "before_agent_start", prompt, systemPrompt: "SYSTEM", systemPromptOptions: {}, ...more }, context(id))
  return { ...made, handlers, tools, context, ask }
}

test("Pi before 1.0: boot ends the system prompt of every turn, recall is a hidden message", async (t) => {
  const { handlers, context, ask, requests } = await pi(t)
  await handlers.session_start({ reason: "startup" }, context("s1"))
  const message = { customType: "lore-recall", content: "RECALL", display: false }
  assert.deepEqual(await ask("s1", "deploy?"), { systemPrompt: "SYSTEM\n\nBOOT 1", message })
  assert.deepEqual(await ask("s1", "the sky?"), { systemPrompt: "SYSTEM\n\nBOOT 1" })
  assert.deepEqual(events(requests).slice(0, 2), [["session.start", "startup"], ["prompt.submit", ""]])
  assert.equal(requests.length, 3)
})

test("Pi 1.x: boot is a section of its own", async (t) => {
  const { handlers, context, ask } = await pi(t)
  await handlers.session_start({ reason: "startup" }, context("s1"))
  const systemPromptOptions = { sections: { preamble: "P" } }
  assert.deepEqual(Object.keys(await ask("s1", "deploy?", { systemPromptOptions, messageType: "user" })), ["message"])
  assert.deepEqual(systemPromptOptions.sections, { preamble: "P", lore: "BOOT 1" })
  assert.deepEqual(await ask("s1", "deploy?", { messageType: "custom" }), { systemPrompt: "SYSTEM\n\nBOOT 1" })
})

test("Pi: new, resumed, forked, reloaded and compacted sessions say so", async (t) => {
  const { handlers, context, requests, ask } = await pi(t)
  for (const [reason, history, source] of [
    ["startup", true, "resume"], ["startup", false, "startup"], ["new", false, "startup"], ["resume", true, "resume"],
    ["fork", true, "fork"], ["reload", true, "resume"], ["something new", false, "startup"],
  ]) {
    await handlers.session_start({ reason }, context(`s-${reason}-${history}`, history))
    await ask(`s-${reason}-${history}`, "the sky?")
    assert.equal(requests.filter(({ body }) => "source" in body).at(-1).body.source, source, reason)
  }
  await handlers.session_compact({ reason: "manual" }, context("s-new-false"))
  await ask("s-new-false", "the sky?")
  assert.deepEqual(events(requests).slice(-2), [["session.start", "compact"], ["prompt.submit", ""]])
})

test("Pi started by Pi's own shell is a sub-agent of that session", async (t) => {
  const { ask, requests } = await pi(t, { env: { PI_SESSION_ID: "s0" } })
  await ask("s1", "deploy?")
  assert.deepEqual(events(requests), [["session.start", "resume"]])
  assert.equal(requests[0].body.parent_session_id, "s0")
})

test("Pi: tools keep their schema and know the session", async (t) => {
  const { tools, context } = await pi(t)
  const [{ execute, ...rest }] = tools
  assert.deepEqual(rest, { name: "lore_get_node", label: "Open a memory", description: "Open one memory", parameters: TOOL.inputSchema })
  const answer = await execute("call", { uri: "project://a" }, new AbortController().signal, () => {}, context("s1"))
  assert.deepEqual(answer, { content: [{ type: "text", text: "lore_get_node for s1" }], details: {} })
})

test("Pi: neither the factory nor a handler throws, whatever it gets", async (t) => {
  const { handlers, root } = await pi(t, { serve: () => {} })
  for (const handler of Object.values(handlers))
    for (const event of [undefined, null, {}, { prompt: 7 }])
      for (const context of [undefined, {}, { sessionManager: {} }]) {
        const { ms } = await timed(handler(event, context))
        assert.ok(ms < 2500, `${ms} ms`)
      }
  const factory = await installed("pi.js", root)
  await factory(undefined)
  fs.rmSync(path.join(root, "bin"), { recursive: true })
  await factory({ on: assert.fail, registerTool: assert.fail })
})
