"""Running the programs under test, and what every error has to look like."""

import os
import shutil
import subprocess


class Failed(Exception):
    """A test's reason to fail, in one line."""


def expect(condition, message):
    if not condition:
        raise Failed(message)


class Tool:
    """The programs of one build; `emulator` is what runs them, where this machine cannot."""

    def __init__(self, folder=None, emulator=()):
        self.emulator = emulator
        found = os.path.join(folder, "transept") if folder else shutil.which("transept")
        if not found or not os.path.exists(found):
            raise SystemExit("run.py: no transept; give --bin, or have it on PATH")
        self.folder = os.path.dirname(os.path.abspath(found))

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, program, *arguments, stdin=None, cwd=None, timeout=300, env=None):
        """Runs a program to its end; a timeout counts as exit code 124."""
        command = [*self.emulator, self.path(program), *map(str, arguments)]
        try:
            return subprocess.run(
                command, input=stdin, capture_output=True, text=True, errors="replace", cwd=cwd, timeout=timeout, env=env
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", "timed out")

    def compile(self, source, output, *arguments, **options):
        return self.run("transept", "compile", source, "-o", output, "-q", *arguments, **options)


def last_words(result):
    return f"exit {result.returncode}: {result.stderr.strip()[-240:]}"


def expect_success(result, what):
    expect(result.returncode == 0, f"{what}: {last_words(result)}")


def expect_error(result, code=None, *words):
    """One error line, the right exit code, and every word in the line."""
    errors = [line for line in result.stderr.splitlines() if "error" in line]
    expect(result.returncode != 0, "accepted what must be refused")
    expect(0 < result.returncode <= 10, last_words(result))
    expect(code is None or result.returncode == code, f"exit {result.returncode}, expected {code}: {result.stderr.strip()[-200:]}")
    expect(len(errors) == 1 and errors[0].startswith("transept: error: "), f"not one error line: {result.stderr[-240:]!r}")
    for word in words:
        expect(word in errors[0], f"the error does not say {word!r}: {errors[0]}")


def read(path):
    with open(path, "rb") as file:
        return file.read()
