"""Makes searchFixture.json.inc (JSON in a C++ raw string): what generate() of transformers 4.57 answers for a toy model whose logits are a hash of the prefix.

Usage: make_search_fixture.py REFERENCE_SEARCH.py > searchFixture.json.inc   (needs torch, transformers==4.57.*, numpy)

Tensor2Tensor cases and cases with ties come from the plain statements in reference_search.py; every other case is asked of
both, as far as the reference knows the settings, and they must agree.
"""
import importlib.util, json, sys
import numpy as np
import torch
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

spec = importlib.util.spec_from_file_location("reference_search", sys.argv[1])
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)
M = (1 << 64) - 1


def mix(x):  # the finaliser of splitmix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & M
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & M
    return x ^ (x >> 31)


def logits(model, seed, prefix):
    """float32; SearchFixture in SearchTest.cpp computes the same bits."""
    h = seed
    for t in prefix: h = mix(h ^ (t + 0x9E3779B97F4A7C15) & M)
    k = [mix(h + v * 0xD1342543DE82EF95 & M) >> (64 - model["bits"]) for v in range(model["vocabulary"])]
    row = (np.array(k, np.float32) / np.float32(2 ** model["bits"]) - np.float32(0.5)) * np.float32(model["scale"])
    for token, bias in model.get("bias", []): row[token] += np.float32(bias)
    return row


class Encoder(torch.nn.Module):
    def forward(self, input_ids, **_): return BaseModelOutput(last_hidden_state=input_ids[:, :, None].double())


class Toy(PreTrainedModel, GenerationMixin):
    config_class = PretrainedConfig
    main_input_name = "input_ids"

    def __init__(self, model):
        super().__init__(PretrainedConfig(is_encoder_decoder=True, vocab_size=model["vocabulary"]))
        self.toy, self.weight = model, torch.nn.Parameter(torch.zeros(1))

    def get_encoder(self): return Encoder()

    def forward(self, decoder_input_ids=None, encoder_outputs=None, **_):
        rows = [logits(self.toy, int(s), p) for s, p in zip(encoder_outputs[0][:, 0, 0], decoder_input_ids.tolist())]
        return Seq2SeqLMOutput(logits=torch.tensor(np.stack(rows))[:, None])


def ask_transformers(model, seed, settings):
    prompt, plain = settings.get("decoder_input_ids"), {k: v for k, v in settings.items() if k != "decoder_input_ids"}
    extra = {"decoder_input_ids": torch.tensor([prompt])} if prompt else {}
    config = GenerationConfig(use_cache=False, output_scores=True, return_dict_in_generate=True, **plain)
    if "pad_token_id" not in plain: config.pad_token_id = model["vocabulary"] - 1
    out = Toy(model).generate(torch.tensor([[seed]]), generation_config=config, **extra)
    eos = settings.get("eos_token_id", []); eos = eos if isinstance(eos, list) else [eos]
    rows = []
    for i, ids in enumerate(out.sequences.tolist()):
        begin = len(prompt or [0])
        end = next((j for j in range(begin, len(ids)) if ids[j] in eos), None)
        ids = ids[:end + 1] if end is not None else ids
        rows.append({"ids": ids, "score": None if out.sequences_scores is None else float(out.sequences_scores[i])} if settings.get("num_beams", 1) > 1 else {"ids": ids, "score": None})
    return rows


def ask_reference(model, seed, settings):
    step = lambda hypotheses: np.stack([logits(model, seed, h) for h in hypotheses])
    if settings.get("search") == "tensor2tensor":
        found = reference.tensor2tensor_search(step, settings["decoder_start_token_id"], settings["eos_token_id"], settings["num_beams"], settings["length_penalty"], settings["max_new_tokens"])[:settings["num_return_sequences"]]
    else:
        found = reference.transformers_search(step, settings)
    return [{"ids": list(map(int, h)), "score": None if v is None else float(v)} for h, v in found]


