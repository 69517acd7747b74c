#!/usr/bin/env python3
"""export_random.py SHAPE DIR: a model of real size with random weights, as DIR/hf (checkpoint) and DIR/onnx (ordinary export).

  base          the base model of "Attention is all you need" in Marian's configuration, for the benchmarks: end of sentence
                and padding get a bias that no logit overcomes, so every output is as long as asked; also DIR/ct2 (CTranslate2)
  opus-mt       the shape of the OPUS-MT models
  nllb-600m     the shape of NLLB-200 distilled 600M; 2.5 GB of weights, in a file beside each graph

The latter two, for tests/e2e/large.py, get DIR/samples.json: what greedy search of PyTorch says to some inputs. Needs memory
for four times the weights, and disk for six times.
"""

import argparse
import json
import pathlib

import torch
from optimum.exporters.onnx import main_export
from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel


def sides(**settings):
    return {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in settings.items()}


def marian(vocabulary, **more):
    return MarianMTModel(MarianConfig(
        vocab_size=vocabulary, decoder_vocab_size=vocabulary, d_model=512, **sides(layers=6, attention_heads=8, ffn_dim=2048),
        max_position_embeddings=512, scale_embedding=True, dropout=0.0, num_beams=1, pad_token_id=vocabulary - 1, eos_token_id=0,
        decoder_start_token_id=vocabulary - 1, forced_eos_token_id=None, **more))  # fmt: skip


def build_base():
    model = marian(37000, activation_function="relu")
    model.final_logits_bias[0, [model.config.eos_token_id, model.config.pad_token_id]] = -1e4
    return model


def build_nllb():
    return M2M100ForConditionalGeneration(M2M100Config(
        vocab_size=256206, d_model=1024, **sides(layers=12, attention_heads=16, ffn_dim=4096, layerdrop=0.0), dropout=0.0,
        attention_dropout=0.0, max_position_embeddings=1024, scale_embedding=True, num_beams=1, decoder_start_token_id=2))  # fmt: skip


SHAPES = {"base": build_base, "opus-mt": lambda: marian(58101, activation_function="swish"), "nllb-600m": build_nllb}


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
    """Without a tokenizer there is no converter command for this: tokens are called t1, t2, ..."""
    from ctranslate2.converters import transformers as converters

    model.config.normalize_before = model.config.normalize_embedding = False
    loader = converters._MODEL_LOADERS["MarianConfig"]
    spec = converters.BartLoader.get_model_spec(loader, model)
    loader._remove_pad_weights(spec)
    names = ["</s>"] + [f"t{i}" for i in range(1, model.config.pad_token_id)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    for role in ("eos_token", "bos_token", "decoder_start_token"):
        setattr(spec.config, role, "</s>")
    spec.config.unk_token = "t1"
    spec.validate()
    folder.mkdir(exist_ok=True)
    spec.save(str(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("dir", type=pathlib.Path)
    arguments = parser.parse_args()
    out = arguments.dir
    torch.manual_seed(0)
    model = SHAPES[arguments.shape]().eval()
    out.mkdir(parents=True, exist_ok=True)
    if arguments.shape != "base":
        scatter(model)
        (out / "samples.json").write_text(json.dumps(samples(model), indent=1) + "\n")
    model.save_pretrained(out / "hf")
    del model
    # Merging decoders is beyond a file of 2 GB: such exports come without it.
    main_export(str(out / "hf"), output=out / "onnx", task="text2text-generation-with-past", library_name="transformers",
                do_validation=False, no_post_process=arguments.shape == "nllb-600m")  # fmt: skip
    if arguments.shape == "base":
        save_ctranslate2(MarianMTModel.from_pretrained(out / "hf").eval(), out / "ct2")


if __name__ == "__main__":
    main()
