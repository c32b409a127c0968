"""In a bundle, ``pilotlight/_bundled.py``: the package's bytecode lies in one file, and is taken from there.

A cold start reads one file instead of hundreds. Each module is made only when it is imported, and its source stays
where it was, for tracebacks. Bytecode of another Python is passed by, and the sources are compiled.
"""

import marshal
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType

FILE = "_bundled.bin"
"""Beside this one: ``MAGIC_NUMBER``, then by a module's name whether it is a package, and its marshalled code."""

Modules = dict[str, tuple[bool, bytes]]


class _Loader(SourceFileLoader):
    """Loads a module from its bytecode; the source is for those who ask for it."""

    def __init__(self, name: str, path: str, code: bytes) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        """The module's code."""
        code: CodeType = marshal.loads(self._code)
        return code


class Finder:
    """Knows the modules of one file. ``folder`` is where the bundle lies."""

    def __init__(self, folder: str, modules: Modules) -> None:
        self._folder, self._modules = folder, modules

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Where a module of the package comes from; None for all others."""
        found = self._modules.get(name)
        if found is None:
            return None
        package, code = found
        stem = f"{self._folder}/{name.replace('.', '/')}"
        file = f"{stem}/__init__.py" if package else f"{stem}.py"
        spec = ModuleSpec(name, _Loader(name, file, code), origin=file, is_package=package)
        spec.has_location, spec.cached = True, f"{file}c"
        if package:
            spec.submodule_search_locations = [stem]
        return spec


def install(package: str) -> None:
    """Take modules from the file in the package's folder from now on, where this Python can read it."""
    with open(f"{package}/{FILE}", "rb") as file:
        said = file.read()
    if said.startswith(MAGIC_NUMBER):
        sys.meta_path.insert(0, Finder(package.rpartition("/")[0], marshal.loads(said[len(MAGIC_NUMBER) :])))
