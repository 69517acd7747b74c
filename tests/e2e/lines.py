"""The line contract of translate, generate and score: N lines in, N lines out, and what users give by mistake."""

import atexit
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading

from tool import expect, expect_error, expect_success

SHORT = ("--max-length", "12")


class Artifact:
    """One artifact for all tests here, compiled when the first of them needs it."""

    def __init__(self, tool, source):
        self.tool, self.source, self.lock, self.path = tool, source, threading.Lock(), None
        self.flags = ()  # of every translate and generate

    def with_flags(self, *flags):
        return WithFlags(self, flags)

    def get(self):
        with self.lock:
            if not self.path:
                folder = tempfile.mkdtemp(prefix="transept-e2e-")
                atexit.register(shutil.rmtree, folder, ignore_errors=True)
                path = os.path.join(folder, "m.tsp")
                expect_success(self.tool.compile(self.source, path), "compile")
                self.path = path
            return self.path

    def run(self, command, text, *flags):
        """Bytes in and out: line ends and encodings matter here."""
        words = [self.tool.path("transept"), command, self.get(), *(self.flags if command != "score" else ()), *flags]
        result = subprocess.run(words, input=text, capture_output=True, timeout=300, check=False)
        return subprocess.CompletedProcess(words, result.returncode, result.stdout, result.stderr.decode(errors="replace"))


class WithFlags(Artifact):
    """The same artifact, run with more flags."""

    def __init__(self, whole, flags):
        self.whole, self.tool, self.flags = whole, whole.tool, flags

    def get(self):
        return self.whole.get()


def line_ends(artifact):
    """CRLF, a byte order mark, a last line without newline and an empty line change nothing but themselves."""
    plain = artifact.run("translate", b"hello\nworld\n", *SHORT)
    expect_success(plain, "plain")
    expect(plain.stdout.count(b"\n") == 2 and plain.stdout.endswith(b"\n"), f"two lines became {plain.stdout!r}")
    for what, text in {"CRLF": b"hello\r\nworld\r\n", "BOM": b"\xef\xbb\xbfhello\nworld\n", "no last newline": b"hello\nworld"}.items():
        result = artifact.run("translate", text, *SHORT)
        expect_success(result, what)
        expect(result.stdout == plain.stdout, f"{what}: {result.stdout!r}, expected {plain.stdout!r}")
    result = artifact.run("translate", b"hello\n\nworld\n", *SHORT)
    one, two = plain.stdout.splitlines()
    expect(result.stdout == one + b"\n\n" + two + b"\n", f"an empty line: {result.stdout!r}")
    expect(artifact.run("translate", b"").stdout == b"", "nothing in, something out")


def bad_lines(artifact):
    """A line that cannot be answered stops with its number, or takes its place with --keep-going."""
    long = b"ab " * 3333
    for what, line, code, word in (
        ("zero byte", b"a\0b", 8, "zero byte"),
        ("bad UTF-8", b"a\xff", 8, "UTF-8"),
        ("10,000 characters", long, 5, "6667"),
    ):
        result = artifact.run("translate", b"hello\n" + line + b"\nworld\n", *SHORT)
        expect_error(result, code, "line 2", word)
        expect(result.stdout.count(b"\n") == 1, f"{what}: {result.stdout!r}")
        result = artifact.run("translate", b"hello\n" + line + b"\nworld\n", "--keep-going", *SHORT)
        expect_error(result, code, "1 of 3", word)
        lines = result.stdout.splitlines()
        expect(len(lines) == 3 and lines[1].startswith(b"error: "), f"{what}: {result.stdout!r}")
    result = artifact.run("translate", b"hello\n" + long + b"\n", "--overlong", "truncate", *SHORT)
    expect_success(result, "truncate")
    expect(result.stdout.count(b"\n") == 2 and "inputs cut" in result.stderr and ": 1" in result.stderr, f"truncate: {result.stderr!r}")
    result = artifact.run("translate", "日本 ☃\n".encode(), *SHORT)
    expect_success(result, "characters the vocabulary lacks")
    expect(result.stdout.count(b"\n") == 1, f"unknown characters: {result.stdout!r}")


