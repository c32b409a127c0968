"""In a bundle, ``pilotlight/_bundled.py``: the package's bytecode lies in one file, and is taken from there.

A cold start opens one file instead of hundreds. Each module is read and made only when it is imported, and its source
stays where it was, for tracebacks. Bytecode of another Python is passed by, and the sources are compiled.
"""

import marshal
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType

FILE = "_bundled.bin"
"""Beside this one: ``MAGIC_NUMBER``, how long the list of modules is, the list, and the code of each, marshalled."""

Modules = dict[str, tuple[bool, int, int]]
"""By a module's name: whether it is a package, where its code begins behind the list, and how long it is."""


def pack(modules: dict[str, tuple[bool, bytes]]) -> bytes:
    """The file's content behind its magic number: ``modules`` have their marshalled code by name."""
    listed: Modules = {}
    codes: list[bytes] = []
    for name, (package, code) in modules.items():
        listed[name] = package, sum(map(len, codes)), len(code)
        codes.append(code)
    head = marshal.dumps(listed, 2)
    return b"".join([len(head).to_bytes(4, "little"), head, *codes])


class _Loader(SourceFileLoader):
    """Loads a module from its bytecode; the source is for those who ask for it."""

    def __init__(self, name: str, path: str, where: tuple[int, int, int]) -> None:
        super().__init__(name, path)
        self._where = where

    def get_code(self, fullname: str) -> CodeType:
        """The module's code."""
        file, start, length = self._where
        code: CodeType = marshal.loads(os.pread(file, length, start))
        return code


class Finder:
    """Knows the modules of one open file. ``folder`` is where the bundle lies, ``begins`` where the code begins."""

    def __init__(self, folder: str, file: int, begins: int, modules: Modules) -> None:
        self._folder, self._file, self._begins, self._modules = folder, file, begins, modules

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Where a module of the package comes from; None for all others."""
        found = self._modules.get(name)
        if found is None:
            return None
        package, start, length = found
        stem = f"{self._folder}/{name.replace('.', '/')}"
        source = f"{stem}/__init__.py" if package else f"{stem}.py"
        loader = _Loader(name, source, (self._file, self._begins + start, length))
        spec = ModuleSpec(name, loader, origin=source, is_package=package)
        spec.has_location, spec.cached = True, f"{source}c"
        if package:
            spec.submodule_search_locations = [stem]
        return spec


def install(package: str) -> None:
    """Take modules from the file in the package's folder from now on, where this Python can read it."""
    file = os.open(f"{package}/{FILE}", os.O_RDONLY)  # Open as long as the process: modules are read as they are asked.
    size = len(MAGIC_NUMBER)
    said = os.pread(file, size + 4, 0)
    if said.startswith(MAGIC_NUMBER):
        length = int.from_bytes(said[size:], "little")
        modules: Modules = marshal.loads(os.pread(file, length, size + 4))
        sys.meta_path.insert(0, Finder(package.rpartition("/")[0], file, size + 4 + length, modules))
    else:
        os.close(file)
