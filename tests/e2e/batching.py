"""Requests that join between steps: every answer is that of the request alone, to the last bit."""

import json
import os
import pty
import random
import subprocess

from tool import expect, expect_success

MODELS = ("marian-tiny", "t5-tiny", "bart-tiny", "gpt2-tiny", "gru-seq2seq-tiny", "longt5-tiny")
SETTINGS = (
    {},
    {"num_beams": 4, "num_return_sequences": 2, "length_penalty": 0.6},
    {"max_new_tokens": 3},
    {"do_sample": True, "top_k": 20, "num_return_sequences": 2},
    {"min_new_tokens": 17, "max_new_tokens": 25, "return_token_scores": True},
    {"num_beams": 3, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
)


def requests_of(folder, vocabulary, count):
    """Sources of very different lengths, each with its own settings."""
    source = random.Random(5)
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    names = {"decoder_start_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "pad"}
    common = {key: expected.get(key, expected.get(short)) for key, short in names.items()}
    common = {key: token for key, token in common.items() if token is not None}
    encoder = "decoder_start_token_id" in common
    for i in range(count):
        settings = {**common, **SETTINGS[i % len(SETTINGS)]}
        if settings.get("do_sample"):
            settings["seed"] = i
        if "max_new_tokens" not in settings:
            settings["max_new_tokens"] = source.randint(1, 12)
        length = source.choice((1, 2, 3, 5, 8, 13, 24))
        request = {"id": i, "input_ids": [source.randrange(3, vocabulary) for _ in range(length)], **settings}
        if encoder and i % 7 == 3:  # a forced prefix
            request["decoder_input_ids"] = [source.randrange(3, vocabulary) for _ in range(3)]
        yield request


def same_as_alone(tool, root, name, tmp, count=30):
    folder, artifact = os.path.join(root, "tests/models", name), os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(folder, artifact), "compile")
    plan = tool.run("transept", "inspect", artifact, "--json")
    expect_success(plan, "inspect")
    requests = list(requests_of(folder, json.loads(plan.stdout)["generation"]["vocabulary"], count))

    def answers(order, *flags):
        lines = "".join(json.dumps(requests[i]) + "\n" for i in order)
        result = tool.run("transept", "generate", artifact, *flags, stdin=lines)
        expect_success(result, f"generate {flags}")
        rows = result.stdout.splitlines()
        expect(len(rows) == len(order), f"{len(rows)} answers for {len(order)} requests")
        expect([json.loads(row)["id"] for row in rows] == list(order), "answers in another order")
        return dict(zip(order, rows))

    order = list(range(len(requests)))
    alone = answers(order, "--batch", "1", "--threads", "1")
    shuffle = random.Random(1)
    two, three = ("--sessions", "2"), ("--sessions", "3")
    ways = ((2, 1, ()), (3, 2, ("--sessions", "1")), (5, 1, ()), (16, 1, ("--batch-tokens", "30")), (16, 2, ()), (1, 2, two), (4, 2, two), (2, 1, three))
    for batch, threads, more in ways:
        shuffle.shuffle(order)
        got = answers(order, "--batch", str(batch), "--threads", str(threads), *more)
        wrong = [i for i in order if got[i] != alone[i]]
        expect(not wrong, f"batch {batch}, {threads} threads, {more}: request {requests[wrong[0]] if wrong else ''} differs, {len(wrong)} in all")


def streams_in_order(tool, artifact):
    """A line's answer comes while later lines are not yet there."""
    command = [tool.path("transept"), "translate", artifact]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for word in ("a", "internationalization", "be"):
            process.stdin.write(word + "\n")
            process.stdin.flush()
            expect(process.stdout.readline().strip(), f"nothing for {word}")
        process.stdin.close()
        expect(process.wait(timeout=60) == 0, "failed")


def progress(tool, artifact, tmp):
    """On a terminal, and nowhere else; standard output is the same."""
    words, out = (os.path.join(tmp, name) for name in ("words", "out"))
    lines = "internationalization\n" * 800
    with open(words, "w", encoding="utf-8") as file:
        file.write(lines)
    quiet = tool.run("transept", "translate", artifact, stdin=lines)
    expect_success(quiet, "translate")
    expect(quiet.stderr == "", f"standard error has {quiet.stderr!r}")
    terminal, other = pty.openpty()
    with open(words, "rb") as source, open(out, "wb") as target:
        process = subprocess.Popen([tool.path("transept"), "translate", artifact], stdin=source, stdout=target, stderr=other)
        os.close(other)
        shown = b""
        try:
            while block := os.read(terminal, 4096):
                shown += block
        except OSError:  # its end, on Linux
            pass
        expect(process.wait(timeout=60) == 0, "failed")
    os.close(terminal)
    with open(out, encoding="utf-8") as file:
        expect(file.read() == quiet.stdout, "other answers with a terminal")
    expect(b"lines," in shown and b"tokens/s" in shown and shown.endswith(b"\r\x1b[K"), f"the terminal shows {shown[-80:]!r}")


def lines_of_text(tool, root, tmp):
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(os.path.join(root, "models/g2p"), artifact), "compile")
    streams_in_order(tool, artifact)
    progress(tool, artifact, tmp)


def tests(tool, root):
    for name in MODELS:
        yield f"batching {name}", lambda tmp, name=name: same_as_alone(tool, root, name, tmp)
    yield "batching lines", lambda tmp: lines_of_text(tool, root, tmp)
