"""models.yml: the providers of the operator, read with the line of whatever is wrong."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from a2mcp.config.models import ModelsFile
from a2mcp.errors import UnusableFile
from a2mcp.inference.apis import BUILTIN
from a2mcp.inference.rows import PLACEHOLDER, Catalogue, Cost, Key

APIS = [api.name for api in BUILTIN]

SEED = """\
providers:
  a2mcp:
    baseUrl: http://a2mcp.invalid/v1
    api: anthropic-messages
    apiKey: not-a-real-key
    models:
      - id: offline
        name: a2mcp placeholder (unreachable)
        contextWindow: 100000
"""

FULL = """\
# mine
default: local/small
providers:
  local:
    baseUrl: http://127.0.0.1:11434/v1
    api: openai-completions
    headers: {X-Team: platform, X-Key: $TEAM_KEY}
    models:
      - id: large
        reasoning: true
        input: [text, image]
        maxTokens: 8192
        cost: {input: 3, output: 15.5, cacheRead: 0.3}
        headers: {X-Model: "!print it"}
      - {id: small, api: openai-responses, baseUrl: "https://[::1]:8443/v1"}
  cloud:
    baseUrl: https://api.example.com/v1
    api: anthropic-messages
    apiKey: "!pass show cloud"
    transport: native
    models: [{id: a/b}]
"""


def put(tmp_path, text, mode=0o600):
    path = tmp_path / "models.yml"
    path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    path.chmod(mode)
    return path


def read(tmp_path, text):
    return ModelsFile(put(tmp_path, text)).read(APIS)


def refused(tmp_path, text):
    with pytest.raises(UnusableFile) as raised:
        read(tmp_path, text)
    return str(raised.value).replace(f"{tmp_path}/models.yml", "FILE")


def test_the_file_of_the_seed_holds_the_placeholder(tmp_path):
    """Source: seed, "占位模型": the file's form, which the row at run time equals."""
    found = read(tmp_path, SEED)

    assert found == Catalogue((PLACEHOLDER,), "a2mcp/offline")
    assert not found.rows[0].usable


def test_every_field_of_a_provider_and_its_models_is_read(tmp_path):
    """Ours: the names are those of the seed's host."""
    found = read(tmp_path, FULL)
    large, small, cloud = found.rows

    assert found.default == "local/small"
    assert found.warnings == ()
    assert (large.ref, large.name, large.key) == ("local/large", "large", Key())
    assert (large.reasoning, large.input, large.max_tokens) == (True, ("text", "image"), 8192)
    assert large.cost == Cost(input=3, output=15.5, cache_read=0.3)
    assert large.headers == {
        "X-Team": Key("literal", "platform"),
        "X-Key": Key("environment", "TEAM_KEY"),
        "X-Model": Key("command", "print it"),
    }
    assert large.waits
    assert (small.api, small.base_url, small.waits) == ("openai-responses", "https://[::1]:8443/v1", False)
    assert (cloud.ref, cloud.transport, cloud.waits) == ("cloud/a/b", "native", True)


def test_the_first_model_is_chosen_where_none_is_named(tmp_path):
    """Ours: one model needs no second word."""
    assert read(tmp_path, FULL.replace("default: local/small", "")).default == "local/large"


