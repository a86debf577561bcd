"""A plugin of mypy, by which it knows `pl.col("ip").fibula`: namespaces are registered when a program runs.

    [tool.mypy]
    plugins = ["fibula.mypy"]
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import MypyFile
from mypy.plugin import ClassDefContext, Plugin
from mypy.plugins.common import add_attribute_to_class

EXPR = "polars.expr.expr"


class FibulaPlugin(Plugin):
    """Gives the class `Expr` of Polars the attribute."""

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        return [(10, "fibula.polars", -1)] if file.fullname == EXPR else []

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return _add if fullname == f"{EXPR}.Expr" else None


def _add(context: ClassDefContext) -> None:
    kind = context.api.named_type_or_none("fibula.polars.FibulaExpr")
    if kind is not None:
        add_attribute_to_class(context.api, context.cls, "fibula", kind)
    elif not context.api.final_iteration:
        context.api.defer()  # the module has not been analysed yet


def plugin(version: str) -> type[Plugin]:
    """What mypy asks for."""
    return FibulaPlugin
