"""A Lore server without an embedding model: what these tests look at does not need one."""

from __future__ import annotations

import pytest


@pytest.fixture
def api(lore_server):
    return lore_server()


@pytest.fixture
def make(api):
    """Create a memory by its address; answers its uuid."""

    def create(uri, content="Some fact.", **fields):
        body = {"uri": uri, "content": content, "disclosure": "When it fits", "glossary": ["word"], **fields}
        answer = api.post("/api/browse/node", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["node_uuid"]

    return create


@pytest.fixture
def close_database(api):
    """Take the database away, on the event loop and once nothing reads it, as only the service itself would."""

    def close():
        backend = api.app.state.parts.backend

        async def on_the_loop():
            await backend.live.complete.wait()
            await api.app.state.parts.ready.close()
            backend.store.close()

        api.portal.call(on_the_loop)

    return close
