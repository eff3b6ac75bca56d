"""The documents say what the code does: nothing is missing from the reference, links resolve, the tutorial runs."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from falcon import inspect as routes_of
from harness import ROOT, Daemon, running

from a2mcp import errors, reference
from a2mcp.audit.record import Record
from a2mcp.cli.main import VERBS
from a2mcp.config import paths
from a2mcp.config.endpoint import Endpoint
from a2mcp.config.schema import field_names
from a2mcp.http import facts, ports, routes
from a2mcp.http.events import Asked
from a2mcp.http.metrics import FAMILIES
from a2mcp.http.operator import make_operator_app
from a2mcp.http.server import channel, parser, server
from a2mcp.library import filespace, prompts, resources
from a2mcp.library.resources import Views
from a2mcp.observe.event import Event
from a2mcp.obtain.installs import Install
from a2mcp.obtain.pins import Given
from a2mcp.policy.approval import ApprovalSettings
from a2mcp.policy.grants import Grant
from a2mcp.protocol import bulk, methods
from a2mcp.reference.tools import EXAMPLES, every_tool
from a2mcp.tools.arguments import decode
from actors.pool import MOST_WORKERS

DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
BY_THE_BENCHMARK = "docs/benchmarks"
"""Made by ``make bench``; not every checkout has it."""

GREETING = re.compile(r"a2mcp listening on http://127\.0\.0\.1:\d+/ \(token \S{6}…\)")
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w+)(?: (run|output))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", path.read_text("utf-8"))


def coded(text: str, word: str) -> bool:
    """Whether a page has this word set as code, alone or beside others."""
    return f"`{word}`" in text


# --- the generated pages -----------------------------------------------------------------------------------------


def test_the_generated_pages_are_what_the_code_says_now():
    """Ours: `make docs` was run after the last change."""
    assert reference.stale(REFERENCE) == []


def test_a_page_that_is_out_of_date_is_found_and_written_anew(tmp_path):
    """Ours: `--check` is worth something only if it can fail."""
    assert {path.name for path in reference.write(tmp_path)} == {"tools.md", "settings.md", "cli.md", "errors.md"}
    (tmp_path / "cli.md").write_text("old")
    check = [sys.executable, "-m", "a2mcp.reference", str(tmp_path), "--check"]

    refused = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "cli.md is out of date" in refused.stderr
    reference.write(tmp_path)
    assert subprocess.run(check, cwd=ROOT, capture_output=True, check=False).returncode == 0


# --- nothing is missing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", every_tool(), ids=lambda tool: tool.spec.name)
def test_every_tool_and_argument_is_in_the_reference(tool):
    """STYLE 14: a tool that is missing from the reference fails the suite."""
    section = page("tools.md").split(f"\n## {tool.spec.name}\n")[1].split("\n## ")[0]

    assert tool.spec.description in section
    assert all(coded(section, name) for name in tool.spec.input_schema["properties"])


@pytest.mark.parametrize("tool", every_tool(), ids=lambda tool: tool.spec.name)
def test_every_example_of_a_tool_is_taken_by_it(tool):
    """Ours: an example that is refused teaches the wrong thing."""
    assert EXAMPLES[tool.spec.name]
    for example in EXAMPLES[tool.spec.name]:
        assert isinstance(decode(tool.params, msgspec.json.encode(example)), tool.params)


@pytest.mark.parametrize("name", field_names())
def test_every_setting_is_in_the_reference(name):
    """STYLE 14."""
    assert coded(page("settings.md"), name)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_in_the_reference(verb):
    """STYLE 14."""
    assert f"\n## {verb}\n" in page("cli.md")


def test_every_error_is_in_the_reference_with_its_code_and_exit_code():
    """STYLE 14: one tree of errors, one page."""
    rows = {row.split("|")[1].strip(): row for row in page("errors.md").splitlines() if row.startswith("|")}
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.A2mcpError)]

    for kind in set(kinds) - {errors.A2mcpError}:
        row = rows[f"`{kind.__name__}`"]
        if issubclass(kind, errors.RequestError):
            assert f"| {kind.status} | `{kind.code}` |" in row
        if kind.exit_code != 1:
            assert f"| {kind.exit_code} |" in row
            assert f"| {kind.exit_code} | " in page("cli.md")


def test_every_resource_and_prompt_is_in_the_reference():
    """STYLE 14: what can be read and said is an interface."""
    views = Views(
        status=dict, sessions=list, agents=list, agent=lambda *_: None, job=lambda _: None, audit=Path(), secret=str
    )
    shelf = resources.Resources(views, files=True)
    (prompt,) = prompts.Prompts(prompts.Facts(tools=list, approval=ApprovalSettings())).prompts()
    names = [*(each.uri for each in shelf.resources()), *(each.uri_template for each in shelf.templates())]
    names += [prompt.name, *(argument.name for argument in prompt.arguments)]

    assert [name for name in names if not coded(page("resources.md"), name)] == []
    for words in (f"last {resources.TAIL} ", f"at most {filespace.MOST >> 20} MiB", f"{filespace.ENTRIES} entries"):
        assert words in page("resources.md")


@pytest.mark.parametrize("method", sorted({*methods._LEGACY, *methods._MODERN}))
def test_every_method_of_the_standard_dialect_is_in_the_wire_contract(method):
    """STYLE 14."""
    contract = page("wire-contract.md").split("## The standard dialect")[1]

    assert coded(contract, method) or (method.startswith("notifications/") and coded(contract, "notifications/…"))


def test_every_route_is_in_the_wire_contract():
    """STYLE 14: the table of routes has no path that the page does not have."""
    contract = page("wire-contract.md")

    for route in (*routes.RESERVED, routes.BRIDGE):
        row = next(line for line in contract.splitlines() if line.startswith(f"| `{route.path}`"))
        if route.methods != routes.ANY_METHOD:
            assert all(method in row for method in route.methods)


def test_every_route_of_the_operator_is_in_its_page():
    """STYLE 14."""
    app = make_operator_app(None)  # type: ignore[arg-type]

    for route in routes_of.inspect_routes(app):
        for method in (found.method for found in route.methods if not found.internal):
            assert f"| `{method} {route.path}` |" in page("operator-channel.md")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Record, "audit-records.md"),
        (Endpoint, "files.md"),
        (ports.Status, "operator-channel.md"),
        (ports.AuditFacts, "operator-channel.md"),
        (facts.WaitingApproval, "operator-channel.md"),
        (facts.JobFacts, "operator-channel.md"),
        (ports.TunnelFacts, "operator-channel.md"),
        (ports.ProgramFacts, "operator-channel.md"),
        (facts.HostLlmFacts, "operator-channel.md"),
        (facts.Answered, "operator-channel.md"),
        (facts.CallFacts, "operator-channel.md"),
        (facts.SessionFacts, "operator-channel.md"),
        (facts.AuditCall, "operator-channel.md"),
        (facts.ShareFacts, "operator-channel.md"),
        (facts.Finding, "operator-channel.md"),
        (facts.Invitation, "operator-channel.md"),
        (facts.JobOutput, "operator-channel.md"),
        (facts.Search, "operator-channel.md"),
        (Asked, "operator-channel.md"),
        (Event, "operator-channel.md"),
        (Grant, "operator-channel.md"),
        (Install, "files.md"),
        (Given, "files.md"),
    ],
)
def test_every_field_that_a_program_reads_is_in_the_reference(kind, name):
    """STYLE 14: records, the endpoint file and the operator's answers are interfaces."""
    assert [field for field in msgspec.structs.fields(kind) if not coded(page(name), field.encode_name)] == []


