#!/usr/bin/env python3
"""Writes the reference of the Python package as pages in Markdown, from its sources; nothing is imported.

    scripts/python_reference.py PACKAGE DIR      (PACKAGE: the folder python/kolo)

Each public module has the names that it defines or, in an __init__.py, passes on. A name that several modules have is
described in the first one, and listed in the others.
"""
import ast
import pathlib
import sys
import textwrap

# Pages, and the modules on them: those of this name and below it.
PAGES = ("kolo.torch", "kolo.tensorflow", "kolo.keras", "kolo.jax", "kolo.tune", "kolo.air", "kolo.hps")
WIDTH = 100
DECORATORS = ("property", "setter", "staticmethod", "classmethod", "dataclass")  # those that change how a name is used
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module:
    def __init__(self, name, path):
        self.name, self.is_package = name, path.name == "__init__.py"
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.defined, self.passed_on, self.exported = {}, {}, None
        for node in self.tree.body:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                self.defined[node.name] = node
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kolo":
                for alias in node.names:
                    self.passed_on[alias.asname or alias.name] = (node.module, alias.name)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if not isinstance(target, ast.Name):
                        continue
                    self.defined[target.id] = node
                    if target.id == "__all__" and isinstance(node.value, (ast.List, ast.Tuple)):
                        self.exported = [item.value for item in node.value.elts if isinstance(item, ast.Constant)]

    def names(self):
        names = list(self.defined) + (list(self.passed_on) if self.is_package or self.exported else [])
        return sorted(name for name in set(names)
                      if not name.startswith("_") and (self.exported is None or name in self.exported))


def modules_of(package):
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(name, path)
    return modules


def origin(modules, module, name):
    """Where a name is defined: (module, name, node), or None if that is no source of the package."""
    seen = set()
    while module in modules and name not in modules[module].defined:
        place = modules[module].passed_on.get(name)
        if place is None or place in seen:  # seen: a module, which its package passes on
            return None
        seen.add(place)
        module, name = place
    return (module, name, modules[module].defined[name]) if module in modules else None


def is_public(name):
    return not name.startswith("_") or name == "__init__"


def stub(node, name, indent=""):
    """A definition without what it does."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return textwrap.wrap(ast.unparse(node), WIDTH, initial_indent=indent, subsequent_indent=indent + "    ")
    doc, inner = ast.get_docstring(node), indent + "    "
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        head = f"class {name}({bases}):" if bases else f"class {name}:"
    else:
        # Outside of brackets a line must not break: \0 is a blank that stays.
        result = f" -> {ast.unparse(node.returns)}".replace(" ", "\0") if node.returns else ""
        head = f"def {name}({ast.unparse(node.args)}){result}:" + ("" if doc else "\0...")
    decorators = [f"{indent}@{text}" for text in map(ast.unparse, node.decorator_list)
                  if text.split("(")[0].split(".")[-1] in DECORATORS]
    lines = decorators + textwrap.wrap(head, WIDTH, initial_indent=indent, subsequent_indent=inner + "    ",
                                       break_long_words=False, break_on_hyphens=False)
    lines = [line.replace("\0", " ") for line in lines]
    if doc:
        lines += textwrap.indent(f'"""{doc}"""', inner, lambda line: line.strip() != "").split("\n")
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, FUNCTIONS) and is_public(part.name):
                lines += ["", *stub(part, part.name, inner)]
            elif isinstance(part, ast.AnnAssign) and is_public(ast.unparse(part.target)):
                lines += stub(part, "", inner)
    return lines if doc or len(lines) > 1 or isinstance(node, FUNCTIONS) else [*lines, f"{inner}..."]


def page_of(module):
    for page in PAGES:
        if f"{module}.".startswith(f"{page}."):
            return page
    return "kolo"


def main(package, output):
    modules = modules_of(package)
    public = [name for name in modules if not any(part.startswith("_") for part in name.split("."))]
    public.sort(key=lambda name: (name.count("."), name))
    described = {}  # what is described, by which name
    texts = {page: [f"# Python: {page}\n"] for page in ("kolo", *PAGES)}
    for name in public:
        module = modules[name]
        lines, elsewhere = [f"## {name}\n"], []
        if doc := ast.get_docstring(module.tree):
            lines += ["```text", doc, "```\n"]
        for part in module.names():
            found = origin(modules, name, part)
            if found is None:
                continue
            where, real, node = found
            if (where, real) in described:
                elsewhere.append(f"`{part}` ({described[where, real]})")
                continue
            described[where, real] = name
            lines += [f"### {name}.{part}\n", "```python", *stub(node, part), "```\n"]
        if elsewhere:
            lines.append("Also, described in the module in brackets: " + ", ".join(elsewhere) + ".\n")
        texts[page_of(name)] += lines
    output.mkdir(parents=True, exist_ok=True)
    for page, lines in texts.items():
        (output / f"{page}.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
