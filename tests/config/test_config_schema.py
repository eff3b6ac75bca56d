"""What a setting may hold, and the words of every refusal."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.config import schema
from a2mcp.errors import SettingsError
from a2mcp.policy.approval import Mode, Rule

TOKEN = "t" * 43


def settings(**fields):
    """Read settings of which only these fields are given."""
    return schema.settings_from({"token": TOKEN, **fields})[0]


def test_an_almost_empty_file_gives_the_documented_defaults():
    """Issue §8 and seed, "Configuration"."""
    found, warnings = schema.settings_from({"token": TOKEN})
    assert warnings == []
    assert found.port is None
    assert (found.host, found.host_llm, found.drain_s, found.allowed_hosts, found.cwd) == (
        "127.0.0.1",
        "allow",
        30.0,
        (),
        None,
    )
    assert found.limits == schema.LimitSettings(
        in_flight=10_000,
        in_flight_each=None,
        connections=12_288,
        unauthenticated=2048,
        sessions=64,
        body_bytes=128 << 20,
        mcp_body_bytes=8 << 20,
        output_bytes=50 << 10,
        jobs=1024,
        job_bytes=256 << 20,
        kept_jobs=64,
        kept_bytes=1 << 30,
    )
    assert found.xfer == schema.XferSettings(dufs="dufs", cloudflared="cloudflared")
    assert (found.approval.mode, found.approval.tools, found.audit.sync) == (Mode.YOLO, {}, False)
    assert found.audit.bytes == 1 << 20


def test_everything_that_can_be_set_arrives(tmp_path):
    """Issue §8: the whole list of fields."""
    found = settings(
        port=8080, host="::1", host_llm="deny", drain_s=1, allowed_hosts=["Box.Example"], cwd=str(tmp_path),
        approval={"mode": "write", "tools": {"bash": "prompt", "read": "allow"}}, audit={"sync": True},
        limits={"in_flight": 5, "sessions": 2}, xfer={"dufs": "/opt/dufs"},
    )  # fmt: skip
    assert (found.port, found.host, found.host_llm, found.drain_s) == (8080, "::1", "deny", 1.0)
    assert (found.allowed_hosts, found.cwd) == (("box.example",), tmp_path)
    assert found.approval.mode is Mode.WRITE
    assert found.approval.tools == {"bash": Rule.PROMPT, "read": Rule.ALLOW}
    assert found.audit.sync is True
    assert (found.limits.in_flight, found.limits.sessions, found.limits.connections) == (5, 2, 12_288)
    assert (found.xfer.dufs, found.xfer.cloudflared) == ("/opt/dufs", "cloudflared")


PORT = "must be an integer from 0 to 65535"
HOST = "must be a host name or an address, without scheme, port or brackets"


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("port", "1", PORT), ("port", 1.5, PORT), ("port", True, PORT), ("port", -1, PORT), ("port", 65536, PORT),
        ("port", 1e3, PORT), ("port", None, PORT), ("port", [], PORT),
        ("host", "", "must be a non-empty string"), ("host", 5, "must be a non-empty string"),
        ("host", None, "must be a non-empty string"), ("host", "a\x00b", "must be a non-empty string"),
        ("host", "localhost:80", HOST), ("host", "http://x", HOST), ("host", "[::1]", HOST), ("host", "a b", HOST),
        ("host", "-x", HOST), ("host", "*", HOST),
        ("host_llm", "DENY", "must be 'deny' or 'allow'"), ("host_llm", False, "must be 'deny' or 'allow'"),
        ("host_llm", "false", "must be 'deny' or 'allow'"),
        ("xfer", [], "must be an object"), ("xfer.dufs", "", "must be a non-empty string"),
        ("xfer.cloudflared", 1, "must be a non-empty string"),
        ("approval", "yolo", "must be an object"),
        ("approval.mode", "YOLO", "must be 'yolo' or 'write' or 'always-ask'"),
        ("approval.tools", [], "must be an object"),
        ("audit.sync", 1, "must be true or false"), ("audit.sync", "true", "must be true or false"),
        ("drain_s", True, "must be a number of seconds from 0 to 3600"),
        ("drain_s", -1, "must be a number of seconds from 0 to 3600"),
        ("drain_s", float("nan"), "must be a number of seconds from 0 to 3600"),
        ("drain_s", "30", "must be a number of seconds from 0 to 3600"),
        ("xfer.server", "nginx", "must be 'auto' or 'embedded' or 'dufs'"),
        ("xfer.overwrite", "yes", "must be true or false"), ("xfer.zip", 1, "must be true or false"),
        ("xfer.hash", None, "must be true or false"),
        ("xfer.stall_s", 0, "must be a number of seconds from 1 to 3600"),
        ("xfer.stall_s", float("inf"), "must be a number of seconds from 1 to 3600"),
        ("xfer.upload_bytes", 1023, "must be an integer from 1024 to 1099511627776"),
        ("xfer.upload_bytes", "1G", "must be an integer from 1024 to 1099511627776"),
        ("allowed_hosts", "x", "must be an array of host names"), ("allowed_hosts", {}, "must be an array of host names"),
        ("cwd", "relative", "must be the absolute path of a folder that exists"),
        ("cwd", "/no/such/folder", "must be the absolute path of a folder that exists"),
        ("cwd", 3, "must be a non-empty string"), ("cwd", "/" + 5000 * "x", "must be the absolute path of a folder that exists"),
        ("limits.in_flight", 0, "must be an integer from 1 to 1000000"),
        ("limits.sessions", True, "must be an integer from 1 to 1000000"),
        ("limits.body_bytes", 12, "must be an integer from 1024 to 2147483648"),
        ("limits.output_bytes", 2.0, "must be an integer from 1024 to 67108864"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_the_name_of_its_field(field, value, problem):
    """Row C03: fail closed with the field named; a bool is no integer."""
    section, _, name = field.rpartition(".")
    with pytest.raises(SettingsError) as caught:
        settings(**({section: {name: value}} if section else {name: value}))
    assert caught.value.text == f"field '{field}' {problem}"
    assert caught.value.exit_code == 2


def test_a_wrong_rule_or_host_is_named_by_its_own_place():
    """Ours: the field is the one that must be edited."""
    with pytest.raises(SettingsError, match=r"field 'approval.tools.bash' must be 'allow' or 'deny' or 'prompt'"):
        settings(approval={"tools": {"bash": "ask"}})
    with pytest.raises(SettingsError, match=r"field 'allowed_hosts\[1\]' must be"):
        settings(allowed_hosts=["a", "*"])


@pytest.mark.parametrize(
    ("xfer", "uses"),
    [
        ({}, False), ({"dufs": "dufs-nightly"}, False), ({"dufs": "/opt/dufs"}, True), ({"dufs": "bin/dufs"}, True),
        ({"dufs": "C:\\dufs.exe"}, True), ({"server": "dufs"}, True), ({"server": "embedded", "dufs": "/opt/dufs"}, False),
    ],
)  # fmt: skip
def test_dufs_serves_where_its_path_is_set_or_it_is_asked_for(xfer, uses):
    """Issue on files §2: a path, or the word; seed: a separator makes it a path."""
    assert settings(xfer=xfer).xfer.uses_dufs is uses


def test_port_zero_by_hand_stays_zero_and_is_not_an_absent_port():
    """Issue §8: written by hand it stays random."""
    assert settings(port=0).port == 0
    assert settings().port is None


def test_unknown_fields_are_ignored_with_a_warning_that_knows_what_was_meant():
    """Seed, "Configuration" and row C03."""
    _, warnings = schema.settings_from(
        {"token": TOKEN, "prot": 80, "deny": ["bash"], "limits": {"in_fligth": 3}, "approval": {"modes": "write"}}
    )
    assert warnings == [
        "unknown field 'prot' is ignored; did you mean 'port'?",
        "unknown field 'deny' is ignored",
        "unknown field 'approval.modes' is ignored; did you mean 'mode'?",
        "unknown field 'limits.in_fligth' is ignored; did you mean 'in_flight'?",
    ]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "box.example"])
def test_a_host_that_others_can_reach_is_allowed_and_warned_about(host):
    """Seed, "Security and boundaries": the firewall is your responsibility."""
    found, warnings = schema.settings_from({"token": TOKEN, "host": host})
    assert found.host == host
    assert len(warnings) == 1
    assert "other machines" in warnings[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "::1", "127.9.9.9"])
def test_a_loopback_host_is_not_warned_about(host):
    """Seed: loopback-only by default."""
    assert schema.settings_from({"token": TOKEN, "host": host})[1] == []


def test_a_tilde_in_cwd_is_the_home_of_the_user(tmp_path, monkeypatch):
    """Ours: the file has no shell that expands it."""
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings(cwd="~").cwd == tmp_path
    assert settings(cwd="~/work").cwd == Path(tmp_path / "work")


@pytest.mark.parametrize(
    ("given_tools", "field", "problem"),
    [
        ({"preset": "all"}, "tools.preset", "must be 'minimal' or 'coding' or 'full'"),
        ({"off": "bash"}, "tools.off", "must be an array of names of tools"),
        ({"off": ["read", "bahs"]}, "tools.off[1]", "must be 'read' or"),
        ({"off": [None]}, "tools.off[0]", "must be 'read' or"),
    ],
)
def test_a_tool_that_cannot_be_switched_off_stops_the_start(given_tools, field, problem):
    """Issue §7: settings fail closed; a switch with a slip of the pen must not leave the tool on."""
    with pytest.raises(SettingsError) as caught:
        settings(tools=given_tools)
    assert f"'{field}'" in caught.value.text
    assert problem in caught.value.text


def test_bash_without_jobs_is_warned_about():
    """Ours: what outlives its call could not be followed."""
    _, warnings = schema.settings_from({"token": TOKEN, "tools": {"off": ["jobs"]}})
    assert any("'jobs' is off" in warning for warning in warnings)
    assert schema.settings_from({"token": TOKEN, "tools": {"off": ["jobs", "bash"]}})[1] == []


def test_every_field_has_a_dotted_name():
    """Issue §8: the whole list of fields."""
    assert schema.field_names() == (
        "port", "host", "token", "host_llm", "allowed_hosts", "cwd", "drain_s", "one_processor",
        "agent.wake", "agent.running", "agent.steps", "agent.retries", "agent.budget_tokens", "agent.budget_requests",
        "agent.kept_bytes", "approval.mode", "approval.tools",
        "approval.ask_caller", "approval.timeout_s", "audit.sync", "audit.bytes",
        "limits.in_flight", "limits.in_flight_each", "limits.connections", "limits.unauthenticated", "limits.sessions",
        "limits.body_bytes", "limits.mcp_body_bytes", "limits.output_bytes", "limits.jobs", "limits.job_bytes", "limits.kept_jobs", "limits.kept_bytes",
        "observe.events", "observe.metrics", "observe.notify", "observe.traces", "tools.preset",
        "tools.off", "xfer.server", "xfer.overwrite", "xfer.zip", "xfer.hash", "xfer.stall_s", "xfer.upload_bytes",
            "xfer.dufs", "xfer.cloudflared",
    )  # fmt: skip


def test_settings_never_print_their_token():
    """Ours: a traceback or a log line may hold any value's repr."""
    assert TOKEN not in repr(settings())
    assert TOKEN not in f"{settings()}"


def test_settings_cannot_be_changed():
    """Style rule 5: values are frozen."""
    with pytest.raises(AttributeError):
        settings().port = 1
    assert isinstance(settings(), msgspec.Struct)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(schema._TOP)) | st.text(), JSON, max_size=6))
def test_whatever_the_file_holds_there_are_settings_or_a_named_field(document):
    """Row C03: no input ends in anything but settings or a SettingsError."""
    try:
        found, _ = schema.settings_from({**document, "token": TOKEN})
    except SettingsError as error:
        assert error.field  # noqa: PT017 - both ends are right
    else:
        assert len(found.token) >= 32
