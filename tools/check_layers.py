#!/usr/bin/env python3
"""Checks the three layer rules of the architecture by scanning includes and names.

1. Folders include only what lies below them; passes/ names no target, codegen/ names no graph-level op.
2. runtime/ includes nothing of the other folders; of the runtime, generated code and compiler know transept/abi.h and
   the manifest; abi.h itself is freestanding C.
3. No cl::opt, no mutable global, no environment look-up in a library.

A line that must break rule 3 says why in a comment: `// layers: <reason>`.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("frontend", "ir", "passes", "codegen", "runtime", "tools", "tests")
LIBRARIES = ("ir", "passes", "frontend", "codegen", "runtime", "tools/driver")
MAY_INCLUDE = {
    "ir": {"ir"},
    "passes": {"ir", "passes"},
    "frontend": {"ir", "frontend"},
    "codegen": {"ir", "codegen"},
    "runtime": {"runtime"},
}
# What the compiler's libraries may know of the runtime: the contract with generated code, and the manifest's messages.
RUNTIME_CONTRACT = {"transept/abi.h", "runtime/program.pb.h"}
# Graph level. What kernels are described with (shape algebra, kernel ops) is not.
GRAPH_HEADER = re.compile(r"ir/(Transept|GraphOp)\w*\.(h|td)(\.inc)?$")
TARGET_HEADER = re.compile(
    r"(mlir/Dialect/(SPIRV|LLVMIR|GPU|NVGPU|AMDGPU|X86Vector|AMX|Arm\w+)|mlir/Target|mlir/Conversion/\w*To(LLVM|SPIRV)"
    r"|llvm/(Target|TargetParser|CodeGen|MC|IR)|lld)/"
)
TARGET_WORDS = set("vulkan spirv cpu gpu cuda rocm avx avx2 avx512 x86 amd64 aarch64 neon sve lavapipe".split())
COMPILER_HEADER = re.compile(r"(mlir|mlir-c|llvm|llvm-c|lld|onnx)/")
FREESTANDING = {"stdint.h", "stddef.h", "stdbool.h", "stdalign.h", "assert.h"}


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def strip(text, strings):
    """Blanks comments, and the contents of string literals where `strings` is set; line numbers stay."""
    token = re.compile(r'R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.S)
    return token.sub(lambda m: blank(m) if strings or m.group().startswith("/") else m.group(), text)


class Source:
    def __init__(self, path):
        self.name = path.relative_to(ROOT).as_posix()
        self.folder = self.name.split("/")[0]
        self.raw = path.read_text(encoding="utf-8")
        self.text = strip(self.raw, strings=False)
        self.code = strip(self.raw, strings=True)
        self.includes = [
            (number, match.group(1))
            for number, line in enumerate(self.text.splitlines(), 1)
            if (match := re.match(r'\s*#?\s*include\s*[<"]([^>"]+)[>"]', line))
        ]


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".c", ".td") and path.is_file():
                yield Source(path)


def words(identifier):
    """isAVX512 → is, avx512; vulkan_queue → vulkan, queue."""
    for part in identifier.split("_"):
        yield from (w.lower() for w in re.findall(r"[A-Z]+\d*(?![a-z])|[A-Z]?[a-z]+\d*", part))


def graph_ops():
    """C++ names and mnemonics of the graph-level ops."""
    text = "".join(source.text for source in sources("ir") if source.name.startswith("ir/Transept"))
    classes = set(re.findall(r"^def Transept_(\w+Op)\b", text, re.M))
    mnemonics = set(re.findall(r"^def Transept_\w+Op\s*:\s*\w+<\s*\"([\w.]+)\"", text, re.M))
    return classes, mnemonics


def check_folders():
    """Rule 1."""
    for source in sources("ir", "passes", "frontend", "codegen"):
        for line, header in source.includes:
            folder = header.split("/")[0]
            if folder in FOLDERS and folder not in MAY_INCLUDE[source.folder] and header not in RUNTIME_CONTRACT:
                yield source, line, f"{source.folder}/ may not include {header}"
            if source.folder == "passes" and TARGET_HEADER.match(header):
                yield source, line, f"passes/ may not know a target: {header}"
            if source.folder == "codegen" and GRAPH_HEADER.match(header):
                yield source, line, f"codegen/ may not know the graph level: {header}"
    for source in sources("passes"):
        for line, text in enumerate(source.text.splitlines(), 1):
            for identifier in re.findall(r"[A-Za-z_]\w*", text):
                if found := TARGET_WORDS.intersection(words(identifier)):
                    yield source, line, f"passes/ names a target: {identifier} ({found.pop()})"
    classes, mnemonics = graph_ops()
    for source in sources("codegen"):
        for line, text in enumerate(source.text.splitlines(), 1):
            for name in re.findall(r"\btransept::(\w+Op)\b", text):
                if name in classes:
                    yield source, line, f"codegen/ names a graph-level op: {name}"
            # getAttrOfType<T>("transept.…") looks up an attribute of the module, which may be called like an op.
            for name in re.findall(r'(?<!>\()"transept\.([\w.]+)"', text):
                if name in mnemonics:
                    yield source, line, f"codegen/ names a graph-level op: transept.{name}"


def check_runtime():
    """Rule 2."""
    for source in sources("runtime"):
        for line, header in source.includes:
            folder = header.split("/")[0]
            if (folder in FOLDERS and folder != "runtime") or COMPILER_HEADER.match(header):
                yield source, line, f"runtime/ may not include {header}"
            if source.name.endswith("transept/abi.h") and header not in FREESTANDING:
                yield source, line, f"abi.h is freestanding C; {header} is not"
    for source in sources("ir", "passes", "frontend", "codegen"):
        for line, header in source.includes:
            known = header in RUNTIME_CONTRACT and source.folder == "codegen"
            if (header.startswith("runtime/") or header.startswith("transept/")) and not known:
                yield source, line, f"{source.folder}/ may not know the runtime: {header}"


NOT_A_VARIABLE = re.compile(
    r"(inline |static )*(const|constexpr|constinit const|using|typedef|class|struct|union|enum|namespace|template|friend"
    r"|return|public|private|protected|case|default|goto|break|continue|extern|#|\})\b|#|\}"
)
NAMESPACE_VARIABLE = re.compile(r"((static|inline|thread_local) )*[A-Za-z_][\w:<>,*& ]*[\s*&]\w+(\[\w*\])*\s*(=.*|\{.*)?;?$")
LOCAL_STATIC = re.compile(r"\s+(static|thread_local)\s+(?!const\b|constexpr\b|inline const)[^()]*(=|;|\{)")
FORBIDDEN = re.compile(r"\bcl::(opt|list|bits|alias)\b|\b(secure_)?getenv\b|\b(setenv|putenv|ManagedStatic|environ)\b")


def check_libraries():
    """Rule 3. Code is formatted: what starts in column one is at namespace scope."""
    for source in sources(*LIBRARIES):
        if source.name.endswith(".td"):
            continue
        raw = source.raw.splitlines()
        for line, text in enumerate(source.code.splitlines(), 1):
            if re.search(r"//\s*layers: \S", raw[line - 1]):
                continue
            text = text.rstrip()
            if match := FORBIDDEN.search(text):
                yield source, line, f"{match.group()} in a library"
            is_global = (
                text[:1].strip()
                and not NOT_A_VARIABLE.match(text)
                and re.search(r"[;={]", text)
                and "(" not in re.split(r"[={]", text)[0]
                and NAMESPACE_VARIABLE.match(text)
            )
            if is_global or LOCAL_STATIC.match(text):
                yield source, line, f"mutable global in a library: {text.strip()}"


def main():
    failed = 0
    for rule in (check_folders, check_runtime, check_libraries):
        findings = list(rule())
        failed += bool(findings)
        for source, line, message in findings:
            print(f"{source.name}:{line}: {message}")
    print(f"{3 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
