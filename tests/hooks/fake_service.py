"""The real service process with a tiny app in place of the real one, so that its tests need no memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
import types
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lorehooks.core.home import Home
from lorehooks.hooks import lease, service, serviceinfo

calls = []


async def hook(request: Request) -> Response:
    event = request.path_params["event"]
    body = await request.body()
    request.app.state.activity.last_use = time.monotonic()
    calls.append(f"{request.path_params['client']}/{event}")
    if event == "hang":
        await asyncio.sleep(3600)
    return JSONResponse(
        {
            "pid": os.getpid(),
            "event": event,
            "sha256": hashlib.sha256(body).hexdigest(),
            "remaining": int(request.headers["x-lore-remaining-ms"]),
            "text": "→ 김 🟡",
        }
    )


async def mcp(request: Request) -> Response:
    message = await request.json()
    name = message.get("params", {}).get("name", message["method"])
    calls.append(f"{request.query_params['client_type']}:{name}")
    if name.endswith("boom"):
        return Response(status_code=500)
    if name.endswith("slow"):
        await asyncio.sleep(3600)
    result = {"content": [{"type": "text", "text": f"{name} by {os.getpid()}\nsecond line"}], "isError": False}
    return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})


async def alive(request: Request) -> Response:
    calls.append("alive")
    return Response(status_code=204)


async def seen(request: Request) -> Response:
    return JSONResponse({"calls": calls, "environment": dict(os.environ), "session": os.getsid(0)})


async def health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def create_app(home: Home, reach: object = None) -> Starlette:
    app = Starlette(
        routes=[
            Route("/hooks/v1/alive", alive, methods=["POST"]),
            Route("/hooks/v1/{client}/{event}", hook, methods=["POST"]),
            Route("/api/mcp", mcp, methods=["POST"]),
            Route("/api/health", health),
            Route("/seen", seen),
        ]
    )
    app.state.activity = types.SimpleNamespace(last_use=time.monotonic())
    return app


if __name__ == "__main__":
    stand_in = types.ModuleType("lorehooks.hooks.app")
    stand_in.create_app = create_app
    sys.modules["lorehooks.hooks.app"] = stand_in
    if "LORE_FAKE_PAUSE" in os.environ:  # look after the home more often than a real service has to
        lease.RENEW = float(os.environ["LORE_FAKE_PAUSE"])
    if "LORE_FAKE_RELEASE" in os.environ:  # a file that says which release is installed
        serviceinfo.installed_version = Path(os.environ["LORE_FAKE_RELEASE"]).read_text
    sys.exit(service.main())