def bad_settings(artifact):
    for flags, code, word in (
        (["--num-beams", "0"], 2, "--num-beams"),
        (["--max-length", "-1"], 2, "--max-length"),
        (["--num-beam", "2"], 2, "--num-beam"),
    ):
        expect_error(artifact.run("translate", b"hello\n", *flags), code, word)
    for request, word in (
        ({"num_beam_groups": 2}, "num_beam_groups"),
        ({"num_beam": 2}, "num_beams"),
        ({"num_beams": "two"}, "num_beams"),
        ({"max_length": -1}, "max_length"),
        ({"return_alignments": "some"}, "return_alignments"),
    ):
        line = json.dumps({"text": "hello", **request}).encode() + b"\n"
        expect_error(artifact.run("generate", line), 8, "line 1", word)
    for line in (b'{"text":', b"[]", b"{}", b'{"text": 7}', b'{"input_ids": [5, 100000]}', b'{"input_ids": [-1]}'):
        expect_error(artifact.run("generate", line + b"\n"), 8, "line 1")
    pair = json.dumps({"text": "hello", "target": "hello", "num_beams": 3}).encode() + b"\n"
    expect_error(artifact.run("score", pair), 8, "line 1", "num_beams")


def closed_pipe(artifact):
    """A reader that goes away is no error to speak of."""
    command = f"yes hello | head -n 3000 | {artifact.tool.path('transept')} translate {artifact.get()} --max-length 12 {' '.join(artifact.flags)} | head -n 1"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    expect(result.stdout.count("\n") == 1 and not result.stderr, f"said {result.stderr!r}")


def closed_streams(artifact):
    """A standard stream that is not there is an error, not the next file that is opened."""
    command = f"{artifact.tool.path('transept')} translate {artifact.get()} --max-length 12 {' '.join(artifact.flags)}"
    for closed in ("<&-", ">&-"):
        result = subprocess.run(["sh", "-c", f"{command} {closed}"], input="hello\n", capture_output=True, text=True, timeout=120, check=False)
        expect_error(result, 6, "standard input" if closed == "<&-" else "standard output")


