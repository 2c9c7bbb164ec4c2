// lorehooks: long-term memory for OpenClaw. Installed by `lore install openclaw`, removed by `lore uninstall openclaw`.
// OpenClaw registers a plugin several times in one process, so what is known of sessions is kept beside `register`.
// >>> transport.mjs, copied by lorehooks.installers.pluginfiles: change it there
// The way from a plugin file to the memory service of one home, the same for every host that loads JavaScript.
// `python -m lorehooks.installers.pluginfiles` copies it into each plugin file, between its marks. Whatever goes wrong,
// nothing here throws and nothing waits past its limit: a host would fail or hang its user's prompt.
import { spawn } from "node:child_process"
import fs from "node:fs"
import net from "node:net"

const LORE_HOME = "@LORE_HOME@" // the installer writes the folder's name here

// One exchange after another with the service: `hook`, `tool`, `tools`, `readyTools`, `readyBoot`, `guard`, `stayAlive`.
// Plain sockets on purpose: where HTTP_PROXY is set, hosts send `fetch` and even `node:http` for 127.0.0.1 to the proxy.
function loreTransport(client, home = LORE_HOME) {
  const run = `${home}/run`
  const program = `${home}/bin/service`
  const GRACE_MS = 50
  const TOOL_MS = 20_000
  const PAUSE_MS = 25
  const MOST_HEAD = 1 << 16
  const MOST_ANSWER = 4 << 20
  const ALIVE_MS = 600_000
  const SOCKET_PATH_BYTES = 104 // with its closing zero, on macOS; Linux has 108
  const ALLOWED = ["HOME", "PATH", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR"]
  let times = null
  let started = null // the service that this process has started last: {at, ended, failed}

  const now = () => performance.now()
  const pause = (ms) => new Promise((done) => setTimeout(done, ms))
  const read = (path) => {
    try {
      return fs.readFileSync(path)
    } catch {
      return null
    }
  }
  const readJson = (path) => {
    try {
      const value = JSON.parse(read(path).toString("utf8"))
      return value && typeof value === "object" ? value : null
    } catch {
      return null
    }
  }
  const toolsOnDisk = () => {
    for (const folder of [run, `${home}/bin`]) {
      const tools = readJson(`${folder}/tools/${client}.json`)?.tools_list?.tools
      if (Array.isArray(tools)) return tools
    }
    return null
  }
  const isOff = () => !["", "0"].includes(process.env.LORE_DISABLE ?? "")

  // Our files are there, and nobody else can put his own in their place. A run folder that is missing comes with the service.
  const isOurs = () => {
    if (!fs.existsSync(`${home}/bin`)) return false
    try {
      const owner = fs.statSync(run)
      return !(owner.mode & 0o022) && (!process.geteuid || owner.uid === process.geteuid())
    } catch {
      return true
    }
  }

  const limit = (isStart) => {
    const ms = Number.parseInt((read(`${run}/limits`)?.toString() ?? "").split(/\s+/)[isStart ? 1 : 0], 10)
    return Math.min(Math.max(ms || (isStart ? 5000 : 2000), 200), 8000)
  }

  // Why a session got no memory, for the next session start and `lore doctor`. Three slow failures open the breaker.
  const miss = (event, reason) => {
    try {
      if (!fs.existsSync(run)) return null
      fs.appendFileSync(`${run}/misses.log`, `${Date.now()} ${client} ${event} ${reason}\n`, { mode: 0o600 })
      if (event !== "tool" && ["timeout", "start_failed"].includes(reason))
        fs.appendFileSync(`${run}/breaker`, ".", { mode: 0o600 })
    } catch {}
    return null
  }
  const isBroken = () => {
    try {
      const counted = fs.statSync(`${run}/breaker`)
      return counted.size > 2 && Math.abs(Date.now() - counted.mtimeMs) < 60_000
    } catch {
      return false
    }
  }
  const mend = () => {
    try {
      fs.unlinkSync(`${run}/breaker`)
    } catch {}
  }

  // Where the service listens; null while it does not. A path too long for a socket is got round over TCP.
  const address = () => {
    const path = `${run}/service.sock`
    if (Buffer.byteLength(path) < SOCKET_PATH_BYTES) return { to: { path } }
    const { port, token } = readJson(`${run}/service.json`) ?? {}
    return port && token ? { to: { host: "127.0.0.1", port }, token } : null
  }

  // What an answer says: {value}, {reason}, or {need}: how many bytes there must be to look again.
  const parse = (bytes, isClosed) => {
    const bad = { reason: "bad_answer" }
    const cut = bytes.indexOf("\r\n\r\n")
    if (cut < 0) return isClosed || bytes.length > MOST_HEAD ? bad : { need: bytes.length + 1 }
    const head = bytes.subarray(0, cut).toString("latin1")
    const length = Number(/^content-length:[ \t]*(\d+)[ \t\r]*$/im.exec(head)?.[1] ?? Number.NaN)
    const body = bytes.subarray(cut + 4)
    if (bytes.length > MOST_ANSWER || length > MOST_ANSWER) return bad
    if (!isClosed && !(body.length >= length)) return { need: cut + 4 + (length || MOST_ANSWER) }
    if (body.length < length || !/^HTTP\/1\.[01] 20[04] /.test(head)) return bad
    try {
      const value = body.length ? JSON.parse(body.toString("utf8")) : {}
      return value && typeof value === "object" && !Array.isArray(value) ? { value } : bad
    } catch {
      return bad
    }
  }

  // One request: {value} or {reason}. `absent` when nobody listens, `dropped` when the line went dead without an answer.
  const exchange = (method, path, body, until, signal) =>
    new Promise((done) => {
      let timer, socket
      let [parts, size, need, ended] = [[], 0, 1, false]
      const end = (result) => {
        ended = true
        clearTimeout(timer)
        signal?.removeEventListener?.("abort", abort)
        socket?.destroy()
        done(result)
      }
      const abort = () => end({ reason: "aborted" })
      const look = (isClosed) => {
        if (ended) return
        if (!size) return end({ reason: "dropped" })
        parts = [parts.length === 1 ? parts[0] : Buffer.concat(parts)]
        const result = parse(parts[0], isClosed)
        need = result.need
        if (!need) end(result)
      }
      try {
        const at = address()
        if (!at) return end({ reason: "absent" })
        if (signal?.aborted) return abort()
        signal?.addEventListener?.("abort", abort, { once: true })
        const left = Math.max(until - now(), 1)
        // One tick more: where the host kept its event loop busy, the answer may be waiting in the socket already.
        timer = setTimeout(() => (timer = setTimeout(() => end({ reason: "timeout" }), GRACE_MS)), left)
        const data = Buffer.from(body === undefined ? "" : JSON.stringify(body))
        socket = net.connect(at.to)
        socket.on("error", (error) =>
          end({ reason: ["ENOENT", "ECONNREFUSED", "EAGAIN", "ENOTSOCK"].includes(error?.code) ? "absent" : "dropped" }),
        )
        socket.on("data", (part) => {
          parts.push(part)
          size += part.length
          if (size >= need) look(false)
        })
        socket.on("close", () => look(true))
        // HTTP/1.0, so that no answer comes in chunks and the line is closed after it
        const lines = [
          `${method} ${path} HTTP/1.0`,
          `Host: 127.0.0.1${at.to.port ? `:${at.to.port}` : ""}`,
          "Connection: close",
          "Content-Type: application/json",
          `Content-Length: ${data.length}`,
          `X-Lore-Remaining-Ms: ${Math.round(left)}`,
        ]
        if (at.token) lines.push(`Authorization: Bearer ${at.token}`)
        socket.write(`${lines.join("\r\n")}\r\n\r\n`)
        if (data.length) socket.write(data)
      } catch {
        end({ reason: "dropped" })
      }
    })

  // Start the service in a session of its own, without the host's keys. Whoever loses the race leaves at once.
  const start = () => {
    started = { at: now(), ended: false, failed: false }
    const mine = started
    try {
      fs.accessSync(program, fs.constants.X_OK)
      const env = {}
      for (const [name, value] of Object.entries(process.env))
        if (ALLOWED.includes(name) || name.startsWith("LC_") || name.startsWith("LORE_")) env[name] = value
      const child = spawn(program, [], { cwd: "/", detached: true, stdio: "ignore", env })
      child.on("error", () => Object.assign(mine, { ended: true, failed: true }))
      child.on("exit", (code) => Object.assign(mine, { ended: true, failed: code !== 0 }))
      child.unref()
    } catch {
      Object.assign(mine, { ended: true, failed: true })
    }
    return mine
  }

  // A request within `ms`, with the service started when nobody answers. An object, or null after noting why.
  const ask = async (event, path, body, ms, signal) => {
    try {
      if (isOff() || !isOurs()) return null
      if (event !== "tool" && isBroken()) return miss(event, "breaker")
      const until = now() + ms - GRACE_MS
      let reason = "timeout"
      let again = event !== "tool" // a write may have been made although its answer was lost
      let mine = null
      for (;;) {
        const result = await exchange("POST", path, body, until, signal)
        if (result.value) {
          mend()
          return result.value
        }
        reason = result.reason
        if (reason === "dropped" && again) again = false
        else if (reason !== "absent") break
        if (reason === "absent") {
          if (!fs.existsSync(program)) return miss(event, "no_service")
          if (mine?.failed) return miss(event, "start_failed")
          if (!mine || (mine.ended && now() - mine.at > 1000))
            mine = started && !started.ended && now() - started.at < 20_000 ? started : start()
        }
        if (now() + PAUSE_MS >= until) return miss(event, "timeout")
        await pause(PAUSE_MS)
      }
      if (reason !== "aborted") miss(event, reason === "dropped" ? "bad_answer" : reason)
    } catch {}
    return null
  }

  // Written a moment later, so that writing is no part of the next handler's time.
  const noteTime = (line) => {
    if (!times) {
      times = []
      const write = () => {
        try {
          fs.appendFileSync(process.env.LORE_PLUGIN_TIMES, times.splice(0).join(""))
        } catch {}
      }
      setInterval(write, 200).unref?.()
      process.on("exit", write)
    }
    times.push(line)
  }

  return {
    isOff,

    // Whether there is a home to ask at all.
    isHere: () => !isOff() && isOurs(),

    // What the host has to be told for an event (`session.start`, `prompt.submit`, `session.end`); null for no answer.
    hook: (event, body, ms = limit(event === "session.start")) => ask(event, `/hooks/v1/${client}/${event}`, body, ms),

    // Run one memory tool for a session: {text, is_error}.
    tool: async (name, args, sessionId, signal) => {
      const body = { name, arguments: args ?? {}, session_id: sessionId ?? null }
      const answer = await ask("tool", `/hooks/v1/${client}/tool`, body, TOOL_MS, signal)
      if (typeof answer?.text === "string") return { text: answer.text, is_error: answer.is_error === true }
      return { text: "The memory does not answer right now. Go on without it; `lore doctor` says why.", is_error: true }
    },

    // The tools as MCP lists them, [{name, description, inputSchema}]: from disk, so that no start waits for the service.
    tools: async () => {
      try {
        if (isOff() || !isOurs()) return []
        const ready = toolsOnDisk()
        if (ready) return ready
        const result = await exchange("GET", "/hooks/v1/tools", undefined, now() + 500)
        return Array.isArray(result.value?.tools) ? result.value.tools : []
      } catch {
        return []
      }
    },

    // The same for a host that takes them at once or never.
    readyTools: () => (isOff() || !isOurs() ? [] : (toolsOnDisk() ?? [])),

    // The answer to a session start that the service left on disk for the times when it is not there.
    readyBoot: () => (isOff() || !isOurs() ? null : readJson(`${run}/boot/${client}`)),

    limit,

    // A handler that never throws. Tests have its times written to the file that LORE_PLUGIN_TIMES names.
    guard: (name, handler) => async (...args) => {
      const began = now()
      try {
        return await handler(...args)
      } catch {
        return undefined
      } finally {
        if (process.env.LORE_PLUGIN_TIMES) noteTime(`${client} ${name} ${(now() - began).toFixed(3)}\n`)
      }
    },

    // Count as use of the service while the host lives. Starts nothing and keeps no host alive; returns how to end it.
    stayAlive: () => {
      const timer = setInterval(() => {
        if (!isOff() && isOurs()) exchange("POST", "/hooks/v1/alive", { client_type: client }, now() + 5000)
      }, ALIVE_MS)
      timer.unref?.()
      return () => clearInterval(timer)
    },
  }
}

// What each session was sent. A boot block is asked for once in an epoch and then stays the same to the byte, so that the
// host's prompt cache holds; one that did not come is asked for again. `bootKey` names it in the answer.
function loreSessions(lore, bootKey) {
  const MOST = 500
  const RETRY_MS = 30_000
  const sessions = new Map()

  const begin = (id, source) => {
    const session = { source, text: undefined, asking: null, tried: false, failedAt: -Infinity }
    sessions.delete(id)
    sessions.set(id, session)
    if (sessions.size > MOST) sessions.delete(sessions.keys().next().value)
    return session
  }
  const ready = (facts) => {
    const text = facts.parent_session_id ? "" : lore.readyBoot()?.[bootKey]
    return typeof text === "string" ? text : ""
  }
  const fetchBoot = async (id, session, facts) => {
    const body = { ...facts, session_id: id, source: session.source }
    const answer = await lore.hook("session.start", body, lore.limit(!session.tried))
    session.tried = true
    session.asking = null
    if (answer) session.text = typeof answer[bootKey] === "string" ? answer[bootKey] : ""
    else session.failedAt = performance.now()
  }
  const boot = async (id, facts) => {
    const session = sessions.get(id) ?? begin(id, "resume")
    if (session.text === undefined && !lore.isOff() && performance.now() - session.failedAt > RETRY_MS) {
      session.asking ??= fetchBoot(id, session, facts)
      await session.asking
    }
    return session.text ?? ready(facts)
  }

  return {
    // A new epoch: `startup`, `clear`, `compact` or `fork`; `resume` for a session that goes on. Unknown sessions resume.
    begin,
    // The boot text of the session's epoch; empty when there is none.
    boot,
    // The answer to a prompt, or null. Its session's boot block comes first, since a new epoch may show memories again.
    // `more` are facts of the prompt alone.
    prompt: async (id, prompt, facts, more = {}) => {
      const began = performance.now()
      await boot(id, facts)
      if (sessions.get(id)?.failedAt >= began) return null // who waited that long has waited enough
      return lore.hook("prompt.submit", { ...facts, ...more, session_id: id, prompt })
    },
    end: (id) => sessions.delete(id),
  }
}
// <<< transport.mjs

const MOST_MS = 20_000 // for one handler of ours, whose own waits end before
const MOST_SESSIONS = 500

let memory = null

function memoryOf() {
  const lore = loreTransport("openclaw")
  const prompted = new Map() // session id -> whether its epoch has had a prompt
  const sessions = loreSessions(lore, "appendSystemContext")
  let alive = null

  const begin = (id, source, hasPrompt) => {
    sessions.begin(id, source)
    note(id, hasPrompt)
  }
  const note = (id, hasPrompt) => {
    prompted.delete(id)
    prompted.set(id, hasPrompt)
    if (prompted.size > MOST_SESSIONS) prompted.delete(prompted.keys().next().value)
  }

  const onSessionStart = async ({ sessionId, resumedFrom }) => {
    if (sessionId) begin(sessionId, resumedFrom === sessionId ? "clear" : "startup", false) // `/new` keeps the id
  }
  const onCompaction = async (_event, { sessionId }) => {
    if (sessionId) begin(sessionId, "compact", true)
  }

  // Both go into what OpenClaw composes anew for each run, so the boot block is given every time, the same to the byte.
  const onPrompt = async ({ prompt, currentUserMessage, messages }, { sessionId, sessionKey, workspaceDir, trigger }) => {
    if (!sessionId) return undefined
    alive ??= lore.stayAlive()
    // Outside the Gateway no session is said to begin: one without messages does.
    if (!prompted.has(sessionId)) begin(sessionId, messages?.length ? "resume" : "startup", true)
    else if (messages?.length === 0 && prompted.get(sessionId)) begin(sessionId, "clear", true)
    else note(sessionId, true)
    const [parent, child] = (sessionKey ?? "").split(":subagent:")
    const facts = {
      cwd: workspaceDir,
      session_key: sessionKey,
      ...(child ? { parent_session_id: parent } : {}),
    }
    const asked = currentUserMessage ?? prompt
    const asks = typeof asked === "string" && asked.trim() && !child
    const recalled = asks ? await sessions.prompt(sessionId, asked, facts, { trigger }) : null
    const boot = await sessions.boot(sessionId, facts)
    const answer = {}
    if (boot) answer.appendSystemContext = boot
    if (typeof recalled?.prependContext === "string") answer.prependContext = recalled.prependContext
    return answer
  }

  return { lore, onSessionStart, onCompaction, onPrompt }
}

function setUp(api) {
  memory ??= memoryOf()
  const { lore, onSessionStart, onCompaction, onPrompt } = memory
  if (!lore.isHere()) return
  api.on("session_start", lore.guard("session_start", onSessionStart))
  api.on("after_compaction", lore.guard("after_compaction", onCompaction))
  api.on("before_prompt_build", lore.guard("before_prompt_build", onPrompt), { timeoutMs: MOST_MS })
  for (const { name, title, description, inputSchema } of lore.readyTools())
    api.registerTool(
      ({ sessionId } = {}) => ({
        name,
        label: title ?? name,
        description,
        parameters: inputSchema,
        catalogMode: "direct-only", // else the model finds it only by OpenClaw's search for tools
        execute: async (_call, args, signal) => {
          const { text } = await lore.tool(name, args, sessionId, signal)
          return { content: [{ type: "text", text }], details: {} }
        },
      }),
      { name },
    )
}

export default {
  id: "lorehooks",
  name: "Lore memory",
  description: "Long-term memory: boot block, recall on each prompt, memory tools",
  register(api) {
    try {
      setUp(api)
    } catch {}
  },
}