def test_no_file_holds_no_models_and_loads_no_yaml(tmp_path):
    """Ours: a daemon without models must not pay for them."""
    assert ModelsFile(tmp_path / "models.yml").read(APIS) == Catalogue()
    script = (
        "import sys; from pathlib import Path; from a2mcp.config.models import ModelsFile; "
        "ModelsFile(Path(sys.argv[1])).read([]); sys.exit('yaml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "none")], check=False).returncode == 0


@pytest.mark.parametrize("text", ["", "# nothing\n", "providers:\n", "{}", "providers: {}\n", "﻿providers: {}\n"])
def test_an_empty_file_holds_no_models(tmp_path, text):
    """Ours."""
    assert read(tmp_path, text) == Catalogue()


def test_a_file_is_read_again_only_when_it_has_changed(tmp_path):
    """Ours: a new session of the agent looks, and most often nothing has changed."""
    file = ModelsFile(put(tmp_path, SEED))
    assert file.read(APIS) is not None
    assert file.read(APIS) is None

    put(tmp_path, FULL)
    assert [row.ref for row in file.read(APIS).rows] == ["local/large", "local/small", "cloud/a/b"]
    (tmp_path / "models.yml").unlink()
    assert file.read(APIS) == Catalogue()
    assert file.read(APIS) is None


def test_a_wrong_file_is_told_of_once(tmp_path):
    """Ours: a daemon that runs goes on with the models it has."""
    file = ModelsFile(put(tmp_path, "providers: ["))
    with pytest.raises(UnusableFile):
        file.read(APIS)
    assert file.read(APIS) is None


M = "providers:\n  p:\n    api: openai-completions\n    baseUrl: http://x\n    models:\n      - "


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("providers:\n  p: [\n", 3, "is not YAML"),
        ("providers:\n\tp: 1\n", 2, "is not YAML"),
        ("a: b: c\n", 1, "is not YAML"),
        ("providers: {}\n---\nproviders: {}\n", 2, "is not YAML: but found another document"),
        (b"providers:\n  p\xff: 1\n", 2, "is not UTF-8"),
        (b"providers:\n  p: \x01\n", 2, "has a character that YAML forbids"),
        ("providers: {}\nproviders: {}\n", 2, "has 'providers' a second time"),
        ("? [a]\n: b\n", 1, "has a key that is no string"),
        ("- a\n", 1, "the file must be a mapping"),
        ("providers: 1\n", 1, "'providers' of the file must be a mapping"),
        ("providers:\n  p: 1\n", 2, "provider 'p' must be a mapping"),
        ("providers:\n  a/b:\n    x: 1\n", 3, "has a provider whose name is empty or has a slash"),
        (
            "x: !!python/object/apply:os.system [true]\n",
            1,
            "has the tag 'tag:yaml.org,2002:python/object/apply:os.system', which is not read",
        ),
        ("x: !mine 1\n", 1, "has the tag '!mine', which is not read"),
        ("x: 2026-99-99\n", 1, "has a value that cannot be read: '2026-99-99'"),
        (M + "id: 1\n", 6, "'id' of a model of 'p' must be a non-empty string"),
        (M + "name: x\n", 6, "'id' of a model of 'p' is missing"),
        (M + "id: x\n      - id: x\n", 7, "has the model 'p/x' a second time"),
        (M + "id: x\n        contextWindow: 0\n", 7, "'contextWindow' of a model of 'p' must be a positive integer"),
        (M + "id: x\n        maxTokens: yes\n", 7, "'maxTokens' of a model of 'p' must be a positive integer"),
        (M + "id: x\n        reasoning: 1\n", 7, "'reasoning' of a model of 'p' must be true or false"),
        (M + "id: x\n        input: [sound]\n", 7, "'input' of a model of 'p' may hold 'text' and 'image'"),
        (M + "id: x\n        input: text\n", 7, "'input' of a model of 'p' must be a sequence"),
        (M + "id: x\n        cost: {input: -1}\n", 7, "'input' of 'cost' of a model of 'p' must be a number"),
        (M + "id: x\n        cost: {input: .inf}\n", 7, "'input' of 'cost' of a model of 'p' must be a number"),
        (M + "id: x\n        headers: {a: 1}\n", 7, "'a' in 'headers' of a model of 'p' must be a string"),
        (
            M + "id: x\n        api: gopher\n",
            6,
            "a model of 'p' has the api 'gopher', which nobody speaks. There are: ",
        ),
        ("providers:\n  p:\n    baseUrl: http://x\n    models: [{id: x}]\n", 4, "a model of 'p' has no 'api'"),
        ("providers:\n  p:\n    api: openai-completions\n    models: [{id: x}]\n", 4, "has no 'baseUrl'"),
        ("providers:\n  p:\n    baseUrl: ftp://x\n", 3, "'baseUrl' of provider 'p' must be an address such as"),
        ("providers:\n  p:\n    baseUrl: http://u:p@x\n", 3, "'baseUrl' of provider 'p' must be an address such as"),
        ("providers:\n  p:\n    baseUrl: http://x:99999\n", 3, "'baseUrl' of provider 'p' must be an address such as"),
        ("providers:\n  p:\n    baseUrl: 'http://[::1'\n", 3, "'baseUrl' of provider 'p' must be an address such as"),
        ("providers:\n  p:\n    apiKey: 12\n", 3, "'apiKey' of provider 'p' must be a non-empty string"),
        ("default: p/x\nproviders: {}\n", 1, "'default' of the file must be one of the models here"),
        ("x: " + "[" * 40 + "]" * 40 + "\n", 1, "is nested too deeply"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, line, words):
    """Source: issue, "Bad input": broken YAML (named line), unknown provider API."""
    said = refused(tmp_path, text)

    assert said.startswith(f"FILE, line {line}: "), said
    assert words in said


def test_aliases_that_multiply_are_stopped(tmp_path):
    """Ours: a small file must not become a large tree."""
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    assert "has more in it than is read" in refused(tmp_path, bomb)


def test_a_field_that_nobody_knows_is_ignored_with_a_warning(tmp_path):
    """Source: settings: an unknown field is no reason not to start."""
    found = read(tmp_path, "providers:\n  p:\n    discovery: {type: ollama}\nfuture: 1\n")

    said = [warning.rpartition("models.yml, ")[2] for warning in found.warnings]
    assert said == [
        "line 3: provider 'p' has no models.",
        "line 3: unknown field 'discovery' of provider 'p' is ignored.",
        "line 4: unknown field 'future' of the file is ignored.",
    ]


def test_a_file_that_others_can_write_to_is_refused(tmp_path):
    """Ours: it names programs that run as the operator."""
    with pytest.raises(UnusableFile, match="can be written by every user"):
        ModelsFile(put(tmp_path, SEED, 0o666)).read(APIS)


def test_a_file_that_others_can_read_is_closed(tmp_path):
    """Ours: it holds keys."""
    path = put(tmp_path, SEED, 0o644)
    found = ModelsFile(path).read(APIS)

    assert "was open to other users (mode 0644); it is 0600 now. Replace its keys" in found.warnings[0]
    assert path.stat().st_mode & 0o777 == 0o600
