"""Tokenizers of all kinds in artifacts: the ids of transformers reach the model, languages and tasks do what they say."""

import json
import os
import shutil

from tool import expect, expect_error, expect_success

FIXTURE = "tests/unit/runtime/fixtures/tokenizers"
VOCABULARY = 273  # of the model that takes the ids


def fixture(root):
    with open(os.path.join(root, FIXTURE, "expected.json"), encoding="utf-8") as file:
        return json.load(file)


def export(root, tmp, files, config, model_config=()):
    """marian-tiny with another tokenizer."""
    folder = os.path.join(tmp, "export")
    os.mkdir(folder)
    source = os.path.join(root, "tests/models/marian-tiny")
    for name in ("generation_config.json", "encoder_model.onnx", "decoder_model.onnx"):
        shutil.copy(os.path.join(source, name), folder)
    with open(os.path.join(source, "config.json"), encoding="utf-8") as file:
        model = {**json.load(file), **dict(model_config)}
    contents = {name: open(os.path.join(root, FIXTURE, path), "rb").read() if isinstance(path, str) else path for name, path in files.items()}
    for name, content in (*contents.items(), ("config.json", json.dumps(model).encode()), ("tokenizer_config.json", json.dumps(config).encode())):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    return folder


def generate(tool, artifact, requests, *flags):
    lines = "".join(json.dumps({**request, "max_length": 12}) + "\n" for request in requests)
    result = tool.run("transept", "generate", artifact, *flags, stdin=lines)
    expect_success(result, "generate")
    return [json.loads(line)["hypotheses"] for line in result.stdout.splitlines()]


def ids_reach_the_model(tool, root, name, tmp):
    data = fixture(root)
    entry = next(one for one in data["tokenizers"] if one["name"] == name)
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(export(root, tmp, entry["files"], entry["config"]), artifact), "compile")
    pairs = [(text, ids) for text, ids in zip(data["texts"], entry["cases"][0]["ids"]) if 0 < len(ids) < 30 and max(ids) < VOCABULARY]
    expect(len(pairs) >= 3, f"{len(pairs)} texts")
    texts = generate(tool, artifact, [{"text": text} for text, _ in pairs])
    want = generate(tool, artifact, [{"input_ids": ids} for _, ids in pairs])
    wrong = [text for (text, _), a, b in zip(pairs, texts, want) if a != b]
    expect(len(texts) == len(pairs) and not wrong, f"other ids for {wrong}")


def languages(tool, root, tmp):
    data = fixture(root)
    entry = next(one for one in data["tokenizers"] if one["name"] == "mbart-slow")
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(export(root, tmp, entry["files"], entry["config"]), artifact), "compile")
    case = next(case for case in entry["cases"] if case["side"] == "source" and case["source_lang"] == "de_DE")
    target = next(case for case in entry["cases"] if case["side"] == "target" and case["target_lang"] == "fr_XX")
    number = data["texts"].index("the small house stands near the river")
    text = data["texts"][number]
    want = generate(tool, artifact, [{"input_ids": case["ids"][number], "decoder_start_token_id": target["ids"][0][-1]}])
    keys = generate(tool, artifact, [{"text": text, "source_lang": "de_DE", "target_lang": "fr_XX"}])
    flags = generate(tool, artifact, [{"text": text}], "--source-lang", "de_DE", "--target-lang", "fr_XX")
    expect(keys == want and flags == want, f"keys gave {keys}, flags {flags}, expected {want}")
    expect_error(tool.run("transept", "translate", artifact, "--target-lang", "xx", stdin="a\n"), 8, "'target_lang' 'xx'", "ar_AR, cs_CZ")
    expect_error(tool.run("transept", "translate", artifact, "--task", "summarization", stdin="a\n"), 8, "'task' is not available")


def tasks(tool, root, tmp):
    data = fixture(root)
    entry = next(one for one in data["tokenizers"] if one["name"] == "t5")
    params = {"task_specific_params": {"greeting": {"prefix": "the small ", "num_beams": 3}}}
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(export(root, tmp, entry["files"], entry["config"], params), artifact), "compile")
    want = generate(tool, artifact, [{"text": "the small house", "num_beams": 3}])
    got = generate(tool, artifact, [{"text": "house", "task": "greeting"}])
    expect(got == want, f"{got}, expected {want}")
    result = tool.run("transept", "translate", artifact, "--task", "greeting", stdin="\nhouse\n")
    expect_success(result, "translate")
    expect(result.stdout.startswith("\n") and result.stdout.count("\n") == 2, f"an empty line gave {result.stdout!r}")
    expect_error(tool.run("transept", "translate", artifact, "--task", "x", stdin="a\n"), 8, "'task' 'x'", "greeting")


def refused_part(tool, root, tmp):
    """A warning when it is compiled, an error with the same reason for a text, and ids work."""
    with open(os.path.join(root, FIXTURE, "t5.json"), encoding="utf-8") as file:
        document = json.load(file)
    document["normalizer"] = {"type": "Enigma"}
    folder, artifact = export(root, tmp, {"tokenizer.json": json.dumps(document).encode()}, {}), os.path.join(tmp, "m.tsp")
    result = tool.run("transept", "compile", folder, "-o", artifact)
    expect_success(result, "compile")
    expect("warning" in result.stderr and "'Enigma'" in result.stderr, f"no warning: {result.stderr!r}")
    expect_error(tool.run("transept", "translate", artifact, stdin="a\n"), 4, "'tokenizer.json'", "'Enigma'")
    expect_error(tool.run("transept", "generate", artifact, stdin='{"text": "a"}\n'), 4, "'Enigma'")
    expect(generate(tool, artifact, [{"input_ids": [3, 10, 0]}])[0], "ids give nothing")


def text_to_text(tool, folder, tmp):
    """Texts, greedy and with beams, as PyTorch and the tokenizer of transformers answer them."""
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(folder, artifact), "compile")
    with open(os.path.join(folder, "tokenizer_cases.json"), encoding="utf-8") as file:
        whole = json.load(file)["end_to_end"]
    greedy = {key: value for key, value in whole["settings"].items() if key != "beam"}
    requests, answers = [], []
    for case in whole["cases"]:
        for name, answer in case.items():
            if isinstance(answer, dict):
                requests.append({"text": case["text"], **greedy, **({} if name == "greedy" else whole["settings"]["beam"])})
                answers.append(answer)
    result = tool.run("transept", "generate", artifact, stdin="".join(json.dumps(request) + "\n" for request in requests))
    expect_success(result, "generate")
    got = [json.loads(line)["hypotheses"][0] for line in result.stdout.splitlines()]
    expect(len(got) == len(answers) >= 10, f"{len(got)} answers, expected {len(answers)}")
    for request, hypothesis, answer in zip(requests, got, answers):
        ids = answer["output_ids"][: len(hypothesis["ids"])]  # those of a batch are padded
        expect(hypothesis["ids"] == ids and hypothesis["text"] == answer["text"], f"{request}: {hypothesis}, expected {answer}")


def tests(tool, root):
    for name in ("bart-tiny", "t5-tiny"):
        yield f"text {name}", lambda tmp, name=name: text_to_text(tool, os.path.join(root, "tests/models", name), tmp)
    for name in ("t5", "t5-slow", "bart-slow", "bert-slow", "nllb"):
        yield f"text {name}", lambda tmp, name=name: ids_reach_the_model(tool, root, name, tmp)
    yield "text languages", lambda tmp: languages(tool, root, tmp)
    yield "text tasks", lambda tmp: tasks(tool, root, tmp)
    yield "text refused part", lambda tmp: refused_part(tool, root, tmp)
