#!/usr/bin/env python3
"""export_base.py DIR: the benchmark model, as DIR/hf (checkpoint), DIR/onnx (ordinary export) and DIR/ct2 (CTranslate2).

The base model of "Attention is all you need" in Marian's configuration, with random weights: its speed does not depend
on their values. End of sentence and padding get a bias that no logit overcomes, so every output is as long as asked.
"""
import argparse
import pathlib

import torch
from ctranslate2.converters import transformers as converters
from optimum.exporters.onnx import main_export
from transformers import MarianConfig, MarianMTModel

VOCABULARY = 37000
PAD = VOCABULARY - 1
END = 0


def build():
    torch.manual_seed(0)
    sides = {}
    for side in ("encoder", "decoder"):
        sides |= {f"{side}_layers": 6, f"{side}_attention_heads": 8, f"{side}_ffn_dim": 2048}
    model = MarianMTModel(MarianConfig(
        vocab_size=VOCABULARY, decoder_vocab_size=VOCABULARY, d_model=512, **sides, activation_function="relu",
        max_position_embeddings=512, scale_embedding=True, dropout=0.0, num_beams=1,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=PAD, forced_eos_token_id=None)).eval()
    model.final_logits_bias[0, [END, PAD]] = -1e4
    return model


def save_ctranslate2(model, folder):
    """Without a tokenizer there is no converter command for this: tokens are called t1, t2, ..."""
    model.config.normalize_before = model.config.normalize_embedding = False
    loader = converters._MODEL_LOADERS["MarianConfig"]
    spec = converters.BartLoader.get_model_spec(loader, model)
    loader._remove_pad_weights(spec)
    names = ["</s>"] + [f"t{i}" for i in range(1, PAD)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    for role in ("eos_token", "bos_token", "decoder_start_token"):
        setattr(spec.config, role, "</s>")
    spec.config.unk_token = "t1"
    spec.validate()
    folder.mkdir(exist_ok=True)
    spec.save(str(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=pathlib.Path)
    out = parser.parse_args().dir
    model = build()
    model.save_pretrained(out / "hf")
    main_export(str(out / "hf"), output=out / "onnx", task="text2text-generation-with-past", library_name="transformers",
                do_validation=False)
    save_ctranslate2(MarianMTModel.from_pretrained(out / "hf").eval(), out / "ct2")


if __name__ == "__main__":
    main()