@pytest.mark.parametrize("name", FAMILIES)
def test_every_metric_is_in_the_reference_with_its_type(name):
    """STYLE 14."""
    assert f"| `{name}` | {FAMILIES[name][0]} |" in page("metrics.md")


def test_every_file_and_variable_is_in_the_reference():
    """Ours: what the daemon leaves on the disk, and what moves it."""
    files = page("files.md")
    variables = set(re.findall(r"A2MCP_[A-Z]+", inspect.getsource(paths)))

    assert variables == {"A2MCP_HOME", "A2MCP_CONFIG", "A2MCP_AUDIT", "A2MCP_INSTALLS"}
    assert [name for name in variables if not coded(files, name)] == []
    assert [name for name in paths.OURS if f"`{name}" not in files] == []


def test_the_numbers_of_the_wire_contract_are_those_of_the_code():
    """Ours: a limit that changes must change on the page."""
    rows = [row for row in page("wire-contract.md").splitlines() if row.startswith("| ")]

    for what, number in {
        "headers": f"{server.HEADER_BYTES // 1024} KiB, {parser.HEADER_LINES} lines",
        "time for the headers": f"{channel.HEADER_DEADLINE_S:g} s",
        "values in a body": f"{bulk.MOST_MEMBERS}",
        "rate of a body": f"{channel.BODY_BYTES_PER_S} bytes/s",
        "idle connection": f"{channel.IDLE_S:g} s",
        "peer that does not read": f"{channel.SEND_STALL_S:g} s",
        "peer that closed its sending side": f"{channel.HALF_CLOSE_GRACE_S:g} s",
        "requests read ahead": f"{channel.LOOKAHEAD}",
        "blocking tools": f"{MOST_WORKERS}",
    }.items():
        assert any(row.startswith(f"| {what}") and f"| {number}" in row for row in rows), (what, number)


