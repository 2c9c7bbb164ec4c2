from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.repository import name_in_url, project_key, repository_of


def git(folder, *arguments):
    folder.mkdir(parents=True, exist_ok=True)
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *who, *arguments], cwd=folder, env=clean, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@github.com:acme/checkout-api.git", "checkout-api"),
        ("github.com:acme/checkout-api", "checkout-api"),
        ("git@host:checkout-api.git", "checkout-api"),
        ("ssh://git@host:2222/acme/checkout-api.git/", "checkout-api"),
        ("https://user:pw@host/acme/next.js.git", "next.js"),
        ("https://host/acme/next.js", "next.js"),
        ("https://host/a/b.git?x=1#frag", "b"),
        ("https://host/acme/checkout-api///", "checkout-api"),
        ("file:///srv/git/shop.git", "shop"),
        ("/srv/git/shop", "shop"),
        ("../shop.git", "shop"),
        ("/srv/shop/.git", "shop"),
        ("C:\\repos\\shop.git", "shop"),
        ("C:/repos/shop", "shop"),
        ("git@host:组/部署.git", "部署"),
        ("~/shop", "shop"),
        ("https://host", None),
        ("", None),
        ("..", None),
    ],
)
def test_every_form_of_address_gives_the_name(url, name):
    assert name_in_url(url) == name


@given(st.text(max_size=60))
def test_no_address_is_too_strange(url):
    name = name_in_url(url)
    assert name is None or name


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("checkout-api", "checkout_api"),
        ("next.js", "next_js"),
        ("Checkout API", "checkout_api"),
        ("CheckoutApi", "checkout_api"),
        ("--x__y--", "x_y"),
        ("部署", ""),
    ],
)
def test_a_project_is_spelt_as_memory_spells_paths(name, key):
    assert project_key(name) == key


def test_origin_names_the_repository_from_any_folder_below(tmp_path):
    top = git(tmp_path / "work copy", "init", "-q")
    git(top, "remote", "add", "backup", "git@host:acme/other.git")
    git(top, "remote", "add", "origin", "git@host:acme/checkout-api.git")
    below = top / "src" / "deep"
    below.mkdir(parents=True)
    assert repository_of(str(below)) == ("deep", "checkout-api")


def test_without_origin_the_first_remote_names_it_and_without_remotes_the_folder(tmp_path):
    top = git(tmp_path / "shop", "init", "-q")
    assert repository_of(str(top)) == ("shop", "shop")
    git(top, "remote", "add", "upstream", "https://host/acme/next.js")
    git(top, "remote", "add", "zeta", "https://host/acme/zeta")
    assert repository_of(str(top)) == ("shop", "next.js")


def test_a_linked_worktree_belongs_to_its_repository(tmp_path):
    top = git(tmp_path / "shop", "init", "-q")
    git(top, "commit", "-q", "--allow-empty", "-m", "x")
    git(top, "worktree", "add", "-q", str(tmp_path / "fix-it"))
    assert repository_of(str(tmp_path / "fix-it")) == ("fix-it", "shop")
    git(top, "remote", "add", "origin", "ssh://git@host/acme/checkout-api")
    assert repository_of(str(tmp_path / "fix-it")) == ("fix-it", "checkout-api")


def test_a_worktree_of_a_bare_repository_is_named_after_it(tmp_path):
    seed = git(tmp_path / "seed", "init", "-q")
    git(seed, "commit", "-q", "--allow-empty", "-m", "x")
    bare = git(tmp_path / "shop.git", "init", "-q", "--bare")
    git(seed, "push", "-q", str(bare), "HEAD:refs/heads/main")
    git(bare, "worktree", "add", "-q", str(tmp_path / "tree"), "main")
    assert repository_of(str(tmp_path / "tree")) == ("tree", "shop")


def test_a_submodule_is_a_project_of_its_own(tmp_path):
    part = git(tmp_path / "payments", "init", "-q")
    git(part, "commit", "-q", "--allow-empty", "-m", "x")
    top = git(tmp_path / "shop", "init", "-q")
    git(top, "submodule", "add", "-q", str(part), "vendor/pay")
    assert repository_of(str(top / "vendor" / "pay")) == ("pay", "payments")


def test_dotfiles_in_the_home_folder_name_no_project(tmp_path):
    home = git(tmp_path / "ann", "init", "-q")
    notes = home / "notes"
    notes.mkdir()
    assert repository_of(str(notes), home=str(home)) == ("notes", None)
    assert repository_of(str(git(notes / "shop", "init", "-q")), home=str(home)) == ("shop", "shop")


@pytest.mark.parametrize(
    "config", [b"", b"\xff\xfe[remote", b'[remote "origin"]\n', b'[remote "origin"]\nurl\n', b"[[[[\n" * 9000]
)
def test_a_broken_configuration_falls_back_to_the_folder(tmp_path, config):
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / ".git" / "config").write_bytes(config)
    assert repository_of(str(tmp_path / "shop")) == ("shop", "shop")


def test_quoted_and_commented_addresses_are_read_as_git_reads_them(tmp_path):
    git_folder = tmp_path / "shop" / ".git"
    git_folder.mkdir(parents=True)
    (git_folder / "config").write_text(
        '[core]\n\turl = no\n[remote "origin"] ; main\n\tURL = "https://h/a/web shop.git" # x\n\turl = https://h/a/second\n'
    )
    assert repository_of(str(tmp_path / "shop")) == ("shop", "web shop")


def test_a_git_file_that_points_nowhere_falls_back_to_the_folder(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / ".git").write_text("gitdir: ../gone\n")
    assert repository_of(str(tmp_path / "shop")) == ("shop", "shop")
    (tmp_path / "shop" / ".git").write_text("hello")
    assert repository_of(str(tmp_path / "shop")) == ("shop", "shop")


def test_a_pipe_in_place_of_the_configuration_does_not_hold_the_session(tmp_path):
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    os.mkfifo(tmp_path / "shop" / ".git" / "config")
    assert repository_of(str(tmp_path / "shop")) == ("shop", "shop")


@pytest.mark.parametrize("cwd", [None, "", "/", "/nowhere/at/all", "tests", "/a\x00b", "a\x00b", "/" + "x" * 5000])
def test_no_folder_is_too_strange(cwd):
    _folder, repository = repository_of(cwd)
    assert repository is None
