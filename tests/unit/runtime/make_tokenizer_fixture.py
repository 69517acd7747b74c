#!/usr/bin/env python3
"""Makes fixtures/tokenizers: small tokenizers of the families and what transformers and tokenizers compute with them.

Needs transformers 4.57, tokenizers 0.22 and sentencepiece 0.2. The vocabularies differ a little from run to run: the
trainers of tokenizers break ties at random.

usage: make_tokenizer_fixture.py [FOLDER]
"""
import contextlib
import io
import json
import logging
import os
import random
import re
import shutil
import sys
import tempfile
import warnings

import sentencepiece
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
logging.disable(logging.WARNING)

CORPUS = """the small house stands near the river and the old bridge
a new garden is behind the house, and the children play there in the evening
we don't know why they've left; it's raining again, isn't it?
der kleine Hund läuft über die Straße und bellt laut
das alte Haus steht am Fluß, und die Kinder spielen im Garten
la petite maison est près de la rivière, où l'été est très chaud
il a été élevé à l'école française, n'est-ce pas?
el niño pequeño vive en la casa junto al río con su señora
mały dom stoi nad rzeką i dzieci bawią się w ogrodzie
маленький дом стоит у реки, и дети играют в саду
το μικρό σπίτι είναι κοντά στο ποτάμι
孩子们在花园里玩耍 小房子在河边
子供たちは庭で遊んでいます
The Small House Stands Near The River. It costs 1,234.50 euro in 2024!
numbers 0 1 2 3 4 5 6 7 8 9 10 11 12 100 1000 2023 3.14 42
punctuation: (round) [square] {curly} "quoted" 'single' - dash — em… / \\ | & % $ # @ ~ ^ + = * < >
""".splitlines()

# What users send: composed and decomposed accents, scripts, emoji, control characters, special tokens spelt out …
TEXTS = [
    "", " ", "   ", "\n", "a", "A", "the small house stands near the river", "The Small House",
    "  two  leading and   inner spaces ", "trailing   ", "tab\tand\nnewline\r\nhere", "don't we've it's they'll I'm he'd 'S",
    "caf\u00e9 na\u00efve \u00fcber Stra\u00dfe", "cafe\u0301 decomposed", "e\u0301\u0323 two marks e\u0323\u0301",
    "\uff26\uff55\uff4c\uff4c\uff57\uff49\uff44\uff54\uff48 \u2460 \ufb01 ligature \u00bd \u2075", "\u4f60\u597d\u4e16\u754c \u5b69\u5b50 mixed \u4e2d\u6587text",
    "\u5b50\u4f9b\u305f\u3061\u306f\u5ead\u3067", "\u30ab\u3099 \u30ac \uff76\uff9e", "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0130stanbul \u0131 I\u0307 \u01c5 \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u1e9e",
    "emoji \U0001f600 and \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd \u2764\ufe0f \U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea",
    "nbsp\u00a0narrow\u202fzwsp\u200bword\u2060bom\ufeff soft\u00adhyphen", "line\u2028sep\u2029para\u0085next\u000bvt\u000cff",
    "control\u0001\u0007\u001b[0m\u007f\u009f end", "replacement \ufffd private \ue000 unassigned \u0378 plane \U0001f9ff", "\u0001", "\u200b",
    "x" * 130, "antidisestablishmentarianism" * 9, "the " * 40, "a" * 60 + "\u0301" * 30, "1234567890 12 3.14 1,000,000 \u0661\u0662\u0663 \u216b",
    "semi;colon: (round) [square] {curly} \"quoted\" 'single' a-b_c/d\\e|f&g%h$i#j@k~l^m+n=o*p<q>r`s", "\u2018curly\u2019 \u201cquotes\u201d \u2014 dash, \u00bfqu\u00e9? \u00a1s\u00ed!",
    "a </s> b <s>c<pad> <unk> <mask> d", "<mask>", " <mask> ", "</s></s>", "x<mask>y <mask> , z", "[CLS] a [SEP] [MASK] [PAD] [UNK] b",
    "<|endoftext|> <|startoftranscript|><|en|> <|0.00|> hi <|2.50|>", "<extra_id_0> and <extra_id_1>x <extra_id_2>", "<mask_1> <mask_2> <unk_5>",
    "en_XX de_DE eng_Latn fra_Latn __en__ __fr__ >>fra<<", "\u2581the \u2581 house\u2581 \u2581\u2581x", "\u0120the \u010a \u00c3\u00a9", "<0x41><0x0A> <0xZZ>",
    "##ing un##known", "hello world . how are you ? i do n't know , he 's here !", "new_tok NEW_TOK new_token xnew_toky  new_tok  end", "  <new special>  spaced",
    "a  b\u3000c\u2003d\u1680e", "\u00c5 \u212b A\u030a \u2126 \u03a9 \u1e69 s\u0323\u0307 s\u0307\u0323", "Mixed\u4e2dCJK\u6587and\u30ab\u30bf\u30ab\u30ca123", "...!!!???,,,", "\r\n\r\n a\r b",
]

