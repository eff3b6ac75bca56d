"""What the official conformance suite requires, asked for without it: content, resources, prompts, completion, hints."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fixture_library import TEXT
from fixture_tools import PNG, SCHEMA_2020_12, WAV
from harness import running
from standard_client import Standard, fixture_argv, legacy, modern

EITHER_ERA = pytest.mark.parametrize("ask", [legacy, modern])


def said(mcp: Standard, ask: Any, method: str, /, **params: Any) -> Any:
    return mcp.send(*ask(method, params)).result


def called(mcp: Standard, ask: Any, tool: str) -> list[dict[str, Any]]:
    result = said(mcp, ask, "tools/call", name=tool, arguments={})
    assert not result.get("isError")
    return list(result["content"])


@EITHER_ERA
def test_every_tool_has_what_clients_ask_of_one(mcp: Standard, ask: Any) -> None:
    """Source: tools-list; json-schema-2020-12."""
    tools = {tool["name"]: tool for tool in said(mcp, ask, "tools/list")["tools"]}

    assert {"bash", "read", "test_simple_text"} <= tools.keys()
    for name, tool in tools.items():
        assert re.fullmatch(r"[A-Za-z0-9_./-]{1,64}", name)
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert tool["annotations"].keys() == {
            "title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"
        }  # fmt: skip
    assert tools["json_schema_2020_12_tool"]["inputSchema"] == SCHEMA_2020_12
    assert tools["test_custom_header"]["inputSchema"]["properties"]["region"]["x-mcp-header"] == "Region"


@EITHER_ERA
def test_each_kind_of_content_arrives_as_it_is(mcp: Standard, ask: Any) -> None:
    """Source: tools-call-simple-text, -image, -audio, -embedded-resource, -mixed-content."""
    text = {"type": "text", "text": "This is a simple text response for testing."}
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    embedded = {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    }

    assert called(mcp, ask, "test_simple_text") == [text]
    assert called(mcp, ask, "test_image_content") == [image]
    assert called(mcp, ask, "test_audio_content") == [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]
    assert called(mcp, ask, "test_embedded_resource") == [{"type": "resource", "resource": embedded}]
    assert [block["type"] for block in called(mcp, ask, "test_multiple_content_types")] == ["text", "image", "resource"]
    assert called(mcp, ask, "link")[0]["type"] == "resource_link"


def test_old_versions_get_text_for_the_kinds_they_do_not_know(mcp: Standard) -> None:
    """Source: ours; audio came with 2025-03-26, links and structured results with 2025-06-18."""

    def kind(tool: str, version: str) -> str:
        headers = {"MCP-Protocol-Version": version}
        return str(mcp.legacy("tools/call", {"name": tool}, headers).result["content"][0]["type"])

    assert [kind("test_audio_content", each) for each in ("2024-11-05", "2025-03-26")] == ["text", "audio"]
    assert [kind("link", each) for each in ("2025-03-26", "2025-06-18")] == ["text", "resource_link"]
    old = mcp.legacy("tools/call", {"name": "structured"}, {"MCP-Protocol-Version": "2025-03-26"}).result
    assert "structuredContent" not in old
    assert mcp.call("structured").result["structuredContent"] == {"answer": 42}


@EITHER_ERA
def test_an_error_of_a_tool_is_told_to_the_model(mcp: Standard, ask: Any) -> None:
    """Source: tools-call-error."""
    result = said(mcp, ask, "tools/call", name="test_error_handling")

    assert result["isError"] is True
    assert result["content"][0]["text"] == "This tool intentionally returns an error for testing"


@EITHER_ERA
def test_resources_are_listed_and_read(mcp: Standard, ask: Any) -> None:
    """Source: resources-list, -read-text, -read-binary, -templates-read."""
    listed = {each["uri"]: each for each in said(mcp, ask, "resources/list")["resources"]}
    templates = [each["uriTemplate"] for each in said(mcp, ask, "resources/templates/list")["resourceTemplates"]]

    assert listed["test://static-text"]["mimeType"] == "text/plain"
    assert all(each["name"] and each["description"] for each in listed.values())
    assert "test://template/{id}/data" in templates
    [text] = said(mcp, ask, "resources/read", uri="test://static-text")["contents"]
    assert text == {"uri": "test://static-text", "mimeType": "text/plain", "text": TEXT}
    [binary] = said(mcp, ask, "resources/read", uri="test://static-binary")["contents"]
    assert binary == {"uri": "test://static-binary", "mimeType": "image/png", "blob": PNG}
    [data] = said(mcp, ask, "resources/read", uri="test://template/123/data")["contents"]
    assert json.loads(data["text"])["id"] == "123"


def test_a_legacy_client_may_subscribe(mcp: Standard) -> None:
    """Source: resources-subscribe, -unsubscribe."""
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert mcp.legacy(method, {"uri": "test://watched-resource"}).result == {}
        assert mcp.legacy(method, {}).error["code"] == -32602


@EITHER_ERA
def test_prompts_are_listed_and_filled_in(mcp: Standard, ask: Any) -> None:
    """Source: prompts-list, prompts-get-*."""

    def filled(name: str, **arguments: str) -> list[Any]:
        return [each["content"] for each in said(mcp, ask, "prompts/get", name=name, arguments=arguments)["messages"]]

    prompts = {each["name"]: each for each in said(mcp, ask, "prompts/list")["prompts"]}
    assert [each["name"] for each in prompts["test_prompt_with_arguments"]["arguments"]] == ["arg1", "arg2"]
    assert filled("test_simple_prompt")[0]["text"] == "This is a simple prompt for testing."
    [filled_in] = filled("test_prompt_with_arguments", arg1="a", arg2="b")
    assert filled_in["text"] == "Prompt with arguments: arg1='a', arg2='b'"
    embedded = filled("test_prompt_with_embedded_resource", resourceUri="test://x")[0]
    assert embedded["resource"]["uri"] == "test://x"
    assert filled("test_prompt_with_image")[0]["mimeType"] == "image/png"


@EITHER_ERA
@pytest.mark.parametrize(
    "params",
    [
        {"name": "no-such"},
        {"name": 7},
        {},
        {"name": "test_prompt_with_arguments"},
        {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a"}},
        {"name": "test_prompt_with_arguments", "arguments": {"arg1": 1, "arg2": "b"}},
        {"name": "test_simple_prompt", "arguments": []},
    ],
)
def test_a_prompt_that_cannot_be_filled_in_is_invalid_params(mcp: Standard, ask: Any, params: dict[str, Any]) -> None:
    """Source: specification, "prompts"."""
    message, headers = ask("prompts/get", params)
    headers.setdefault("Mcp-Name", "7")
    named = ask is legacy or isinstance(params.get("name"), str)

    assert mcp.send(message, headers).error["code"] == (-32602 if named else -32020)


@EITHER_ERA
def test_completion_proposes_values(mcp: Standard, ask: Any) -> None:
    """Source: completion-complete."""
    prompt = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    template = {"type": "ref/resource", "uri": "test://template/{id}/data"}
    argument = {"name": "arg1", "value": "par"}
    for ref in (prompt, template):
        found = said(mcp, ask, "completion/complete", ref=ref, argument=argument)["completion"]
        assert found == {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}
    for ref, value in (
        ({"type": "ref/prompt", "name": "no"}, argument),
        (prompt, {"name": "arg1"}),
        (prompt, "x"),
        (7, argument),
    ):
        answer = mcp.send(*ask("completion/complete", {"ref": ref, "argument": value}))
        assert answer.error["code"] == -32602


def test_what_may_be_kept_says_for_how_long_and_for_whom(mcp: Standard) -> None:
    """Source: caching."""
    reads = ("resources/read", {"uri": "test://static-text"})
    lists = [(f"{name}/list", {}) for name in ("tools", "prompts", "resources", "resources/templates")]
    for method, params in (("server/discover", {}), reads, *lists):
        result = mcp.modern(method, params).result
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] == "private"


def test_three_at_once_are_each_answered(mcp: Standard) -> None:
    """Source: server-sse-multiple-streams."""

    def tools(_: int) -> int:
        client = Standard(mcp.daemon)
        return len(client.modern("tools/list").result["tools"]) + len(client.legacy("tools/list").result["tools"])

    with ThreadPoolExecutor(3) as pool:
        assert len(set(pool.map(tools, range(3)))) == 1


@EITHER_ERA
def test_lists_come_in_pages(tmp_path: Any, ask: Any) -> None:
    """Source: specification, "pagination"."""
    with running(tmp_path / "home", argv=fixture_argv("PAGE=2")) as daemon:
        client = Standard(daemon)
        names: list[str] = []
        cursor: str | None = None
        pages = 0
        while pages == 0 or cursor is not None:
            page = said(client, ask, "prompts/list", **({} if cursor is None else {"cursor": cursor}))
            assert 1 <= len(page["prompts"]) <= 2
            names += [each["name"] for each in page["prompts"]]
            cursor = page.get("nextCursor")
            pages += 1
        assert {"test_simple_prompt", "test_input_required_result_prompt"} <= set(names)
        assert len(set(names)) == len(names) > 4
        assert pages == (len(names) + 1) // 2
