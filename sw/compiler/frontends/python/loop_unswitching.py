"""Conditions that are the same all along a loop, put around the loop."""

import ast

from daedal.compiler.frontends.python.syntax import assigned, mentions


def swap_conditions(tree: ast.FunctionDef) -> ast.FunctionDef:
    """The tree with conditions that are the same all along a loop put around the loop."""

    class Swap(ast.NodeTransformer):
        def visit_For(self, node: ast.For) -> ast.AST:
            self.generic_visit(node)
            inner = node.body[0]
            if len(node.body) != 1 or not isinstance(inner, ast.If) or not isinstance(node.target, ast.Name):
                return node
            if mentions(inner.test, node.target.id) or any(_has_blocks(each) for each in (*inner.body, *inner.orelse)):
                return node
            changed = {name for _, name in assigned(inner.body + inner.orelse)}
            reads = {each.id for each in ast.walk(inner.test) if isinstance(each, ast.Name)}
            stores = [
                each for each in ast.walk(inner) if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)
            ]
            stored = {each.value.id for each in stores if isinstance(each.value, ast.Name)}
            if reads & (changed | stored):
                return node

            def around(body: list[ast.stmt]) -> list[ast.stmt]:
                loop = ast.For(node.target, node.iter, body, [])
                return [ast.copy_location(loop, node)] if body else []

            return ast.copy_location(ast.If(inner.test, around(inner.body), around(inner.orelse)), inner)

    swapped = Swap().visit(tree)
    assert isinstance(swapped, ast.FunctionDef)
    return swapped


def _has_blocks(node: ast.AST) -> bool:
    return any(isinstance(each, ast.For | ast.While) for each in ast.walk(node))