# --- links -------------------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    """Ours: a reader who clicks arrives."""
    for link in LINK.findall(prose(path)):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        found = (path.parent / target).resolve() if target else path
        if found.relative_to(ROOT).as_posix() == BY_THE_BENCHMARK:
            continue
        assert found.exists(), link
        assert not anchor or anchor in anchors(found), link


def test_every_page_can_be_reached_from_the_index():
    """Ours: a page that nothing links to is not read."""
    index = DOCS / "index.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text("utf-8"))}
    written = {path for path in DOCS.rglob("*.md") if DOCS / "benchmarks" not in path.parents}

    assert written - {index} <= linked


# --- what a reader types -----------------------------------------------------------------------------------------


@pytest.fixture
def readers_daemon(tmp_path, monkeypatch):
    """A daemon of a user whose own folder is the test's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with running(tmp_path / "home") as started:
        yield started


def test_the_tutorial_does_what_it_says(readers_daemon, tmp_path):
    """Issue, "Project": the first call in five minutes. Every block marked `run` is run, in one shell, in order."""
    blocks = FENCE.findall((DOCS / "tutorial" / "first-call.md").read_text("utf-8"))
    steps = [(kind, text) for _, kind, text in blocks if kind]
    script = "\n".join(text for kind, text in steps if kind == "run")
    expected = "".join(text for kind, text in steps if kind == "output")

    printed = in_a_shell(script, readers_daemon, tmp_path)

    assert without_blank_lines(printed) == [Like(line) for line in without_blank_lines(expected)]
    assert readers_daemon.process.wait(20) == 0


def test_the_call_with_curl_in_the_readme_works(readers_daemon, tmp_path):
    """STYLE 16: connect a client."""
    blocks = FENCE.findall((ROOT / "README.md").read_text("utf-8"))
    script = next(text for kind, _, text in blocks if kind == "sh" and "curl" in text)

    printed = in_a_shell(script.replace(":PORT/", f":{readers_daemon.port}/"), readers_daemon, tmp_path)

    assert '"serverInfo":{"name":"a2mcp"' in printed
    assert "exit code 0" in printed


def test_the_readme_shows_the_line_that_the_daemon_prints(shared_daemon):
    """Issue, "Operator channel and CLI": the start-up line has one form."""
    assert GREETING.fullmatch(shared_daemon.greeting.strip())
    for shown in (ROOT / "README.md", DOCS / "tutorial" / "first-call.md"):
        assert GREETING.search(shown.read_text("utf-8")), shown


class Like:
    """A line in which ``…`` stands for anything."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __eq__(self, other: object) -> bool:
        return re.fullmatch(".*".join(map(re.escape, self.pattern.split("…"))), str(other)) is not None

    def __repr__(self) -> str:
        return repr(self.pattern)

    __hash__ = None  # type: ignore[assignment]


def without_blank_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def in_a_shell(script: str, daemon: Daemon, folder: Path) -> str:
    """Run lines as a reader would, with `a2mcp` on the path; what they printed."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "a2mcp").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m a2mcp "$@"\n')
    (programs / "a2mcp").chmod(0o755)
    environment = daemon.environment | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout
