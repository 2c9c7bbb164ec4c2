"""Where our answers to recorded requests are meant to differ, and why. docs/compatibility.md says the same to people."""

from __future__ import annotations

HONEST = "honest codes: a broken request is the client's error, and says which"
NO_ENDPOINT = "recall needs no endpoint here, so it works where the public server has none"
GRAMMAR = "domains and priorities are held to the grammar, as paths are"
NOT_SERVED = "no client but the public console calls it"
PAGES = "the public console's pages are not served"
CAP = "fixed boot nodes do not count against the cap of priority 0, and a priority that is left out is 2"
PARENT = "a move needs a parent that exists, or the memory would hang under none"
FAIL_OPEN = "a prompt goes on without memory and says why in `meta`"
BOOT_EXISTS = "the fixed boot nodes exist from the start, empty"
TWO_MORE = "ZCode and dsh have boot nodes too"
GENERIC = "a runtime that is not known gets the texts in a generic form"
FROZEN = "a session that asks again gets the same bytes, startup recall included, so that prompt caches hold"
NAME = "the runtime is asked for by its name as people write it"
SIGNAL_ROWS = "rows of single signals are not kept; cues and matched_on tell the same"
NULLS = "a number that is not known is null and not 0"
OPTIONAL = "views by a model are optional, so setup is complete without them"
MORE_STATS = "statistics by memory and by view are filled"
REBUILD = "a rebuild makes every view again and says so"
OPEN_MCP = "MCP over JSON asks for no more than it needs of a client"

STATUS = {
    "005_fresh_lifecycle_prompt_unconfigured": (200, NO_ENDPOINT),
    "006_fresh_recall_unconfigured": (200, NO_ENDPOINT),
    "007_fresh_search_unconfigured": (200, NO_ENDPOINT),
    "025_boot_draft_no_llm_409": (404, NOT_SERVED),
    "053_create_duplicate_path_500": (409, HONEST),
    "054_create_priority0_budget_422": (200, CAP),
    "055_create_no_priority_defaults_to_0_422": (200, CAP),
    "058_create_invalid_json": (400, HONEST),
    "060_create_domain_with_odd_chars": (422, GRAMMAR),
    "061_create_negative_priority": (422, GRAMMAR),
    "062_create_nonnumeric_priority": (422, HONEST),
    "070_delete_odd_domain_node": (404, GRAMMAR),
    "071_delete_no_body": (404, GRAMMAR),
    "11_lifecycle_invalid_json": (400, HONEST),
    "18_glossary_add_missing_fields": (422, HONEST),
    "18_glossary_add_unknown_uuid": (404, HONEST),
    "19_update_priority0_budget_422": (200, CAP),
    "20_move_back": (404, PARENT),
    "20_move_missing_source_422": (404, HONEST),
    "20_move_parent_missing_is_allowed": (422, PARENT),
    "22_jobs": (404, NOT_SERVED),
    "22_orphans": (404, NOT_SERVED),
    "22_review_groups": (404, NOT_SERVED),
    "23_root_page": (404, PAGES),
    "24_auth_page_no_token": (401, PAGES),
    "24_auth_domains_lowercase_bearer": (200, "`Bearer` is read in any case, as HTTP says"),
    "30_mcp_accept_json_only": (200, OPEN_MCP),
    "30_mcp_batch": (400, "batches left the MCP standard"),
    "50_stub_down_prompt": (200, NO_ENDPOINT),
    "50_stub_down_recall": (200, NO_ENDPOINT),
    "50_stub_down_search": (200, NO_ENDPOINT),
    "50_stub_down_settings_test": (200, NO_ENDPOINT),
    "51_db_down_boot": (503, HONEST),
    "51_db_down_prompt": (200, FAIL_OPEN),
    "51_db_down_session_start": (200, FAIL_OPEN),
}

SHAPE = {
    r"(10_session_start_cursor|11_lifecycle_unknown_family): meta\.reason": GENERIC,
    r"10_session_start_opencode_second: meta\.startup_gated": FROZEN,
    r"14_recall_debug_\w+: \w+_hits\[\]\.(\w+_hit|keyword|view_type|weight|llm_refined|llm_model)": SIGNAL_ROWS,
    r"14_recall_stats: .*(avg_\w+|used_p\d+_score|unused_shown_p75_score|separation_gap): null": NULLS,
    r"14_recall_(debug|stats)\w*: runtime\.memory_views\.llm\.max_docs_per_run": "views by a model have no such limit",
    r"30_mcp_(401_ok|tools_list\w*): result\.tools\[\]\.(inputSchema\.\$schema|execution)": OPEN_MCP,
    r"30_mcp_initialize\w*: result\.instructions": "a runtime with hooks gets the guidance there; only mcp gets instructions",
    r"22_setup_flow: next_step": OPTIONAL,
}
"""Expressions for `exchange: field`, for fields that are missing or null."""

MCP_ANSWERS = {"31_mcp_create_priority0_blocked": CAP}
"""Tool calls that fail on one server only."""

NULLABLE = ("disclosure", "content", "snippet", "client_type", "session_id", "before_snapshot", "after_snapshot")
"""Fields that the contract lets be null."""

VALUES = {
    r"001_fresh_boot_no_client \.(loaded|failed|core_memories|nodes\[\d\]\.(state|priority))": BOOT_EXISTS,
    r"002_fresh_domains ": BOOT_EXISTS,
    r"(003_fresh|22)_setup_flow \.boot\.": TWO_MORE,
    r"003_fresh_setup_flow \.next_step": NO_ENDPOINT,
    r"22_setup_flow \.(complete|next_step)": OPTIONAL,
    r"08_boot_admin \.": TWO_MORE,
    r"\w+ \.(runtime\.core_memory_uris|boot_uris)": TWO_MORE,
    r"\w+ \.meta\.queries\[0\]": NAME,
    r"(10_session_start_cursor|11_lifecycle_unknown_family) \.(host_output|has_output)": GENERIC,
    r"17_search_post_limit0 \.meta\.content_limit": "a content_limit of 0 brings no contents",
    r"14_recall_stats \.(by_path|by_view_type|noisy_nodes)": MORE_STATS,
    r"16_usage_post_valid \.updated_count": "both memories were shown here, one there",
    r"50_stub_up_rebuild_full \.": REBUILD,
    r"\w+ \.suppressed": "what recall weighs is its own; the counts follow from it",
    r"20_node_get_old_parent_after_move \.children": "a moved memory is listed under its new parent",
    r"010_settings_test_embedding \.(model|detail)": "the model that comes with the package is tried",
    r"22_history \.": "the latest events are shown, not the oldest",
}
"""Expressions for `exchange .place`, for values that differ."""
