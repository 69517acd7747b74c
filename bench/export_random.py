#!/usr/bin/env python3
"""export_random.py SHAPE DIR: a model of real size with random weights, as DIR/hf (checkpoint) and DIR/onnx (ordinary export).

For the benchmarks, with DIR/ct2 (CTranslate2) and DIR/onnx-int8 (ONNX Runtime's dynamic quantisation) beside it:
  base          the base model of "Attention is all you need" in Marian's configuration: end of sentence and padding get a bias
                that no logit overcomes, so every output is as long as asked
  encoder       its encoder for 4,096 positions, with few words; DIR/onnx alone
  whisper       the shape of Whisper tiny.en; DIR/clip.npz holds features of 30 seconds
  g2p           models/g2p, whose weights are not random: its checkpoint is put together from the export

For tests/e2e/large.py, with DIR/samples.json, what greedy search of PyTorch says to some inputs:
  opus-mt       the shape of the OPUS-MT models
  nllb-600m     the shape of NLLB-200 distilled 600M; 2.5 GB of weights, in a file beside each graph

Needs memory for four times the weights, and disk for six times.
"""

import argparse
import json
import pathlib
import shutil

import numpy as np
import onnx
import torch
from optimum.exporters.onnx import main_export
from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel, WhisperConfig, WhisperForConditionalGeneration

G2P = pathlib.Path(__file__).resolve().parent.parent / "models/g2p"


def sides(**settings):
    return {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in settings.items()}


def marian(vocabulary, positions=512, **more):
    return MarianMTModel(MarianConfig(
        vocab_size=vocabulary, decoder_vocab_size=vocabulary, d_model=512, **sides(layers=6, attention_heads=8, ffn_dim=2048),
        max_position_embeddings=positions, scale_embedding=True, dropout=0.0, num_beams=1, pad_token_id=vocabulary - 1, eos_token_id=0,
        decoder_start_token_id=vocabulary - 1, forced_eos_token_id=None, **more))  # fmt: skip


def build_base():
    model = marian(37000, activation_function="relu")
    model.final_logits_bias[0, [model.config.eos_token_id, model.config.pad_token_id]] = -1e4
    return model


def build_nllb():
    return M2M100ForConditionalGeneration(M2M100Config(
        vocab_size=256206, d_model=1024, **sides(layers=12, attention_heads=16, ffn_dim=4096, layerdrop=0.0), dropout=0.0,
        attention_dropout=0.0, max_position_embeddings=1024, scale_embedding=True, num_beams=1, decoder_start_token_id=2))  # fmt: skip


def build_whisper():
    """No token is suppressed, and none ends a text but for the unlikely id 50256."""
    return WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=51864, d_model=384, **sides(layers=4, attention_heads=6, ffn_dim=1536), num_mel_bins=80, max_source_positions=1500,
        max_target_positions=448, decoder_start_token_id=50257, bos_token_id=50256, eos_token_id=50256, pad_token_id=50256,
        begin_suppress_tokens=None, suppress_tokens=None))  # fmt: skip


def tensors_of(graph, prefix):
    """Constants by the checkpoint's names; exporters transpose and rename those of products, whose nodes say what they are."""
    own = {t.name.removesuffix("_merged_0"): onnx.numpy_helper.to_array(t) for t in graph.initializer}
    found = {prefix + name: value for name, value in own.items()}
    graphs = [graph]
    while graphs:
        inner = graphs.pop()
        graphs += [a.g for node in inner.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
        for node in inner.node:
            value = own.get(node.input[1].removesuffix("_merged_0")) if node.op_type == "MatMul" else None
            if value is not None:
                found[prefix + node.name.strip("/").removesuffix("/MatMul").replace("/", ".") + ".weight"] = value.T
    return found


def build_g2p():
    model = MarianMTModel(MarianConfig.from_pretrained(G2P))
    weights = tensors_of(onnx.load(G2P / "encoder_model.onnx").graph, "model.encoder.")
    weights |= tensors_of(onnx.load(G2P / "decoder_model_merged.onnx").graph, "")
    weights["model.decoder.embed_tokens.weight"] = weights["model.shared.weight"]
    missing = model.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in weights.items() if "::" not in k}, strict=False)
    assert not missing.missing_keys and not missing.unexpected_keys, missing
    return model


SHAPES = {
    "base": build_base, "encoder": lambda: marian(1000, positions=4096, activation_function="relu"), "whisper": build_whisper,
    "g2p": build_g2p, "opus-mt": lambda: marian(58101, activation_function="swish"), "nllb-600m": build_nllb,
}  # fmt: skip


