from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.secrets import find_secrets, mask, strip_private

SECRETS = [
    ("key AKIAAAAAAAAAAAAAAAAA and", "AKIAAAAAAAAAAAAAAAAA"),
    ("ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("sk-test-000000000000", "sk-test-000000000000"),
    ("使用密钥sk-proj-abc123DEF456ghi789JKL000调用", "abc123DEF456ghi789JKL000"),
    ("glpat-abcdefghij0123456789", "abcdefghij0123456789"),
    ("xoxb-123456789012-abcdefghij", "123456789012"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "bPxRfiCYEXAMPLEKEY"),
    ("password: Tr0ub4dor&3", "Tr0ub4dor&3"),
    ("PASSWORD=20248391", "20248391"),
    ("密码是Hunter2024x", "Hunter2024x"),
    ("密码：S3cret!2024x", "S3cret!2024x"),
    ("api key: 8f14e45fceea167a5a36dedd4bea2543", "8f14e45fceea167a5a36dedd4bea2543"),
    ("Authorization: Bearer 9f8e7d6c5b4a39281706f5e4d3c2b1a0", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"),
    ('{"api_key": "Zx9Qw8Er7Ty6Ui5O"}', "Zx9Qw8Er7Ty6Ui5O"),
    ("apiKey: 'q8w7e6r5t4y3u2i1'", "q8w7e6r5t4y3u2i1"),
    ("postgres://app:hG7s92kLq@db.example.com/x", "hG7s92kLq"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----", "MIIEabc"),
    ("-----BEGIN PRIVATE KEY-----\nMIIEcut", "MIIEcut"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "dozjgNryP4J3jVmNHl0w5N"),
]
HARMLESS = [
    "No API key in the build",
    "apiKey: env.KEY",
    "apiKey: config.apiKey2",
    "token: str",
    "token = get_token()",
    "token = getToken",
    "token: 12345678",
    "max_tokens=16384000",
    "tokenizer: cl100k_base",
    "token: 2024-05-13T10:00:00Z",
    "The token is TokenType.ACCESS",
    "password: required",
    "password: argon2id",
    "password: PasswordField",
    "password: <your password 123>",
    'password: "${DB_PASS_1}"',
    "password = os.environ['DB_PASSWORD_2']",
    "Never put a password into the repository; passwords live in 1Password",
    "passwords are hashed with bcrypt12",
    "密码是保存在钥匙串里面的不要写下来",
    "密码：至少8位，含数字",
    "secret: SecretStr",
    "secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbC123",
    "secret: /run/secrets/db_pw2_a1b2",
    "API key is stored at https://vault.example/a1b2c3d4e5",
    "postgres://postgres:postgres@localhost:5432/app",
    "postgres://user:password@localhost/db",
    "https://user:$TOKEN@host/",
    "lm_studio_v2_configuration_notes",
    "the sort key: created_at_2024 and the foreign key: orders2.customer_id3",
    "keyboard: qwerty123abc4d5, monkey: banana12345",
    "commit 4f3a9c2e1b fixed it",
    "risk-assessment-2024-05-13-final-version-2",
]


@pytest.mark.parametrize(("text", "value"), SECRETS)
def test_a_key_or_password_is_found_and_masked(text: str, value: str) -> None:
    assert find_secrets(text)
    assert value not in mask(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_prose_and_code_about_secrets_pass_unchanged(text: str) -> None:
    assert mask(text) == text


def test_masking_keeps_the_words_around_a_secret() -> None:
    text = "before AKIAAAAAAAAAAAAAAAAA between ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa after"
    assert mask(text) == "before [aws key: AKIA…] between [github token: ghp_…] after"


@given(st.lists(st.sampled_from([text for text, _ in SECRETS] + HARMLESS) | st.text()).map(" ".join))
def test_secrets_stand_apart_in_order_and_nothing_of_them_is_left_after_masking(text: str) -> None:
    found = find_secrets(text)
    assert all(one.end <= two.start for one, two in itertools.pairwise(found))
    assert all(0 <= secret.start < secret.end <= len(text) for secret in found)
    masked = mask(text)
    assert all(text[secret.start : secret.end] not in masked for secret in found)


@pytest.mark.parametrize(
    "text",
    ["a" * 300_000, "sk-" * 100_000, "eyJ-" * 80_000, "token" + " " * 300_000, "-----BEGIN " * 30_000, "token=" * 50_000,
     "://a:" * 60_000, "password:a1b2c3d4e5 " * 15_000, "secret_access_" * 20_000],
    ids=["letters", "prefixes", "tokens", "spaces", "blocks", "names", "addresses", "passwords", "joined"],
)  # fmt: skip
def test_a_large_text_is_read_in_one_pass(text: str) -> None:
    # Quadratic reading would take minutes to hours here, so the test would not end at all.
    find_secrets(text)


def test_private_passages_are_taken_out_even_when_never_closed() -> None:
    assert strip_private("use <private>sk-1</private> now") == "use  now"
    assert strip_private("use <PRIVATE>sk-1") == "use "
    assert strip_private("a < b") == "a < b"
