#!/usr/bin/env python3
"""One peer as a process: loads the model, prints a line of JSON, then answers each line of input with one timed call.

A process of its own per setting, because thread counts and CPU levels are read once, at load.
"""
import argparse
import json
import pathlib
import sys
import time

import numpy as np

FIRST, LAST = 1, 36900  # source tokens are drawn from [FIRST, LAST)
START = 36999


class CTranslate2:
    """Translator.translate_batch, fp32; the encoder and the search are inside."""

    def __init__(self, args):
        import ctranslate2
        self.version = ctranslate2.__version__
        self.beams, self.tokens = args.beams, args.tokens
        self.translator = ctranslate2.Translator(str(args.model / "ct2"), device="cpu", compute_type="float32",
                                                 inter_threads=1, intra_threads=args.threads)
        draw = np.random.default_rng(0).integers(FIRST, LAST, (args.batch, args.source - 1))
        self.source = [[f"t{i}" for i in row] + ["</s>"] for row in draw]

    def __call__(self):
        results = self.translator.translate_batch(self.source, beam_size=self.beams, max_batch_size=len(self.source),
                                                  min_decoding_length=self.tokens, max_decoding_length=self.tokens)
        return sum(len(r.hypotheses[0]) for r in results)


class OnnxRuntime:
    """Greedy over decoder_with_past; caches stay in ORT's own buffers (io-binding), so no step copies them."""

    def __init__(self, args):
        import onnxruntime
        self.ort = onnxruntime
        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
        names = ["encoder"] if args.encoder else ["encoder", "decoder", "decoder_with_past"]
        self.session = {n: onnxruntime.InferenceSession(str(args.model / "onnx" / f"{n}_model.onnx"), options,
                                                        providers=["CPUExecutionProvider"]) for n in names}
        if not args.encoder and args.beams != 1:
            sys.exit("onnxruntime: no beam search here")
        self.ids = np.random.default_rng(0).integers(FIRST, LAST, (args.batch, args.source))
        self.mask = np.ones_like(self.ids)
        self.tokens, self.encoder_only = args.tokens, args.encoder

    def __call__(self):
        hidden = self.session["encoder"].run(None, {"input_ids": self.ids, "attention_mask": self.mask})[0]
        if self.encoder_only:
            return self.ids.size
        rows = len(self.ids)
        first, step = self.session["decoder"], self.session["decoder_with_past"]
        results = dict(zip([o.name for o in first.get_outputs()], first.run(None, {
            "input_ids": np.full((rows, 1), START), "encoder_hidden_states": hidden,
            "encoder_attention_mask": self.mask})))
        token = results.pop("logits")[:, -1].argmax(-1)
        past = {n.replace("present", "past_key_values"): self.ort.OrtValue.ortvalue_from_numpy(v)
                for n, v in results.items()}
        wanted = {i.name for i in step.get_inputs()}
        outputs = [o.name for o in step.get_outputs()]
        for _ in range(self.tokens - 1):
            binding = step.io_binding()
            binding.bind_cpu_input("input_ids", token.reshape(rows, 1))
            binding.bind_cpu_input("encoder_attention_mask", self.mask)
            if "encoder_hidden_states" in wanted:
                binding.bind_cpu_input("encoder_hidden_states", hidden)
            for name in wanted & past.keys():
                binding.bind_ortvalue_input(name, past[name])
            for name in outputs:
                binding.bind_output(name)
            step.run_with_iobinding(binding)
            results = dict(zip(outputs, binding.get_outputs()))
            token = results.pop("logits").numpy()[:, -1].argmax(-1)
            past |= {n.replace("present", "past_key_values"): v for n, v in results.items()}
        return rows * self.tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=["ctranslate2", "onnxruntime"])
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--encoder", action="store_true", help="the encoder only")
    for name, default in (("threads", 1), ("batch", 1), ("beams", 1), ("source", 32), ("tokens", 64)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    begin = time.perf_counter()
    call = {"ctranslate2": CTranslate2, "onnxruntime": OnnxRuntime}[args.peer](args)
    print(json.dumps({"version": call.version, "load_s": time.perf_counter() - begin}), flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        tokens = call()
        print(json.dumps({"seconds": time.perf_counter() - begin, "tokens": tokens}), flush=True)


if __name__ == "__main__":
    main()
