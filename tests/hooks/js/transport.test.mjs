// The transport against services that behave in every bad way, over real sockets in homes of the test's own.
import assert from "node:assert/strict"
import fs from "node:fs"
import path from "node:path"
import test from "node:test"
import { loreSessions, loreTransport } from "../../../hooks/js/transport.mjs"
import { OK, answering, home as bareHome, timed, whole } from "./home.mjs"

async function home(...args) {
  const made = await bareHome(...args)
  return { ...made, lore: loreTransport("opencode", made.root) }
}

test("passes the event on and gives the answer back whole", async (t) => {
  const { lore, requests, misses } = await home(t, (socket) => {
    const bytes = Buffer.from(whole(OK))
    let at = 0
    const next = () => (at < bytes.length ? socket.write(bytes.subarray(at, (at += 7)), next) : socket.end())
    next()
  })
  assert.deepEqual(await lore.hook("prompt.submit", { prompt: "naïve 部署 \ud83d" }), { systemContext: "→ 김 🟡" })
  const [{ head, body }] = requests
  assert.match(head, /^POST \/hooks\/v1\/opencode\/prompt\.submit HTTP\/1\.0\r\n/)
  assert.match(head, /X-Lore-Remaining-Ms: (2[0-9]{2})\b/)
  assert.equal(body.prompt, "naïve 部署 \ud83d")
  assert.deepEqual(misses(), [])
})

