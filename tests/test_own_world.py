from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.home import Home


def test_home_of_a_test_is_its_own(own_world: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert Home.from_environment().root == own_world / ".lore"
    assert own_world.is_relative_to(tmp_path_factory.getbasetemp())
    assert "CLAUDE_CONFIG_DIR" not in os.environ


def test_no_test_leaves_this_machine() -> None:
    with socket.socket() as outside, pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        outside.connect(("192.0.2.1", 80))
    with pytest.raises(AssertionError, match="example"):
        socket.create_connection(("example.invalid", 80))


def test_loopback_stays_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass


@given(st.integers())
def test_property_tests_run_in_it(number: int) -> None:
    assert Path(os.environ["HOME"]).name.startswith("home"), number