KNOWN = {"num_beams", "num_return_sequences", "max_length", "max_new_tokens", "min_length", "min_new_tokens", "early_stopping", "length_penalty", "no_repeat_ngram_size",
         "repetition_penalty", "suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id", "forced_eos_token_id", "decoder_start_token_id", "decoder_input_ids", "eos_token_id", "pad_token_id", "bad_words_ids"}
MODEL = {"vocabulary": 23, "bits": 24, "scale": 8, "bias": [[1, 1.5]]}
LIVELY = {"vocabulary": 23, "bits": 24, "scale": 6, "bias": [[1, -1.0]]}
BASE = {"decoder_start_token_id": 2, "eos_token_id": 1, "max_length": 12}
BEAM = {"num_beams": 4, "num_return_sequences": 4}
CASES = [
    ("greedy", MODEL, {}), ("greedy_new_tokens", LIVELY, {"max_new_tokens": 7}), ("greedy_default_length", LIVELY, {"max_length": None}),
    ("greedy_repetition", LIVELY, {"repetition_penalty": 1.8}), ("greedy_repetition_below_one", LIVELY, {"repetition_penalty": 0.7}),
    ("greedy_ngram1", LIVELY, {"no_repeat_ngram_size": 1}), ("greedy_ngram2", LIVELY, {"no_repeat_ngram_size": 2, "repetition_penalty": 0.6}),
    ("greedy_min_length", MODEL, {"min_length": 8}), ("greedy_min_new", MODEL, {"min_new_tokens": 6, "min_length": 3}),
    ("greedy_forced", LIVELY, {"forced_bos_token_id": 7, "forced_eos_token_id": 1}), ("greedy_forced_eos_list", LIVELY, {"forced_eos_token_id": [5, 1]}),
    ("greedy_suppress", LIVELY, {"suppress_tokens": [3, 4, 5, 6, 7, 8, 9], "begin_suppress_tokens": [1, 10, 11, 12]}),
    ("greedy_begin_suppress_forced_bos", LIVELY, {"forced_bos_token_id": 7, "begin_suppress_tokens": list(range(8, 20))}),
    ("greedy_bad_words", LIVELY, {"bad_words_ids": [[4], [1], [5, 6], [2, 9], [2, 3, 4]] + [[a, b] for a in range(3, 10) for b in range(3, 23)]}),
    ("greedy_prompt", LIVELY, {"decoder_input_ids": [2, 9, 4, 4], "max_new_tokens": 6, "no_repeat_ngram_size": 2, "repetition_penalty": 1.3}),
    ("greedy_prompt_begin_suppress", LIVELY, {"decoder_input_ids": [2, 9], "begin_suppress_tokens": list(range(3, 14))}),
    ("greedy_prompt_without_start", LIVELY, {"decoder_input_ids": [9, 4]}),
    ("greedy_several_eos", LIVELY, {"eos_token_id": [1, 5, 9]}), ("greedy_no_eos", LIVELY, {"eos_token_id": None, "max_length": 9}),
    ("beam", MODEL, BEAM), ("beam_long", LIVELY, BEAM), ("beam2_one", LIVELY, {"num_beams": 2}), ("beam_limit_of_three", LIVELY, {**BEAM, "max_length": 3}),
    *[(f"beam_stop_{e}_{a}", m, {**BEAM, "early_stopping": e, "length_penalty": a}) for m in (MODEL, LIVELY) for e in (False, True, "never") for a in (0.0, 0.6, 1.0, 3.0, -1.0)],
    ("beam_repetition", LIVELY, {**BEAM, "repetition_penalty": 1.8}), ("beam_ngram", LIVELY, {**BEAM, "no_repeat_ngram_size": 2, "repetition_penalty": 0.5}),
    ("beam_min_length", MODEL, {**BEAM, "min_length": 7}), ("beam_min_new", MODEL, {**BEAM, "min_new_tokens": 9}),
    ("beam_forced", LIVELY, {**BEAM, "forced_bos_token_id": 7, "forced_eos_token_id": 1}), ("beam_forced_eos_late", LIVELY, {**BEAM, "forced_eos_token_id": 1, "max_length": 6}),
    ("beam_suppress", LIVELY, {**BEAM, "suppress_tokens": [3, 4, 5, 6, 7, 8, 9], "begin_suppress_tokens": [1, 10, 11, 12]}),
    ("beam_bad_words", LIVELY, {**BEAM, "bad_words_ids": [[4], [5, 6], [3, 4, 5]] + [[a, b] for a in range(3, 10) for b in range(3, 23)]}),
    ("beam_prompt", LIVELY, {**BEAM, "decoder_input_ids": [2, 9, 4, 4], "max_new_tokens": 6, "no_repeat_ngram_size": 2, "length_penalty": 0.6}),
    ("beam_several_eos", LIVELY, {**BEAM, "eos_token_id": [1, 5, 9]}), ("beam_no_eos", LIVELY, {**BEAM, "eos_token_id": None, "max_length": 6}),
    ("beam_renormalised", LIVELY, {**BEAM, "renormalize_logits": True, "suppress_tokens": [3, 4, 5, 6, 7], "repetition_penalty": 1.5}),
    ("beam_renormalised_forced", LIVELY, {**BEAM, "renormalize_logits": True, "forced_eos_token_id": 1, "eos_token_id": [1, 5]}),
    ("beam_wide", LIVELY, {"num_beams": 9, "num_return_sequences": 9, "length_penalty": 0.6}),
]
TIES = {"vocabulary": 23, "bits": 2, "scale": 4, "bias": [[1, 1.0]]}
T2T = {"search": "tensor2tensor", "max_length": None, "max_new_tokens": 10}
REFERENCE_CASES = [
    ("ties_greedy", TIES, {}), ("ties_greedy_penalty", TIES, {"repetition_penalty": 2.0}), ("ties_beam", TIES, {**BEAM, "length_penalty": 0.6}),
    ("ties_beam_suppress", TIES, {**BEAM, "suppress_tokens": [3, 4, 5, 6, 7]}),
    *[(f"t2t_{b}_{a}", m, {**T2T, "num_beams": b, "num_return_sequences": b, "length_penalty": a}) for m in (MODEL, LIVELY) for b in (1, 2, 4) for a in (0.0, 0.6, 1.5)],
    ("t2t_short", LIVELY, {**T2T, "num_beams": 4, "num_return_sequences": 4, "length_penalty": 0.6, "max_new_tokens": 2}),
]

