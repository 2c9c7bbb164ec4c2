from __future__ import annotations

from lorehooks.core.store import Store
from lorehooks.core.vector_cache import SqliteVectorCache

ROWS = {number.to_bytes(16, "big"): bytes([number % 256]) * 512 for number in range(3000)}


def test_vectors_come_back_for_their_profile_however_many_are_asked_for(store: Store) -> None:
    cache = SqliteVectorCache(store.database)
    cache.put_many("small", ROWS)
    assert cache.get_many("small", [*ROWS, b"unknown"]) == ROWS
    assert cache.get_many("other", list(ROWS)) == {}
    assert cache.get_many("small", []) == {}
    cache.put_many("small", {})


def test_a_vector_that_is_put_again_is_replaced(store: Store) -> None:
    cache = SqliteVectorCache(store.database)
    cache.put_many("small", {b"k": b"old"})
    cache.put_many("small", {b"k": b"new"})
    assert cache.get_many("small", [b"k"]) == {b"k": b"new"}


def test_pruning_keeps_what_is_wanted_and_drops_other_profiles(store: Store) -> None:
    cache = SqliteVectorCache(store.database)
    cache.put_many("old", {b"a": b"1"})
    cache.put_many("small", ROWS)
    keep = list(ROWS)[:10]
    assert cache.prune("small", keep) == len(ROWS) - 10 + 1
    assert cache.get_many("small", list(ROWS)).keys() == set(keep)
    assert cache.get_many("old", [b"a"]) == {}


def test_a_cache_that_cannot_be_used_costs_time_and_no_error(store: Store) -> None:
    cache = SqliteVectorCache(store.database)
    store.close()
    cache.put_many("small", ROWS)
    assert cache.get_many("small", list(ROWS)) == {}
    assert cache.prune("small", []) == 0
