"""Whether a call may run."""

import msgspec
import pytest

from a2mcp.policy.approval import ApprovalSettings, Mode, Rule, decide
from a2mcp.tools.spec import Tier


@pytest.mark.parametrize(
    ("mode", "asked"),
    [(Mode.YOLO, set()), (Mode.WRITE, {Tier.WRITE, Tier.EXECUTE}), (Mode.ALWAYS_ASK, set(Tier))],
)
def test_the_mode_says_for_which_tiers_the_operator_is_asked(mode, asked):
    """Source: issue (approval)."""
    rules = {tier: decide(ApprovalSettings(mode=mode), "some", tier) for tier in Tier}
    assert {tier for tier, rule in rules.items() if rule is Rule.PROMPT} == asked
    assert Rule.DENY not in rules.values()


def test_by_default_everything_is_allowed():
    """Source: issue (yolo is the default)."""
    assert {decide(ApprovalSettings(), "bash", tier) for tier in Tier} == {Rule.ALLOW}


@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("tier", list(Tier))
def test_a_tools_own_rule_wins_over_every_mode(rule, mode, tier):
    """Source: issue (a tool's own rule wins)."""
    settings = ApprovalSettings(mode=mode, tools={"bash": rule})
    assert decide(settings, "bash", tier) is rule
    assert decide(settings, "Bash", tier) is decide(ApprovalSettings(mode=mode), "Bash", tier)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("tier", list(Tier))
def test_what_the_daemon_serves_itself_is_held_by_its_own_rule_only(mode, tier):
    """Source: seed ("xfer_*": not past the host's gate); ours: what the operator wrote about a name counts."""
    assert decide(ApprovalSettings(mode), "xfer_share", tier, past_mode=True) is Rule.ALLOW
    for rule in Rule:
        settings = ApprovalSettings(mode, {"xfer_share": rule})
        assert decide(settings, "xfer_share", tier, past_mode=True) is rule


def test_the_setting_is_written_as_in_the_issue():
    """Source: issue (settings "approval")."""
    raw = b'{"mode": "always-ask", "tools": {"bash": "deny", "read": "allow"}}'
    settings = msgspec.json.decode(raw, type=ApprovalSettings)
    assert settings == ApprovalSettings(Mode.ALWAYS_ASK, {"bash": Rule.DENY, "read": Rule.ALLOW})