def interrupted(artifact):
    """SIGINT leaves whole lines, and says no more than that."""
    line = artifact.run("translate", b"hello\n", *SHORT).stdout
    words = [artifact.tool.path("transept"), "translate", artifact.get(), *artifact.flags, *SHORT]
    with tempfile.TemporaryFile() as source:
        source.write(b"hello\n" * 1_000_000)
        source.seek(0)
        process = subprocess.Popen(words, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        start = process.stdout.read(2 * len(line))
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate(timeout=60)
    output = start + rest
    expect(process.returncode == 130, f"exit {process.returncode}")
    expect(error == b"transept: error: interrupted\n", f"said {error!r}")
    lines = len(output) // len(line)
    expect(output == line * lines and lines < 1_000_000, f"{lines} lines, ending in {output[-40:]!r}")


def same_bits(artifact):
    """Answers and their scores do not depend on batch, order, threads, or CPU level (of those with fused multiply-add)."""
    rng = random.Random(1)
    lines = []
    for number in range(33):
        ids = [rng.randrange(2, 270) for _ in range(rng.randrange(1, 30))] + [0]
        settings = {"num_beams": rng.choice([1, 4]), "max_length": 20, "return_token_scores": True}
        lines.append(json.dumps({"id": number, "input_ids": ids, **settings}) + "\n")
    shuffled = rng.sample(lines, len(lines))
    want = None
    for level in ("avx512", "avx2"):
        for batch, threads, order in (("1", "1", lines), ("3", "2", lines), ("32", "1", shuffled), ("32", "2", lines)):
            flags = ("--cpu", level, "--batch", batch, "--threads", threads)
            result = artifact.run("generate", "".join(order).encode(), *flags)
            if result.returncode == 7:
                break  # this machine lacks the level
            expect_success(result, " ".join(flags))
            answers = sorted(result.stdout.splitlines(), key=lambda line: json.loads(line)["id"])
            want = want or answers
            wrong = [json.loads(a)["id"] for a, b in zip(answers, want) if a != b]
            expect(len(answers) == len(lines) and not wrong, f"{' '.join(flags)}: other answers for {wrong}")


def keeps_lines_in_order(artifact):
    """Many lines whose answers need one step or many: each in its place, a bad one too, as alone."""
    rng = random.Random(4)
    requests, lines = [], []
    for number in range(600):
        ids = [rng.randrange(2, 270) for _ in range(rng.choice((1, 2, 4, 9, 25)))] + [0]
        request = {"id": number, "input_ids": ids, "max_length": rng.choice((2, 3, 30))}
        if number % 97 == 50:
            request["input_ids"] = [-1]
        requests.append(request)
        lines.append(json.dumps(request) + "\n")
    text = "".join(lines).encode()
    result = artifact.run("generate", text, "--keep-going", "--batch", "3", "--json")
    expect_error(result, 8, "of 600 lines failed", "line 51")
    rows = [json.loads(row) for row in result.stdout.splitlines()]
    expect([row["id"] for row in rows] == list(range(600)), "not in order")
    expect(all(("error" in row) == (row["id"] % 97 == 50) for row in rows), "errors elsewhere")
    summary = json.loads(result.stderr.splitlines()[0])
    sessions = int(artifact.flags[1])
    expect(summary["sessions"] == sessions and summary["lines"] == 600, f"the summary is {summary}")
    alone = artifact.whole.run("generate", b"".join(line.encode() for line in lines if '"input_ids": [-1]' not in line), "--batch", "1", "--sessions", "1")
    expect_success(alone, "one after the other")
    expect(alone.stdout.splitlines() == [row for row in result.stdout.splitlines() if b'"error"' not in row], "other answers")


def default_sessions(artifact):
    """Steps of a small model are not shared: a session for each thread; one where a line is answered before the next."""
    every = len(os.sched_getaffinity(0))
    for flags, sessions in (((), every), (("--threads", "1"), 1), (("--batch", "1"), 1), (("--sessions", "3", "--threads", "1"), 3)):
        result = artifact.run("translate", b"hello\nworld\n", "--json", *SHORT, *flags)
        expect_success(result, " ".join(flags))
        expect(json.loads(result.stderr)["sessions"] == sessions, f"{flags}: {result.stderr!r}, expected {sessions}")


def without_tokenizer(tool, source, tmp):
    folder, artifact = os.path.join(tmp, "export"), os.path.join(tmp, "m.tsp")
    os.mkdir(folder)
    for name in ("config.json", "generation_config.json", "encoder_model.onnx", "decoder_model.onnx"):
        shutil.copy(os.path.join(source, name), folder)
    expect_success(tool.compile(folder, artifact), "compile")
    expect_error(tool.run("transept", "translate", artifact, stdin="hello\n"), 4, "tokenizer")
    result = tool.run("transept", "generate", artifact, stdin='{"input_ids": [3, 10, 0], "max_length": 9}\n')
    expect_success(result, "ids")
    expect(json.loads(result.stdout)["hypotheses"][0]["ids"], f"ids: {result.stdout!r}")


def refused_artifacts(tool, source, tmp):
    artifact, half = os.path.join(tmp, "m.tsp"), os.path.join(tmp, "half.tsp")
    expect_success(tool.compile(source, artifact, "--cpu-levels", "x86-64"), "compile")
    expect_error(tool.run("transept", "translate", artifact, "--cpu", "avx2", stdin="hello\n"), 7, "avx2", "x86-64")
    with open(artifact, "rb") as whole, open(half, "wb") as file:
        file.write(whole.read()[: os.path.getsize(artifact) // 2])
    expect_error(tool.run("transept", "translate", half, stdin="hello\n"), 7, "half.tsp", str(os.path.getsize(half)))
    expect_error(tool.run("transept", "translate", os.path.join(source, "encoder_model.onnx"), stdin="hello\n"), 7, "encoder_model.onnx")
    expect_error(tool.run("transept", "translate", os.path.join(tmp, "none.tsp"), stdin="hello\n"), 6, "none.tsp")


def tests(tool, root):
    source = os.path.join(root, "tests/models/marian-tiny")
    artifact = Artifact(tool, source)
    yield "bad settings", lambda tmp: bad_settings(artifact)
    for sessions in ("1", "2"):
        for test in (line_ends, bad_lines, same_bits, closed_pipe, closed_streams, interrupted, keeps_lines_in_order):
            some = artifact.with_flags("--sessions", sessions)
            name = f"{test.__name__.replace('_', ' ')}, sessions {sessions}"
            yield name, lambda tmp, test=test, some=some: test(some)
    yield "default sessions", lambda tmp: default_sessions(artifact)
    yield "without tokenizer", lambda tmp: without_tokenizer(tool, source, tmp)
    yield "refused artifacts", lambda tmp: refused_artifacts(tool, source, tmp)
