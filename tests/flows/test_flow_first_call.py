"""The main job, end to end: a client lists this machine's tools and runs them for real."""

from __future__ import annotations

from harness import Daemon


def test_a_client_lists_the_tools_and_runs_one(shared_daemon: Daemon) -> None:
    """Seed, "Client sequence": initialize, initialized, list, call, delete."""
    client = shared_daemon.session()

    assert client.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    names = [tool["name"] for tool in client.ask("tools/list").result["tools"]]
    answer = client.call("bash", command="echo $((6 * 7))")
    ended = client.send("DELETE")

    assert {"read", "write", "edit", "bash", "jobs", "glob", "grep"} <= set(names)
    assert "42" in answer.text
    assert answer.result["isError"] is False
    assert ended.status == 204
    assert client.ask("ping").status == 404


def test_what_a_call_did_is_in_the_log_before_its_answer(shared_daemon: Daemon) -> None:
    """Seed, "tools/call": the records reach the disk before the response."""
    client = shared_daemon.session()

    for number in range(50):
        client.call("bash", command=f"echo {number}")
        mine = [record for record in shared_daemon.audit() if record["args"] == {"command": f"echo {number}"}]
        assert [record["phase"] for record in mine][-2:] == ["start", "done"]
        assert mine[-1]["id"] == mine[-2]["id"]
        assert mine[-1]["sid"] == client.session