const bad = {
  "answers with a page": [(s) => s.end("HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<!doctype html>"), "bad_answer"],
  "answers with an error": [(s) => s.end(whole('{"detail":"no"}', "500 Internal Server Error")), "bad_answer"],
  "redirects": [(s) => s.end("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), "bad_answer"],
  "answers with a list": [answering("[1]"), "bad_answer"],
  "answers with half a document": [answering('{"a":'), "bad_answer"],
  "answers with other bytes": [(s) => s.end("SSH-2.0-demo\r\n"), "bad_answer"],
  "cuts its answer short": [(s) => s.end("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{}"), "bad_answer"],
  "closes without an answer": [(s) => s.end(), "bad_answer"],
  "resets the line": [(s) => s.resetAndDestroy(), "bad_answer", { folder: "a".repeat(100), tcp: true }],
  "never answers": [() => {}, "timeout"],
  "sends more than anybody asked for": [
    (s) => {
      s.write(`HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n`)
      const more = () => !s.destroyed && s.write(Buffer.alloc(1 << 20, 32), more)
      more()
    },
    "bad_answer",
  ],
  "sends headers without end": [
    (s) => {
      s.write("HTTP/1.1 200 OK\r\n")
      const more = () => !s.destroyed && s.write(`X-Pad: ${"a".repeat(8000)}\r\n`, more)
      more()
    },
    "bad_answer",
  ],
  "drips its headers": [(s) => drip(s, "HTTP/1.1 200 OK\r\nX-Pad: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "timeout"],
  "drips its body": [
    (s) => {
      s.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
      drip(s, " ".repeat(1000))
    },
    "timeout",
  ],
}

function drip(socket, text) {
  let at = 0
  const timer = setInterval(() => (socket.destroyed || at === text.length ? clearInterval(timer) : socket.write(text[at++])), 20)
  socket.on("close", () => clearInterval(timer))
}

for (const [what, [serve, reason, options]] of Object.entries(bad))
  test(`ends within its limit when the service ${what}`, async (t) => {
    const { lore, misses } = await home(t, serve, options)
    const { value, ms } = await timed(lore.hook("prompt.submit", { prompt: "x" }))
    assert.equal(value, null)
    assert.ok(ms < 1500, `${ms} ms`)
    assert.deepEqual(misses(), [`prompt.submit ${reason}`])
  })

test("takes an answer that came while the host kept the event loop busy beyond the limit", async (t) => {
  const { lore, run } = await home(t, null)
  const { Worker } = await import("node:worker_threads")
  const socketPath = JSON.stringify(path.join(run, "service.sock"))
  const worker = new Worker(
    `const net = require("node:net"); const { parentPort } = require("node:worker_threads")
     net.createServer((s) => { s.once("data", () => s.end(${JSON.stringify(whole(OK))})) }).listen(${socketPath}, () => parentPort.postMessage("up"))`,
    { eval: true },
  )
  t.after(() => worker.terminate())
  await new Promise((done) => worker.once("message", done))
  const answer = lore.hook("prompt.submit", { prompt: "x" })
  setImmediate(() => {
    const end = performance.now() + 800
    while (performance.now() < end);
  })
  assert.deepEqual(await answer, JSON.parse(OK))
})

test("its limits are the user's, within reason, and two and five seconds without a word", async (t) => {
  const { run, lore } = await home(t, null, { limits: "" })
  assert.deepEqual([lore.limit(false), lore.limit(true)], [2000, 5000])
  for (const [text, prompt, start] of [["1500 3000\n", 1500, 3000], ["5 99999", 200, 8000], ["nonsense", 2000, 5000]]) {
    fs.writeFileSync(path.join(run, "limits"), text)
    assert.deepEqual([lore.limit(false), lore.limit(true)], [prompt, start])
  }
})

test("three slow failures open the breaker, one answer closes it", async (t) => {
  const { lore, run, requests, misses } = await home(t, () => {})
  for (let n = 0; n < 3; n++) await lore.hook("prompt.submit", {})
  const { value, ms } = await timed(lore.hook("prompt.submit", {}))
  assert.equal(value, null)
  assert.ok(ms < 150, `${ms} ms`)
  assert.equal(requests.length, 3)
  assert.equal(misses().at(-1), "prompt.submit breaker")
  const past = Date.now() / 1000 - 61
  fs.utimesSync(path.join(run, "breaker"), past, past)
  await lore.hook("prompt.submit", {})
  assert.equal(requests.length, 4)
})

test("an answer takes the breaker's count away", async (t) => {
  const { lore, run } = await home(t, answering("{}"))
  fs.writeFileSync(path.join(run, "breaker"), "..")
  assert.deepEqual(await lore.hook("prompt.submit", {}), {})
  assert.ok(!fs.existsSync(path.join(run, "breaker")))
})

test("starts the service in a session of its own, without the host's keys, and waits for it", async (t) => {
  const { root, run, lore, misses } = await home(t, null, { limits: "8000 8000" })
  const report = path.join(root, "report")
  const script = `#!/bin/sh\nenv > '${report}'\nexec '${process.execPath}' '${path.join(root, "stub.cjs")}'\n`
  fs.writeFileSync(
    path.join(root, "stub.cjs"),
    `require("node:fs").writeFileSync(${JSON.stringify(path.join(root, "pid"))}, String(process.pid))
     require("node:net").createServer((s) => { s.once("data", () => s.end(${JSON.stringify(whole(OK))})) }).listen(${JSON.stringify(path.join(run, "service.sock"))})
     setTimeout(() => process.exit(), 20000)`,
  )
  fs.writeFileSync(path.join(root, "bin", "service"), script, { mode: 0o755 })
  process.env.SOME_API_KEY = "secret"
  process.env.LORE_EXAMPLE = "kept"
  t.after(() => {
    delete process.env.SOME_API_KEY
    delete process.env.LORE_EXAMPLE
  })
  const both = await Promise.all([lore.hook("session.start", {}), lore.hook("prompt.submit", {})])
  const pid = Number(fs.readFileSync(path.join(root, "pid"), "utf8"))
  const sid = (id) => fs.readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1].split(" ")[3]
  const sids = fs.existsSync("/proc/self/stat") ? [sid(pid), sid(process.pid)] : [String(pid), ""]
  process.kill(pid)
  assert.deepEqual(both, [JSON.parse(OK), JSON.parse(OK)])
  assert.deepEqual(misses(), [])
  const said = fs.readFileSync(report, "utf8")
  assert.match(said, /^LORE_EXAMPLE=kept$/m)
  assert.match(said, /^HOME=/m)
  assert.doesNotMatch(said, /SOME_API_KEY/)
  assert.equal(sids[0], String(pid))
  assert.notEqual(sids[0], sids[1])
})

test("says at once that a service does not start, or that there is none", async (t) => {
  const { root, lore, misses } = await home(t, null, { limits: "8000 8000" })
  const first = await timed(lore.hook("prompt.submit", {}))
  fs.writeFileSync(path.join(root, "bin", "service"), "#!/bin/sh\nexit 127\n", { mode: 0o755 })
  const second = await timed(lore.hook("prompt.submit", {}))
  assert.deepEqual([first.value, second.value], [null, null])
  assert.ok(first.ms < 1000 && second.ms < 3000, `${first.ms} ${second.ms}`)
  assert.deepEqual(misses(), ["prompt.submit no_service", "prompt.submit start_failed"])
})

test("reaches a service whose socket's path is too long, over TCP with its token", async (t) => {
  const { lore, requests } = await home(t, answering(OK), { folder: "a".repeat(100), tcp: true })
  assert.deepEqual(await lore.hook("prompt.submit", {}), JSON.parse(OK))
  assert.match(requests[0].head, /Authorization: Bearer secret/)
  assert.match(requests[0].head, /Host: 127\.0\.0\.1:\d+/)
})

test("is silent and quick when its home is gone, switched off, or open to others", async (t) => {
  const { root, run, lore, requests, misses } = await home(t, answering(OK))
  process.env.LORE_DISABLE = "1"
  assert.equal(await lore.hook("prompt.submit", {}), null)
  assert.deepEqual(await lore.tools(), [])
  delete process.env.LORE_DISABLE
  fs.chmodSync(run, 0o770)
  assert.equal(await lore.hook("prompt.submit", {}), null)
  assert.equal(requests.length, 0)
  assert.deepEqual(misses(), [])
  const gone = loreTransport("opencode", path.join(root, "gone"))
  assert.equal(await gone.hook("prompt.submit", {}), null)
  assert.deepEqual(await gone.tools(), [])
  assert.equal(gone.readyBoot(), null)
  assert.equal((await gone.tool("lore_status", {}, "s")).is_error, true)
  assert.ok(!fs.existsSync(path.join(root, "gone")))
})

test("lists tools from disk, and asks the service where there is no list", async (t) => {
  const { root, run, lore } = await home(t, answering('{"tools":[{"name":"asked"}]}'))
  assert.equal((await lore.tools())[0].name, "asked")
  const list = (name) => JSON.stringify({ tools_list: { tools: [{ name }] } })
  fs.writeFileSync(path.join(root, "bin", "tools", "opencode.json"), list("laid"))
  assert.equal((await lore.tools())[0].name, "laid")
  fs.mkdirSync(path.join(run, "tools"))
  fs.writeFileSync(path.join(run, "tools", "opencode.json"), list("fresh"))
  assert.equal((await lore.tools())[0].name, "fresh")
})

test("runs a tool for its session, ends with the host's signal, and repeats no call", async (t) => {
  const { lore, requests, misses } = await home(t, (socket, n) =>
    n === 1 ? socket.end(whole('{"text":"NODE","is_error":false}')) : n === 2 ? socket.destroy() : undefined,
  )
  assert.deepEqual(await lore.tool("lore_get_node", { uri: "project://a" }, "s1"), { text: "NODE", is_error: false })
  assert.deepEqual(requests[0].body, { name: "lore_get_node", arguments: { uri: "project://a" }, session_id: "s1" })
  assert.equal((await lore.tool("lore_create_node", {}, "s1")).is_error, true)
  assert.equal(requests.length, 2)
  const stop = new AbortController()
  setTimeout(() => stop.abort(), 50)
  const { value, ms } = await timed(lore.tool("lore_status", {}, "s1", stop.signal))
  assert.equal(value.is_error, true)
  assert.ok(ms < 1500, `${ms} ms`)
  assert.deepEqual(misses(), ["tool bad_answer"])
})

test("a guarded handler never throws, and its time is noted where tests ask for it", async (t) => {
  const { root, lore } = await home(t, null)
  process.env.LORE_PLUGIN_TIMES = path.join(root, "times")
  t.after(() => delete process.env.LORE_PLUGIN_TIMES)
  const throwing = lore.guard("boot", async () => {
    throw new Error("ours")
  })
  assert.equal(await throwing(), undefined)
  for (let n = 0; n < 200 && !fs.existsSync(path.join(root, "times")); n++) await new Promise((done) => setTimeout(done, 25))
  assert.match(fs.readFileSync(path.join(root, "times"), "utf8"), /^opencode boot \d+\.\d{3}\n$/)
})

test("a session keeps its boot text until a new epoch, and asks for it once at a time", async (t) => {
  const { lore, requests } = await home(t, (socket, n) => socket.end(whole(`{"systemContext":"boot ${n}"}`)))
  const sessions = loreSessions(lore, "systemContext")
  sessions.begin("s1", "startup")
  const both = await Promise.all([sessions.boot("s1", { cwd: "/a" }), sessions.boot("s1", { cwd: "/a" })])
  assert.deepEqual(both, ["boot 1", "boot 1"])
  assert.equal(await sessions.boot("s1", {}), "boot 1")
  sessions.begin("s1", "compact")
  assert.equal(await sessions.boot("s1", {}), "boot 2")
  assert.equal(await sessions.boot("s2", {}), "boot 3")
  assert.deepEqual(requests.map(({ body }) => [body.session_id, body.source]), [["s1", "startup"], ["s1", "compact"], ["s2", "resume"]])
})

test("an empty boot answer is an answer", async (t) => {
  const { lore, requests } = await home(t, answering("{}"))
  const sessions = loreSessions(lore, "systemContext")
  assert.equal(await sessions.boot("s1", {}), "")
  assert.equal(await sessions.boot("s1", {}), "")
  assert.equal(requests.length, 1)
})

test("a boot that failed is not kept: the ready one serves meanwhile, and no other wait follows at once", async (t) => {
  let well = false
  const { run, lore, requests } = await home(t, (socket) => well && socket.end(whole(OK)))
  fs.mkdirSync(path.join(run, "boot"))
  fs.writeFileSync(path.join(run, "boot", "opencode"), '{"systemContext":"ready"}')
  const sessions = loreSessions(lore, "systemContext")
  sessions.begin("s1", "startup")
  assert.equal(await sessions.prompt("s1", "x", {}), null)
  assert.equal(requests.length, 1)
  const { value, ms } = await timed(sessions.boot("s1", {}))
  assert.equal(value, "ready")
  assert.ok(ms < 150, `${ms} ms`)
  assert.equal(await sessions.boot("s1", { parent_session_id: "s0" }), "")
  well = true
  t.mock.method(performance, "now", ((real) => () => real() + 31_000)(performance.now.bind(performance)))
  assert.equal(await sessions.boot("s1", {}), "→ 김 🟡")
  assert.equal(requests.at(-1).body.source, "startup")
})

test("many sessions cost bounded memory, and a forgotten one gets its boot text again", async (t) => {
  const { lore, requests } = await home(t, answering(OK))
  const sessions = loreSessions(lore, "systemContext")
  sessions.begin("first", "startup")
  await sessions.boot("first", {})
  for (let n = 0; n < 600; n++) sessions.begin(`s${n}`, "startup")
  await sessions.boot("first", {})
  assert.deepEqual(requests.map(({ body }) => body.source), ["startup", "resume"])
})
