"""One question to a model, without tools: what a tool asked, in the form of the agent's library. Needs the extra."""

from __future__ import annotations

from binascii import a2b_base64
from typing import TYPE_CHECKING, Any

from pydantic_ai import BinaryContent
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

from a2mcp.errors import A2mcpError, CannotInfer
from a2mcp.inference import attempts
from a2mcp.inference.ledger import Spent
from a2mcp.inference.runner import Step
from a2mcp.tools.sampling import answer

if TYPE_CHECKING:
    from a2mcp.inference.turn import Hands
    from a2mcp.tools.sampling import Said, Sampled


async def sample(asked: Sampled, hands: Hands) -> dict[str, Any]:
    """Ask, and write the answer as the tool expects it.

    Raises:
        A2mcpError: it may not or cannot be asked.
    """
    spent = Spent()
    try:
        response = await _attempted(asked, hands)
        spent = Spent(input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens)
    except A2mcpError:
        raise
    except Exception as cause:  # The rim: the library's faults are the tool's answer.
        raise CannotInfer(attempts.went_wrong(cause, hands)[1]) from cause
    finally:
        hands.report(Step(spent=spent))
    said = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    return answer(said, response.model_name or "", cut=response.finish_reason == "length")


async def _attempted(asked: Sampled, hands: Hands) -> Any:
    attempt = 0
    while True:
        attempt += 1
        model = await hands.model()
        try:
            return await model_request(model, _messages(asked), model_settings=_settings(asked))
        except AgentRunError as error:
            await attempts.pause(error, attempt, hands)


def _messages(asked: Sampled) -> list[Any]:
    system = [SystemPromptPart(content=asked.system_prompt)] if asked.system_prompt else []
    messages: list[Any] = [ModelRequest(parts=system)] if system else []
    return messages + [_message(said) for said in asked.messages]


def _message(said: Said) -> Any:
    if said.role == "assistant":
        return ModelResponse(parts=[TextPart(content="".join(block.text for block in said.blocks))])
    content = [
        block.text if block.type == "text" else BinaryContent(data=a2b_base64(block.data), media_type=block.mime_type)
        for block in said.blocks
    ]
    return ModelRequest(parts=[UserPromptPart(content=content)])


def _settings(asked: Sampled) -> Any:
    given = {"max_tokens": asked.max_tokens, "temperature": asked.temperature, "stop_sequences": asked.stop_sequences}
    return {name: value for name, value in given.items() if value is not None}