cases = []
for name, model, own in CASES + REFERENCE_CASES:
    settings = {k: v for k, v in {**BASE, **own}.items() if v is not None}
    case = {"name": name, "model": model, "settings": settings, "answers": []}
    for seed in range(11, 17):
        if (name, model, own) in REFERENCE_CASES:
            rows = ask_reference(model, seed, settings)
        else:
            rows = ask_transformers(model, seed, settings)
            quirk = any(len(w) > 1 and w[0] == 2 for w in settings.get("bad_words_ids", []))
            if set(settings) <= KNOWN and isinstance(settings.get("eos_token_id"), int) and not quirk and not isinstance(settings.get("forced_eos_token_id"), list) \
                    and "max_length" in settings | ({"max_length": 0} if "max_new_tokens" in settings else {}) and settings.get("decoder_input_ids", [2])[0] == 2:
                # The reference lets an end token be a bad word; transformers does not.
                plain = {**settings, "bad_words_ids": [w for w in settings.get("bad_words_ids", []) if w != [settings["eos_token_id"]]]}
                other = ask_reference(model, seed, plain)
                assert [r["ids"] for r in rows] == [r["ids"] for r in other], (name, seed, rows, other)
                assert all(a["score"] is None or abs(a["score"] - b["score"]) < 1e-4 for a, b in zip(rows, other)), (name, seed)
        case["answers"].append({"seed": seed, "hypotheses": rows})
    cases.append(case)
for case in cases:
    for answer in case["answers"]:
        for row in answer["hypotheses"]: row["score"] = None if row["score"] is None else round(row["score"], 6)
print('R"json(' + json.dumps({"cases": cases}, separators=(",", ":")).replace('{"name"', '\n{"name"').replace('{"seed"', '\n{"seed"') + ')json"')