def scatter(model):
    """Weights five times as wide as a fresh model's, whose every answer is the token before."""
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, torch.nn.Linear) and layer is not model.get_output_embeddings():
                layer.weight.mul_(5)


# No token twice: random layers say the same one again and again.
SETTINGS = {"max_length": 17, "num_beams": 1, "no_repeat_ngram_size": 1}


def samples(model):
    """Inputs of several lengths, each on its own, and the ids of greedy search; how many bytes of weights there are."""
    generator = torch.Generator().manual_seed(1)
    requests = []
    for length in (9, 23, 1):
        ids = torch.randint(10, 30000, (1, length), generator=generator)
        with torch.no_grad():
            found = model.generate(ids, do_sample=False, **SETTINGS)
        requests.append({"input_ids": ids[0].tolist(), "ids": found[0].tolist()})
    weights = {weight.data_ptr(): weight.nbytes for weight in model.parameters()}
    return {"weight_bytes": sum(weights.values()), "settings": SETTINGS, "requests": requests}


def save_ctranslate2(model, folder):
    """Without a tokenizer there is no converter command for this: tokens are called t0, t1, ... but for those with a role."""
    from ctranslate2.converters import transformers as converters

    whisper = isinstance(model, WhisperForConditionalGeneration)
    loader = converters._MODEL_LOADERS[type(model.config).__name__]
    names = [f"t{i}" for i in range(model.config.vocab_size)]
    names[model.config.eos_token_id] = "<|endoftext|>" if whisper else "</s>"
    if whisper:
        roles = {50257: "startoftranscript", 50358: "transcribe", 50357: "translate", 50360: "startofprev", 50361: "nospeech", 50362: "notimestamps"}
        for token, role in roles.items():
            names[token] = f"<|{role}|>"
        spec = loader.get_model_spec(model)
        spec.register_vocabulary(names)
        spec.config.suppress_ids = spec.config.suppress_ids_begin = spec.config.alignment_heads = spec.config.lang_ids = []
    else:
        model.config.normalize_before = model.config.normalize_embedding = False
        spec = converters.BartLoader.get_model_spec(loader, model)
        loader._remove_pad_weights(spec)
        spec.register_source_vocabulary(names[:-1])  # the last one is padding
        spec.register_target_vocabulary(names[:-1])
        for role in ("eos_token", "bos_token", "decoder_start_token"):
            setattr(spec.config, role, "</s>")
        spec.config.unk_token = "t1"
    spec.validate()
    folder.mkdir(exist_ok=True)
    spec.save(str(folder))


def save_int8(folder, out):
    """As ONNX Runtime's documents say for Transformers: products only, a scale per column."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    out.mkdir(exist_ok=True)
    for name in ("encoder_model.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx"):
        quantize_dynamic(folder / name, out / name, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "Gather"])
    for name in ("config.json", "generation_config.json"):
        shutil.copy(folder / name, out)


def save_g2p(model, out):
    from ctranslate2.converters import TransformersConverter

    model.save_pretrained(out / "hf")
    for name in ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(G2P / name, out / "hf")
    TransformersConverter(str(out / "hf")).convert(str(out / "ct2"), force=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("dir", type=pathlib.Path)
    arguments = parser.parse_args()
    out, shape = arguments.dir, arguments.shape
    torch.manual_seed(0)
    model = SHAPES[shape]().eval()
    out.mkdir(parents=True, exist_ok=True)
    if shape == "g2p":
        return save_g2p(model, out)
    if shape in ("opus-mt", "nllb-600m"):
        scatter(model)
        (out / "samples.json").write_text(json.dumps(samples(model), indent=1) + "\n")
    model.save_pretrained(out / "hf")
    kind = type(model)
    del model
    task = "automatic-speech-recognition" if shape == "whisper" else "text2text-generation"
    # Merging decoders is beyond a file of 2 GB: such exports come without it.
    main_export(str(out / "hf"), output=out / "onnx", task=task + "-with-past", library_name="transformers",
                do_validation=False, no_post_process=shape == "nllb-600m")  # fmt: skip
    if shape in ("base", "whisper"):
        save_ctranslate2(kind.from_pretrained(out / "hf").eval(), out / "ct2")
        save_int8(out / "onnx", out / "onnx-int8")
    if shape == "whisper":
        np.savez(out / "clip.npz", input_features=np.random.default_rng(0).standard_normal((1, 80, 3000), np.float32))


if __name__ == "__main__":
    main()
