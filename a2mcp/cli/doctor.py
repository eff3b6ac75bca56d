"""``a2mcp doctor``: what is wrong, and how to mend it."""

import click

from a2mcp.cli import show
from a2mcp.errors import A2mcpError


@click.command()
@show.json_option
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Look for what is wrong and say how to mend it. Changes nothing; exits 1 when something fails."""
    from a2mcp.cli import checks  # noqa: PLC0415 - the help looks at nothing

    try:
        findings = checks.examine(show.current_home())
    except A2mcpError as error:
        findings = [checks.Finding("places", checks.Verdict.FAIL, error.text, error.hint)]
    if as_json:
        show.as_document(findings)
    else:
        for finding in findings:
            click.echo(f"{finding.verdict:4}  {finding.name:9}  {show.visible(finding.fact)}")
            if finding.mend:
                click.echo(f"                 → {show.visible(finding.mend)}")
    ctx.exit(int(any(finding.verdict is checks.Verdict.FAIL for finding in findings)))
