"""What ``models.yml`` says: the providers that the operator has, and their models.

Owns the file's form and the words of every refusal, each with its line. What a row means is in ``a2mcp/inference``. A
field that is present but wrong stops the start; a field nobody knows is ignored with a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from a2mcp.config.yamlfields import Fields
from a2mcp.config.yamltree import Bad, Node, parse
from a2mcp.errors import UnusableFile
from a2mcp.inference.keys import key_from
from a2mcp.inference.rows import Catalogue, Cost, Key, ModelRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


def catalogue(path: Path, raw: bytes, apis: Collection[str], warnings: list[str]) -> Catalogue:
    """Read the file's bytes.

    Args:
        path: the file, for the words of a refusal.
        raw: what it holds.
        apis: the wire formats that somebody speaks.
        warnings: what the operator should be told already.

    Raises:
        UnusableFile: it says something wrong; the text names the line.
    """
    try:
        rows, default = _Document(apis, path, warnings).read(parse(raw))
    except Bad as error:
        raise UnusableFile(f"{path}, line {error.line}: {error.text}.", hint=error.hint) from None
    return Catalogue(rows, default, tuple(warnings))


class _Document:
    def __init__(self, apis: Collection[str], path: Path, warnings: list[str]) -> None:
        self._apis = apis
        self._path = path
        self._warnings = warnings

    def read(self, root: Node) -> tuple[tuple[ModelRow, ...], str | None]:
        with self._fields(root, "the file") as top:
            providers = top.mapping("providers")
            rows = tuple(row for name, node in providers.items() for row in self._provider(name, node))
            return rows, self._default(top, rows)

    def _default(self, top: Fields, rows: tuple[ModelRow, ...]) -> str | None:
        named = top.text("default")
        if named is not None and named not in {row.ref for row in rows}:
            raise top.bad("default", f"must be one of the models here as 'provider/id', not '{named[:80]}'")
        return named or (rows[0].ref if rows else None)

    def _fields(self, node: Node, what: str) -> Fields:
        return Fields(node, what, self._warn)

    def _warn(self, line: int, text: str) -> None:
        self._warnings.append(f"{self._path}, line {line}: {text}.")

    def _provider(self, name: str, node: Node) -> Iterator[ModelRow]:
        if not name or "/" in name or not name.isprintable():
            raise Bad(node.line, "has a provider whose name is empty or has a slash or a control character")
        with self._fields(node, f"provider '{name[:80]}'") as provider:
            common = ModelRow(
                provider=name,
                id="",
                name="",
                api=provider.text("api") or "",
                base_url=provider.url("baseUrl") or "",
                key=key_from(provider.text("apiKey") or "") if provider.has("apiKey") else Key(),
                headers=_keys(provider.texts("headers")),
                transport=provider.text("transport"),
            )
            seen: set[str] = set()
            if not (models := provider.items("models")):
                self._warn(node.line, f"{provider.what} has no models")
            for model in models:
                row = self._model(common, model)
                if row.id in seen:
                    raise Bad(model.line, f"has the model '{row.ref[:80]}' a second time")
                seen.add(row.id)
                yield row

    def _model(self, common: ModelRow, node: Node) -> ModelRow:
        with self._fields(node, f"a model of '{common.provider[:80]}'") as model:
            identity = model.required("id")
            row = msgspec.structs.replace(
                common,
                id=identity,
                name=model.text("name") or identity,
                api=model.text("api") or common.api,
                base_url=model.url("baseUrl") or common.base_url,
                headers={**common.headers, **_keys(model.texts("headers"))},
                context_window=model.count("contextWindow"),
                max_tokens=model.count("maxTokens"),
                input=model.words("input", ("text", "image")) or ("text",),
                reasoning=model.flag("reasoning"),
                cost=self._cost(model),
            )
            self._judge(row, model)
            return row

    def _judge(self, row: ModelRow, model: Fields) -> None:
        """Refuse a row with which nobody could be asked."""
        if row.api not in self._apis:
            known = ", ".join(sorted(self._apis))
            said = f"has the api '{row.api[:80]}', which nobody speaks" if row.api else "has no 'api'"
            raise Bad(model.line, f"{model.what} {said}", f"There are: {known}.")
        if not row.base_url:
            raise Bad(model.line, f"{model.what} has no 'baseUrl'")

    def _cost(self, model: Fields) -> Cost:
        node = model.node("cost")
        if node is None:
            return Cost()
        with self._fields(node, f"'cost' of {model.what}") as cost:
            return Cost(
                input=cost.price("input"),
                output=cost.price("output"),
                cache_read=cost.price("cacheRead"),
                cache_write=cost.price("cacheWrite"),
            )


def _keys(texts: dict[str, str]) -> dict[str, Key]:
    return {name: key_from(text) for name, text in texts.items()}
