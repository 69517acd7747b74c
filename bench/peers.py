#!/usr/bin/env python3
"""One peer as a process: loads the model, prints a line of JSON, then answers each line of input with one timed call.

A process of its own per setting, because thread counts and CPU levels are read once, at load.
"""
import argparse
import json
import pathlib
import resource
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent


def made_up(args):
    """Source ids [batch, source], and the config of the checkpoint."""
    config = json.loads((args.model / "hf/config.json").read_text())
    return np.random.default_rng(0).integers(1, config["vocab_size"] - 100, (args.batch, args.source)), config


def test_words():
    """Those of models/g2p that it was not trained on."""
    with open(ROOT / "tests/e2e/g2p/test.tsv") as file:
        return [line.split("\t")[0] for line in file][1:]


class CTranslate2:
    """Translator.translate_batch or Whisper.generate; encoder and search are inside."""

    TYPES = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}

    def __init__(self, args):
        import ctranslate2
        self.version, self.args = ctranslate2.__version__, args
        kind = ctranslate2.models.Whisper if args.kind == "clip" else ctranslate2.Translator
        replicas = args.threads if args.kind == "words" else 1
        self.model = kind(str(args.model / "ct2"), device="cpu", compute_type=self.TYPES[args.precision],
                          inter_threads=replicas, intra_threads=args.threads // replicas)
        if args.kind == "clip":
            features = np.load(args.model / "clip.npz")["input_features"]
            self.features = ctranslate2.StorageView.from_array(features)
            self.start = ["<|startoftranscript|>", "<|notimestamps|>"]  # without the latter, rules for timestamps apply
        elif args.kind == "words":
            import sentencepiece
            pieces = sentencepiece.SentencePieceProcessor(str(args.model / "hf/source.spm"))
            self.source = [pieces.encode(word, out_type=str) + ["</s>"] for word in test_words()]
        else:
            self.source = [[f"t{i}" for i in row[:-1]] + ["</s>"] for row in made_up(args)[0]]

    def __call__(self):
        args = self.args
        if args.kind == "clip":
            found = self.model.generate(self.features, [self.start], beam_size=args.beams, suppress_blank=False,
                                        suppress_tokens=[], max_length=2 * args.tokens)  # the prompt may have half of it
            return len(found[0].sequences_ids[0])
        if args.kind == "words":
            found = self.model.translate_batch(
                self.source, beam_size=args.beams, length_penalty=0.6 if args.beams > 1 else 1, max_decoding_length=48,
                max_batch_size=1024 if args.beams == 1 else 256)
            return len(found)
        found = self.model.translate_batch(self.source, beam_size=args.beams, max_batch_size=len(self.source),
                                           min_decoding_length=args.tokens, max_decoding_length=args.tokens)
        return sum(len(r.hypotheses[0]) for r in found)


class Generate:
    """generate() of transformers, what most users run: greedy or beams, with the keys and values of each step put behind those before."""

    def __init__(self, args):
        import torch
        import transformers
        torch.set_num_threads(args.threads)
        transformers.logging.set_verbosity_error()
        self.args, self.torch = args, torch
        self.model = self.load(transformers)
        if args.kind == "words":
            tokenizer = transformers.AutoTokenizer.from_pretrained(args.model / "hf")
            words = sorted(test_words(), key=len)
            self.calls = [tokenizer(words[at:at + args.batch], return_tensors="pt", padding=True) for at in range(0, len(words), args.batch)]
        else:
            ids = torch.from_numpy(made_up(args)[0])
            self.calls = [{"input_ids": ids, "attention_mask": torch.ones_like(ids)}]

    def __call__(self):
        args, tokens = self.args, 0
        length = {"max_new_tokens": args.tokens} | ({} if args.kind == "words" else {"min_new_tokens": args.tokens})
        with self.torch.inference_mode():
            for call in self.calls:
                found = self.model.generate(**call, **length, num_beams=args.beams, do_sample=False,
                                            length_penalty=0.6 if args.beams > 1 else 1.0)
                tokens += len(found) * (1 if args.kind == "words" else found.shape[1] - 1)
        return tokens


class PyTorch(Generate):
    def load(self, transformers):
        self.version = self.torch.__version__.split("+")[0]
        dtype = {"fp32": self.torch.float32, "bf16": self.torch.bfloat16}[self.args.precision]
        return transformers.AutoModelForSeq2SeqLM.from_pretrained(self.args.model / "hf", dtype=dtype).eval()


class Optimum(Generate):
    """ONNX Runtime below transformers."""

    def load(self, transformers):
        import importlib.metadata
        import onnxruntime
        from optimum.onnxruntime import ORTModelForSeq2SeqLM
        self.version = importlib.metadata.version("optimum-onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.args.threads, 1
        folder = self.args.model / ("onnx-int8" if self.args.precision == "int8" else "onnx")
        return ORTModelForSeq2SeqLM.from_pretrained(folder, session_options=options, use_merged=False, use_io_binding=False)


class GreedyLoop:
    """encoder, decoder, then decoder_with_past for each token, with what graph() makes of each file."""

    def __init__(self, args):
        self.args = args
        self.encoder = self.graph("encoder")
        if args.kind == "clip":
            config = json.loads((args.model / "hf/config.json").read_text())
            self.source = {"input_features": np.load(args.model / "clip.npz")["input_features"]}
        else:
            ids, config = made_up(args)
            self.source = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if args.kind != "encoder":
            if args.beams != 1:
                sys.exit(f"{args.peer}: no beam search here")
            self.first, self.step = self.graph("decoder"), self.graph("decoder_with_past")
            self.start = np.full((args.batch, 1), config["decoder_start_token_id"])

    def path(self, name):
        return str(self.args.model / ("onnx-int8" if self.args.precision == "int8" else "onnx") / f"{name}_model.onnx")

    def __call__(self):
        hidden = self.encoder(self.source)["last_hidden_state"]
        if self.args.kind == "encoder":
            return self.args.batch * self.args.source
        feeds = {"input_ids": self.start, "encoder_hidden_states": hidden,
                 "encoder_attention_mask": self.source.get("attention_mask")}
        run = self.first
        for position in range(1, self.args.tokens + 1):
            results = run(feeds)
            token = self.values(results.pop("logits"))[:, -1].argmax(-1)
            feeds |= {name.replace("present", "past_key_values"): value for name, value in results.items()}
            feeds |= {"input_ids": token.reshape(-1, 1), "cache_position": np.array([position])}
            run = self.step
        return self.args.batch * self.args.tokens


class OnnxRuntime(GreedyLoop):
    """Caches stay in ONNX Runtime's own buffers (io-binding), so no step copies them."""

    def graph(self, name):
        import onnxruntime
        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.args.threads, 1
        session = onnxruntime.InferenceSession(self.path(name), options, providers=["CPUExecutionProvider"])
        inputs, outputs = [i.name for i in session.get_inputs()], [o.name for o in session.get_outputs()]

        def run(feeds):
            binding = session.io_binding()
            for name in inputs:
                value = feeds[name]
                (binding.bind_cpu_input if isinstance(value, np.ndarray) else binding.bind_ortvalue_input)(name, value)
            for name in outputs:
                binding.bind_output(name)
            session.run_with_iobinding(binding)
            return dict(zip(outputs, binding.get_outputs()))
        return run

    @staticmethod
    def values(tensor):
        return tensor.numpy()


class OpenVino(GreedyLoop):
    """The hint for one request at a time, and the precision that is asked for."""

    def graph(self, name):
        import openvino
        self.version = openvino.__version__.split("-")[0]
        model = openvino.Core().compile_model(self.path(name), "CPU", {
            "INFERENCE_NUM_THREADS": self.args.threads, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[self.args.precision]})
        request = model.create_infer_request()
        inputs, outputs = [i.get_any_name() for i in model.inputs], [o.get_any_name() for o in model.outputs]

        def run(feeds):
            results = request.infer({name: feeds[name] for name in inputs}, share_inputs=True)
            return {name: results[name] for name in outputs}
        return run

    @staticmethod
    def values(tensor):
        return tensor


PEERS = {"ctranslate2": CTranslate2, "onnxruntime": OnnxRuntime, "openvino": OpenVino, "pytorch": PyTorch, "optimum": Optimum}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--kind", choices=["sentences", "encoder", "clip", "words"], default="sentences")
    parser.add_argument("--precision", choices=["fp32", "bf16", "int8"], default="fp32")
    for name, default in (("threads", 1), ("batch", 1), ("beams", 1), ("source", 32), ("tokens", 64)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    begin = time.perf_counter()
    call = PEERS[args.peer](args)
    print(json.dumps({"version": call.version, "load_s": time.perf_counter() - begin}), flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        tokens = call()
        seconds = time.perf_counter() - begin
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "tokens": tokens, "resident_bytes": resident}), flush=True)


if __name__ == "__main__":
    main()
