from __future__ import annotations

import pytest

from lorehooks.core.guidance import guidance_text, resolve_language
from lorehooks.core.settings import Settings


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_built_in_text_is_short_and_names_what_an_agent_needs(language):
    text = guidance_text(Settings(), language)
    assert len(text) < 1500
    for word in (
        "lore_get_node",
        "session_id",
        "query_id",
        "lore_search",
        "lore_update_node",
        "lore_create_node",
        "disclosure",
        "glossary",
    ):
        assert word in text


def test_the_languages_are_different_texts_and_others_get_english():
    assert guidance_text(Settings(), "en") != guidance_text(Settings(), "zh")
    assert guidance_text(Settings(), "fr") == guidance_text(Settings(), "en")


def test_a_person_can_replace_it_or_switch_it_off():
    assert guidance_text(Settings({"lifecycle.guidance.global": " Mine. "}), "zh") == "Mine."
    assert guidance_text(Settings({"lifecycle.guidance.enabled": False}), "en") == ""


@pytest.mark.parametrize(
    ("setting", "environment", "language"),
    [
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        ("zh", {}, "zh"),
        ("auto", {"LANG": "zh_CN.UTF-8"}, "zh"),
        ("auto", {"LANG": "de_DE.UTF-8"}, "en"),
        ("auto", {"LC_ALL": "zh_TW", "LANG": "en_US"}, "zh"),
        ("auto", {"LC_ALL": "C", "LC_MESSAGES": "zh_CN", "LANG": "zh_CN"}, "en"),
        ("auto", {"LC_ALL": "", "LC_MESSAGES": "zh_CN"}, "zh"),
        ("auto", {}, "en"),
    ],
)
def test_the_language_follows_the_setting_then_the_locale(setting, environment, language):
    assert resolve_language(setting, environment) == language