MARK = "\u2581"
BYTE_CHARS = transformers.models.gpt2.tokenization_gpt2.bytes_to_unicode()


class Fixture:
    def __init__(self, folder):
        self.folder = folder
        self.entries = []
        self.random = random.Random(5)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())

    def decodes(self, tokenizer, count=14):
        """Sequences of random ids, special ones among them."""
        size, cases = len(tokenizer), []
        for length in range(count):
            ids = [self.random.randrange(size) for _ in range(length * 2)]
            if length % 3 == 0 and tokenizer.all_special_ids:
                ids[length // 2:length // 2] = self.random.sample(sorted(set(tokenizer.all_special_ids)), 1)
            cases.append({"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=True)})
        return cases

    def add(self, name, kind, tokenizer, files, config, languages=(), texts=TEXTS):
        """`files` maps names to paths in the fixture; `languages` are pairs of source and target."""
        entry = {"name": name, "kind": kind, "files": files, "config": config, "cases": [], "decode": self.decodes(tokenizer)}
        for source, target in languages or [("", "")]:
            if source:
                tokenizer.src_lang, tokenizer.tgt_lang = source, target
            ids = [tokenizer(text).input_ids for text in texts]
            case = {"side": "source", "source_lang": source, "target_lang": target, "ids": ids,
                    "decoded": [tokenizer.decode(one, skip_special_tokens=True) for one in ids]}
            entry["cases"].append(case)
            if source:
                entry["cases"].append({"side": "target", "source_lang": source, "target_lang": target,
                                       "ids": [tokenizer(text_target=text).input_ids for text in texts[:10]]})
        self.entries.append(entry)

    def saved(self, name, tokenizer, leave=(), extra=None):
        """Saves with transformers; returns the configuration and the saved files' contents."""
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save_pretrained(folder)
            contents = {}
            for file in sorted(os.listdir(folder)):
                with open(os.path.join(folder, file), "rb") as stream:
                    contents[file] = stream.read()
        config = json.loads(contents["tokenizer_config.json"])
        config.update(extra or {})
        return config, contents


def reload(cls, files, config):
    """The class as it loads a folder with these files and this configuration."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
            json.dump(config, file)
        return cls.from_pretrained(folder)


def train_bpe(size=420, specials=()):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False,
                                                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(tokenizer.to_str())["model"]
    merges = "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in model["merges"])
    return json.dumps(model["vocab"], ensure_ascii=False).encode(), merges.encode()


def train_spm(rules=None, **options):
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # the model holds the name of the rules' file
        if rules is not None:
            options["normalization_rule_tsv"] = "rules.tsv"
            with open("rules.tsv", "w") as file:
                for source, target in rules:
                    file.write(" ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in target) + "\n")
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=options.pop("vocab_size", 300),
                                                 character_coverage=0.995, hard_vocab_limit=False, minloglevel=2, num_threads=1, **options)
    return model.getvalue()


def small_rules():
    """A few of the rules of nmt_nfkc, so that the map stays small."""
    pairs = [("\t", " "), ("\n", " "), ("\r", " "), ("\u00a0", " "), ("\u3000", " "), ("\u200b", " "), ("\ufeff", ""), ("\u0001", ""),
             ("\ufb01", "fi"), ("\u2460", "1"), ("\u00bd", "1\u20442"), ("e\u0301", "\u00e9"), ("a\u0308", "\u00e4"), ("\u30ab\u3099", "\u30ac"),
             ("\u212b", "\u00c5"), ("A\u030a", "\u00c5")]
    pairs += [(chr(0xFF21 + i), chr(0x41 + i)) for i in range(26)] + [(chr(0xFF41 + i), chr(0x61 + i)) for i in range(26)]
    return pairs


def compact(data):
    return json.dumps(json.loads(data), ensure_ascii=False, separators=(",", ":")).encode()


def more_tokens():
    return [AddedToken("new_tok", single_word=True), AddedToken("NEW_TOK", lstrip=True, rstrip=True), AddedToken("new_token", normalized=False)]


def add_fast(fixture, name, tokenizer, extra=None, **options):
    """A tokenizer as its tokenizer.json, read again by the class that its configuration names."""
    config, contents = fixture.saved(name, tokenizer, extra=extra)
    path = f"{name}.json"
    fixture.write(path, compact(contents["tokenizer.json"]))
    again = reload(type(tokenizer), {**contents, "tokenizer.json": contents["tokenizer.json"]}, config)
    fixture.add(name, "tokenizer.json", again, {"tokenizer.json": path}, config, **options)


def add_slow(fixture, name, kind, tokenizer, files, **options):
    config, contents = fixture.saved(name, tokenizer)
    contents = {key: value for key, value in contents.items() if key not in ("tokenizer_config.json", "tokenizer.json")}
    again = reload(type(tokenizer), contents, config)
    fixture.add(name, kind, again, files, config, **options)


def bpe_families(fixture):
    vocab, merges = train_bpe(specials=["<s>", "<pad>", "</s>", "<unk>"])
    table = json.loads(vocab)
    for token in ("<mask>", "<|endoftext|>"):
        table[token] = len(table)
    vocab = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
    fixture.write("vocab.json", vocab)
    fixture.write("merges.txt", merges)
    files = {"vocab.json": "vocab.json", "merges.txt": "merges.txt"}
    folder = tempfile.mkdtemp()
    paths = []
    for file, data in (("vocab.json", vocab), ("merges.txt", merges)):
        paths.append(os.path.join(folder, file))
        with open(paths[-1], "wb") as stream:
            stream.write(data)
    t = transformers
    for name, slow, fast, options in (("bart", t.BartTokenizer, t.BartTokenizerFast, {}), ("trocr", t.RobertaTokenizer, t.RobertaTokenizerFast, {}),
                                      ("blenderbot", t.BlenderbotTokenizer, t.BlenderbotTokenizerFast, {"add_prefix_space": True}),
                                      ("gpt2", t.GPT2Tokenizer, t.GPT2TokenizerFast, {}), ("whisper", t.WhisperTokenizer, t.WhisperTokenizerFast, {})):
        for suffix, cls in (("", fast), ("-slow", slow)):
            tokenizer = cls(*paths, **options)
            if name == "whisper":
                tokens = ["<|startoftranscript|>", "<|en|>", "<|fr|>", "<|translate|>", "<|transcribe|>", "<|startofprev|>", "<|notimestamps|>"]
                tokenizer.add_special_tokens({"additional_special_tokens": tokens})
                tokenizer.add_tokens([AddedToken(f"<|{i * 0.02:.2f}|>") for i in range(130)])
            if name == "trocr":
                tokenizer.add_tokens(more_tokens())
                tokenizer.add_special_tokens({"additional_special_tokens": [AddedToken("<new special>", lstrip=True, rstrip=True)]})
            if suffix:
                add_slow(fixture, name + suffix, "byte-level-bpe", tokenizer, files)
            else:
                add_fast(fixture, name, tokenizer)
    shutil.rmtree(folder)


def sentencepiece_families(fixture):
    t = transformers
    t5 = train_spm(small_rules(), pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    fair = train_spm(small_rules(), unk_id=0, bos_id=1, eos_id=2)
    pegasus = train_spm(small_rules(), pad_id=0, eos_id=1, unk_id=2, bos_id=-1, add_dummy_prefix=True)
    fallback = train_spm(small_rules(), pad_id=0, eos_id=1, unk_id=2, bos_id=-1, byte_fallback=True, model_type="bpe", vocab_size=520)
    folder = tempfile.mkdtemp()

    def model(name, data):
        fixture.write(name, data)
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    paths = {name: model(name + ".model", data) for name, data in (("t5", t5), ("fair", fair), ("pegasus", pegasus), ("bytes", fallback))}
    for name, legacy in (("t5", True), ("t5-new", False)):
        options = {"extra_ids": 4, "legacy": legacy}
        add_slow(fixture, name + "-slow", "sentencepiece", t.T5Tokenizer(paths["t5"], **options), {"spiece.model": "t5.model"})
        if legacy:
            add_fast(fixture, name, t.T5TokenizerFast(paths["t5"], **options))
    add_slow(fixture, "t5-bytes-slow", "sentencepiece", t.T5Tokenizer(paths["bytes"], extra_ids=3, legacy=True), {"spiece.model": "bytes.model"})
    for name, slow, fast, options, pairs in (
            ("mbart", t.MBartTokenizer, t.MBartTokenizerFast, {"src_lang": "en_XX", "tgt_lang": "ro_RO"}, [("en_XX", "ro_RO"), ("de_DE", "fr_XX")]),
            ("mbart50", t.MBart50Tokenizer, t.MBart50TokenizerFast, {"src_lang": "en_XX"}, [("en_XX", "ro_RO"), ("sl_SI", "gl_ES")]),
            ("nllb", t.NllbTokenizer, t.NllbTokenizerFast, {"additional_special_tokens": ["deu_Latn", "eng_Latn", "fra_Latn"], "src_lang": "eng_Latn", "tgt_lang": "fra_Latn"},
             [("eng_Latn", "fra_Latn"), ("deu_Latn", "eng_Latn")]),
            ("nllb-legacy", t.NllbTokenizer, t.NllbTokenizerFast, {"additional_special_tokens": ["eng_Latn", "fra_Latn"], "src_lang": "eng_Latn", "tgt_lang": "fra_Latn", "legacy_behaviour": True},
             [("eng_Latn", "fra_Latn")])):
        add_slow(fixture, name + "-slow", "sentencepiece", slow(paths["fair"], **options), {"sentencepiece.bpe.model": "fair.model"}, languages=pairs)
        if name != "nllb-legacy":
            add_fast(fixture, name, fast(paths["fair"], **options), languages=pairs)
    add_slow(fixture, "xlm-roberta-slow", "sentencepiece", t.XLMRobertaTokenizer(paths["fair"]), {"sentencepiece.bpe.model": "fair.model"})
    add_fast(fixture, "xlm-roberta", t.XLMRobertaTokenizerFast(paths["fair"]))
    add_slow(fixture, "pegasus-slow", "sentencepiece", t.PegasusTokenizer(paths["pegasus"]), {"spiece.model": "pegasus.model"})
    add_fast(fixture, "pegasus", t.PegasusTokenizerFast(paths["pegasus"]))

    processor = sentencepiece.SentencePieceProcessor(model_proto=fair)
    pieces = ["<s>", "<pad>", "</s>", "<unk>"] + [processor.id_to_piece(i) for i in range(3, processor.get_piece_size() - 5)]
    fixture.write("m2m100.vocab.json", json.dumps({piece: i for i, piece in enumerate(pieces)}, ensure_ascii=False, separators=(",", ":")))
    add_slow(fixture, "m2m100-slow", "sentencepiece",
             t.M2M100Tokenizer(os.path.join(fixture.folder, "m2m100.vocab.json"), paths["fair"], src_lang="en", tgt_lang="fr"),
             {"vocab.json": "m2m100.vocab.json", "sentencepiece.bpe.model": "fair.model"}, languages=[("en", "fr"), ("zu", "zh")])
    shutil.rmtree(folder)


def bert(fixture):
    trained = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer(lowercase=False)
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trained.train_from_iterator(CORPUS + [line.lower() for line in CORPUS],
                                trainers.WordPieceTrainer(vocab_size=420, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    vocab = [token for token, _ in sorted(trained.get_vocab().items(), key=lambda item: item[1])]
    data = "".join(token + "\n" for token in vocab)
    fixture.write("vocab.txt", data)
    path = os.path.join(fixture.folder, "vocab.txt")
    for name, options in (("bert", {}), ("bert-cased", {"do_lower_case": False}), ("bert-accents", {"strip_accents": False, "tokenize_chinese_chars": False})):
        add_slow(fixture, name + "-slow", "wordpiece", transformers.BertTokenizer(path, **options), {"vocab.txt": "vocab.txt"})
        add_fast(fixture, name, transformers.BertTokenizerFast(path, **options))


def parts(fixture):
    """Parts of tokenizer.json one by one, over models that are as small as can be."""
    words = sorted({word for line in CORPUS for word in re.findall(r"\w+|[^\w\s]", line)})
    chars = sorted({c for text in TEXTS + CORPUS for c in text if c.isprintable() and ord(c) < 0x3100} - {" "})
    byte_chars = sorted(set(BYTE_CHARS.values()))

    def unigram():
        pieces = [("<unk>", 0.0)] + [(c, -9.0 - i * 0.01) for i, c in enumerate([MARK] + chars)]
        pieces += [(MARK + w, -5.0 - i * 0.013) for i, w in enumerate(words)] + [(w[1:], -7.0 - i * 0.017) for i, w in enumerate(words) if len(w) > 2]
        seen, unique = set(), []
        for piece, score in pieces:
            if piece not in seen:
                seen.add(piece)
                unique.append((piece, score))
        return unique

    def bpe(**options):
        trained = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", **options))
        trained.pre_tokenizer = pre_tokenizers.Whitespace()
        extra = {key: options[key] for key in ("continuing_subword_prefix", "end_of_word_suffix") if key in options}
        trained.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=230, special_tokens=["<unk>"], show_progress=False, **extra))
        return trained.model

    def characters(extra=()):
        vocab = {}
        for token in ["<unk>", *extra, *chars, " ", MARK, "\u0301", "\n", "\t"]:
            vocab.setdefault(token, len(vocab))
        return vocab

    def case(name, model, normalizer=None, pre_tokenizer=None, processor=None, decoder=None, added=(), texts=TEXTS, edit=None):
        made = tokenizers.Tokenizer(model)
        if normalizer:
            made.normalizer = normalizer
        if pre_tokenizer:
            made.pre_tokenizer = pre_tokenizer
        if processor:
            made.post_processor = processor
        if decoder:
            made.decoder = decoder
        made.add_tokens(list(added))
        document = json.loads(made.to_str())
        if edit:
            edit(document)
        path = f"part-{name}.json"
        fixture.write(path, json.dumps(document, ensure_ascii=False, separators=(",", ":")))
        fast = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(fixture.folder, path))
        fixture.add("part-" + name, "tokenizer.json", fast, {"tokenizer.json": path}, {"tokenizer_class": "PreTrainedTokenizerFast"}, texts=texts)

    n, p, d = normalizers, pre_tokenizers, decoders
    byte_tokens = [f"<0x{i:02X}>" for i in range(256)]
    bytes_vocab = characters(byte_tokens)
    merges = [(a, b) for a, b in [("t", "h"), ("th", "e"), (MARK, "the"), ("i", "n"), ("e", "r"), ("a", "n"), ("an", "d")]]
    for a, b in merges:
        bytes_vocab.setdefault(a + b, len(bytes_vocab))
    llama = {"vocab": bytes_vocab, "merges": merges, "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True}
    case("llama", models.BPE(**llama), n.Sequence([n.Prepend(MARK), n.Replace(" ", MARK)]), None,
         processors.TemplateProcessing(single="<s> $A", pair=None or "<s> $A $B", special_tokens=[("<s>", 3)]),
         d.Sequence([d.Replace(MARK, " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]), [AddedToken("</s>", special=True), AddedToken("<mask>", lstrip=True)])
    case("llama-first", models.BPE(**{**llama, "fuse_unk": False}), None, p.Metaspace(prepend_scheme="first", split=False), None,
         d.Sequence([d.Replace(MARK, " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]), [AddedToken("</s>", special=True)])
    case("merges-as-strings", models.BPE(characters(["th", "the", "in"]), [("t", "h"), ("th", "e"), ("i", "n")], unk_token="<unk>", fuse_unk=True), None, p.Whitespace(),
         edit=lambda document: document["model"].update(merges=[" ".join(pair) for pair in document["model"]["merges"]]))
    case("end-of-word", bpe(end_of_word_suffix="</w>"), n.Sequence([n.NFC(), n.Lowercase()]), p.Whitespace(), None, d.BPEDecoder("</w>"))
    case("continuing", bpe(continuing_subword_prefix="##"), n.NFKC(), p.WhitespaceSplit(), None, d.WordPiece("##", cleanup=True))
    case("ignore-merges", models.BPE({**{c: i for i, c in enumerate(byte_chars)}, "\u0120the": 256, "the": 257, "\u0120river": 258}, [], ignore_merges=True),
         None, p.Sequence([p.Split(Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated", False),
                           p.ByteLevel(add_prefix_space=False, use_regex=False)]),
         processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<b> $A", special_tokens=[("<b>", 259)])]), d.ByteLevel(),
         [AddedToken("<b>", special=True)])
    case("unigram-first", models.Unigram(unigram(), 0, False), n.Sequence([n.Nmt(), n.NFKC(), n.Replace(Regex(" {2,}"), " ")]), p.Metaspace(prepend_scheme="first"), None,
         d.Metaspace(prepend_scheme="first"), [AddedToken("<mask>", lstrip=True, special=True), AddedToken("</s>", rstrip=True)])
    case("unigram-stripped", models.Unigram(unigram(), 0, False), n.Sequence([n.Strip(), n.NFD(), n.StripAccents()]), p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="first")]),
         None, d.Metaspace(prepend_scheme="first"), [AddedToken("new_tok", single_word=True)])
    case("unigram-never", models.Unigram(unigram() + [(b, -20.0) for b in byte_tokens], 0, True), n.NFKD(), p.Metaspace(prepend_scheme="never"), None,
         d.Sequence([d.ByteFallback(), d.Metaspace(prepend_scheme="never")]))
    case("unigram-old", models.Unigram(unigram(), 0, False), None, p.Metaspace(), None, d.Metaspace(),
         edit=lambda document: document.update(pre_tokenizer={"type": "Metaspace", "replacement": MARK, "add_prefix_space": True},
                                               decoder={"type": "Metaspace", "replacement": MARK, "add_prefix_space": True}))
    level = {**{w: i + 1 for i, w in enumerate(words)}, "<unk>": 0}
    splits = {"whitespace": p.Whitespace(), "punctuation": p.Sequence([p.WhitespaceSplit(), p.Punctuation()]), "contiguous": p.Sequence([p.WhitespaceSplit(), p.Punctuation("contiguous")]),
              "removed": p.Sequence([p.WhitespaceSplit(), p.Punctuation("removed")]), "digits": p.Sequence([p.WhitespaceSplit(), p.Digits(individual_digits=False)]),
              "digit": p.Sequence([p.Digits(individual_digits=True), p.WhitespaceSplit()]), "next": p.Sequence([p.Split(" ", "merged_with_next"), p.Split(Regex(r"\p{Lu}"), "merged_with_previous")]),
              "invert": p.Split(Regex(r"[\w]+"), "removed", invert=True), "delimiter": p.CharDelimiterSplit(" "), "escaped": p.Sequence([p.Split(".", "isolated"), p.Split("(", "removed"), p.WhitespaceSplit()])}
    for name, splitter in splits.items():
        case("split-" + name, models.WordLevel(level, "<unk>"), None, splitter, processors.BertProcessing(("the", level["the"]), ("a", level["a"])))
    case("fixed", models.WordPiece(characters(), unk_token="<unk>", max_input_chars_per_word=3), n.BertNormalizer(strip_accents=True, lowercase=False),
         p.Sequence([p.WhitespaceSplit()]), processors.RobertaProcessing(("a", 5), ("b", 6)), d.WordPiece("##", cleanup=False),
         edit=lambda document: document.update(pre_tokenizer={"type": "FixedLength", "length": 3}, padding={
             "strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<unk>"},
             truncation={"direction": "Right", "max_length": 4096, "strategy": "LongestFirst", "stride": 0}))
    case("byte-level-normalizer", models.BPE({c: i for i, c in enumerate(byte_chars)}, []), n.Sequence([n.NFC(), n.ByteLevel()]), None, None, d.ByteLevel())


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures", "tokenizers")
    shutil.rmtree(target, ignore_errors=True)
    fixture = Fixture(target)
    bpe_families(fixture)
    sentencepiece_families(fixture)
    bert(fixture)
    parts(fixture)
    lines = ['{"texts":' + json.dumps(TEXTS, separators=(",", ":")) + ',\n"tokenizers":[']
    lines += [json.dumps(entry, separators=(",", ":")) + ("," if entry is not fixture.entries[-1] else "") for entry in fixture.entries]
    fixture.write("expected.json", "\n".join(lines + ["]}"]) + "\n")


if __name__ == "__main__":
    main()
