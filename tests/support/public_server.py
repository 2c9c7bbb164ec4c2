"""The public Lore server in miniature: recorded exchanges for what it says, a small store for what it remembers.

Every answer starts from a recorded body, so that fields, nulls and codes are the server's own; only what a request changes
is filled in. Its known defects that a client meets are kept (`lore-contract.md` 8): a duplicate path is a 500, a missing
move source a 422, unknown client types get the three global boot nodes.
"""

from __future__ import annotations

import copy
import json
import uuid
from pathlib import Path
from typing import Any

import httpx

BOOT_CLIENTS = ("claudecode", "openclaw", "hermes", "codex", "pi", "opencode", "mcp", "admin")


class PublicServer:
    """`handle` answers one request; give it to `httpx.MockTransport`. `requests` are those that came."""

    def __init__(self, golden: Path, token: str | None = None) -> None:
        self.exchanges = golden / "exchanges"
        self.token = token
        self.requests: list[httpx.Request] = []
        self.used: list[dict[str, Any]] = []
        self.recalls: dict[str, list[str]] = {}
        self.down = False
        nodes = json.loads((golden / "dataset.json").read_text(encoding="utf-8"))["simple"]["nodes"]
        self.nodes = {
            f"{node['domain']}://{node['path']}": dict(node, glossary=node["glossary"] or []) for node in nodes
        }

    def recorded(self, name: str) -> tuple[int, Any]:
        """Status and body of a recorded answer."""
        response = json.loads((self.exchanges / f"{name}.json").read_text(encoding="utf-8"))["response"]
        return response["status"], copy.deepcopy(response["body_json"])

    async def handle(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            raise httpx.ConnectError("All connection attempts failed")
        self.requests.append(request)
        path = request.url.path.removeprefix("/api")
        if self.token and path != "/health" and request.headers.get("authorization") != f"Bearer {self.token}":
            status, body = self.recorded("24_auth_domains_no_token")
        else:
            name = f"_{request.method}{path}".replace("/", "_").lower()
            handler = getattr(self, name, None)
            status, body = self.recorded("23_unknown_api_404") if handler is None else handler(request)
        return httpx.Response(
            status,
            headers={"content-type": "application/json"},
            stream=httpx.ByteStream(json.dumps(body, ensure_ascii=False).encode()),
        )

    # --- reading ---

    def _get_health(self, request: httpx.Request) -> tuple[int, Any]:
        return self.recorded("000_health")

    def _get_lifecycle_guidance(self, request: httpx.Request) -> tuple[int, Any]:
        return self.recorded("12_guidance")

    def _get_browse_boot(self, request: httpx.Request) -> tuple[int, Any]:
        client = request.url.params.get("client_type", "")
        status, body = self.recorded(f"08_boot_{client if client in BOOT_CLIENTS else 'unknownclient'}")
        for memory in (*body["core_memories"], *body["nodes"]):
            memory["content"] = self.nodes[memory["uri"]]["content"]
        return status, body

    def _get_browse_domains(self, request: httpx.Request) -> tuple[int, Any]:
        roots: dict[str, int] = {}
        for node in self.nodes.values():
            roots[node["domain"]] = roots.get(node["domain"], 0) + ("/" not in node["path"])
        return 200, [{"domain": domain, "root_count": count} for domain, count in sorted(roots.items())]

    def _get_browse_node(self, request: httpx.Request) -> tuple[int, Any]:
        domain, path = request.url.params.get("domain", "core"), request.url.params.get("path", "").strip("/")
        uri = f"{domain}://{path}"
        status, body = self.recorded("15_node_get" if path else "15_node_get_root")
        child = body["children"][0]
        body["children"] = [
            {
                **child,
                "node_uuid": node["node_uuid"],
                "domain": domain,
                "path": node["path"],
                "uri": address,
                "priority": node["priority"],
                "disclosure": node["disclosure"],
                "content_snippet": node["content"][:100],
            }
            for address, node in sorted(self.nodes.items())
            if node["domain"] == domain and node["path"].rpartition("/")[0] == path
        ]
        if not path:
            body["node"] |= {"domain": domain, "uri": uri}
            return status, body
        if uri not in self.nodes:
            return 404, {"detail": f"Path not found: {uri}", "code": "not_found"}
        node = self.nodes[uri]
        body["node"] |= {
            "path": path,
            "domain": domain,
            "uri": uri,
            "content": node["content"],
            "priority": node["priority"],
            "disclosure": node["disclosure"],
            "node_uuid": node["node_uuid"],
            "glossary_keywords": node["glossary"],
        }
        return status, body

    def _post_browse_search(self, request: httpx.Request) -> tuple[int, Any]:
        asked = json.loads(request.content)
        status, body = self.recorded("17_search_get_en")
        hit, words = body["results"][0], asked["query"].lower().split()
        body["results"] = [
            {
                **hit,
                "uri": uri,
                "domain": node["domain"],
                "path": node["path"],
                "priority": node["priority"],
                "content": node["content"],
                "snippet": node["content"].replace(words[0], f"<b>{words[0]}</b>")[:250],
            }
            for uri, node in self.nodes.items()
            if all(word in f"{uri} {node['content']} {' '.join(node['glossary'])}".lower() for word in words)
            and asked.get("domain") in (None, node["domain"])
        ][: asked.get("limit", 10)]
        for rank, result in enumerate(body["results"]):
            if rank >= asked.get("content_limit", 5):
                result["content"] = None
        return status, body

    def _post_browse_recall(self, request: httpx.Request) -> tuple[int, Any]:
        asked = json.loads(request.content)
        name = "13_recall_long_notice" if len(asked["query"]) > 200 else "13_recall_hit"
        if "penguin" in asked["query"]:
            name = "13_recall_miss"
        status, body = self.recorded(name)
        query_id = body["event_log"]["query_id"] = str(uuid.uuid4())
        self.recalls[query_id] = [item["uri"] for item in body["items"]]
        return status, body

    def _post_browse_recall_usage(self, request: httpx.Request) -> tuple[int, Any]:
        asked = json.loads(request.content)
        self.used.append(asked)
        shown = self.recalls.get(asked["query_id"], [])
        count = len(set(asked["node_uris"]) & set(shown))
        return 200, {"updated_count": count, "query_id": asked["query_id"], "node_uris": asked["node_uris"]}

    def _get_settings(self, request: httpx.Request) -> tuple[int, Any]:
        values = {"recall.display.max_display_items": 3, "lifecycle.boot.preamble": "## lore_boot"}
        return 200, {
            "schema": [],
            "sections": [],
            "values": values,
            "defaults": values,
            "sources": dict.fromkeys(values, "default"),
            "secret_configured": {},
        }

    # --- writing ---

    def _post_browse_node(self, request: httpx.Request) -> tuple[int, Any]:
        asked = json.loads(request.content)
        path = "/".join(filter(None, (asked.get("parent_path"), asked["title"])))
        uri = f"{asked['domain']}://{path}"
        if asked.get("parent_path") and f"{asked['domain']}://{asked['parent_path']}" not in self.nodes:
            return self.recorded("050_create_parent_missing_422")
        if uri in self.nodes:
            return self.recorded("053_create_duplicate_path_500")
        self.nodes[uri] = {
            "domain": asked["domain"],
            "path": path,
            "priority": asked.get("priority", 0),
            "disclosure": asked.get("disclosure"),
            "content": asked["content"],
            "node_uuid": str(uuid.uuid4()),
            "glossary": asked.get("glossary", []),
        }
        return self._written("030_00_create_lore_demo", uri)

    def _put_browse_node(self, request: httpx.Request) -> tuple[int, Any]:
        uri = f"{request.url.params['domain']}://{request.url.params['path']}"
        if uri not in self.nodes:
            return self.recorded("19_update_404")
        asked, node = json.loads(request.content), self.nodes[uri]
        node |= {name: asked[name] for name in ("content", "priority", "disclosure", "glossary") if name in asked}
        node["glossary"] = [word for word in node["glossary"] if word not in asked.get("glossary_remove", [])]
        node["glossary"] += asked.get("glossary_add", [])
        return self._written("19_update_content", uri)

    def _delete_browse_node(self, request: httpx.Request) -> tuple[int, Any]:
        uri = f"{request.url.params['domain']}://{request.url.params['path']}"
        if uri in ("core://soul", "core://agent"):
            return self.recorded("21_delete_boot_409")
        if uri not in self.nodes:
            return self.recorded("21_delete_404")
        answer = self._written("21_delete_subtree", uri)
        self.nodes = {address: node for address, node in self.nodes.items() if f"{address}/".find(f"{uri}/") != 0}
        answer[1]["deleted_uri"] = uri
        return answer

    def _post_browse_move(self, request: httpx.Request) -> tuple[int, Any]:
        asked = json.loads(request.content)
        old, new = asked["old_uri"], asked["new_uri"]
        if old == "core://soul":
            return self.recorded("20_move_boot_409")
        if old not in self.nodes:
            return self.recorded("20_move_missing_source_422")
        if new in self.nodes:
            return self.recorded("20_move_target_exists_409")
        node = self.nodes.pop(old)
        node["domain"], _, node["path"] = new.partition("://")
        self.nodes[new] = node
        status, body = self._written("20_move", new)
        return status, {**body, "old_uri": old, "new_uri": new}

    def _written(self, name: str, uri: str) -> tuple[int, Any]:
        status, body = self.recorded(name)
        node = self.nodes[uri]
        body |= {"uri": uri, "path": node["path"], "node_uuid": node["node_uuid"]}
        if "node" in body:
            body["node"] |= {"uri": uri, "node_uuid": node["node_uuid"]}
        return status, body
