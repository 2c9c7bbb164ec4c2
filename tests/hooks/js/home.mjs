// Homes of a test's own with a stand-in service on their socket, for the tests of what runs inside hosts.
import fs from "node:fs"
import net from "node:net"
import os from "node:os"
import path from "node:path"
import { pathToFileURL } from "node:url"

export const OK = '{"systemContext":"→ 김 🟡"}'
export const whole = (body, status = "200 OK") =>
  `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

// A home with limits of 300 ms, and a service on its socket that does with each connection what `serve` says.
export async function home(t, serve, { folder = "", limits = "300 300", tcp = false } = {}) {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), `zoë 김 ${folder}`))
  const run = path.join(root, "run")
  fs.mkdirSync(path.join(root, "bin", "tools"), { recursive: true })
  fs.mkdirSync(run, { mode: 0o700 })
  if (limits) fs.writeFileSync(path.join(run, "limits"), limits)
  const requests = []
  if (serve) {
    const sockets = new Set()
    const server = net.createServer((socket) => {
      sockets.add(socket)
      socket.on("error", () => {})
      let text = ""
      socket.on("data", (part) => {
        text += part
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
        const [head, body] = text.split("\r\n\r\n")
        if (body === undefined || Buffer.byteLength(body) < length) return
        requests.push({ head, body: body && JSON.parse(body) })
        text = ""
        serve(socket, requests.length, requests.at(-1))
      })
    })
    await new Promise((done) => server.listen(tcp ? { host: "127.0.0.1", port: 0 } : path.join(run, "service.sock"), done))
    if (tcp) fs.writeFileSync(path.join(run, "service.json"), JSON.stringify({ port: server.address().port, token: "secret" }))
    t.after(() => {
      server.close()
      for (const socket of sockets) socket.destroy()
    })
  }
  t.after(() => fs.rmSync(root, { recursive: true, force: true }))
  const misses = () => {
    try {
      return fs.readFileSync(path.join(run, "misses.log"), "utf8").trim().split("\n").map((line) => line.split(" ").slice(2).join(" "))
    } catch {
      return []
    }
  }
  return { root, run, requests, misses }
}

export const answering = (body) => (socket) => socket.end(whole(body))

export async function timed(promise) {
  const began = performance.now()
  const value = await promise
  return { value, ms: performance.now() - began }
}

// A plugin file as it is installed for a home, loaded as its host loads it.
export async function loaded(name, root) {
  const source = fs.readFileSync(new URL(`../../../hooks/js/${name}`, import.meta.url), "utf8")
  const file = path.join(root, `${name}.mjs`)
  fs.writeFileSync(file, source.replace('"@LORE_HOME@"', JSON.stringify(root)))
  return import(pathToFileURL(file))
}
export const installed = async (name, root) => (await loaded(name, root)).default
