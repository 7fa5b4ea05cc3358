#!/usr/bin/env python3
"""Trains small tokenizers with Hugging Face's tokenizers and with sentencepiece, and writes what they make of strings.

    bible gen1:1-gen9:29 </dev/null | python3 tests/golden/text/generate.py

`bible` is in Debian's package bible-kjv; its text, the King James Bible of 1611, is in the public domain. Beside this
script it writes the tokenizers' files, corpus.txt (what they were trained on) and expected.jsonl. That has a line for
each tokenizer and string:

    {"tokenizer": "gpt2", "text": "Hello", "ids": [39, 68], "decoded": "Hello"}

Lines with "cut" have the words into which a text is cut, and lines with "decode" ids that no text gives. The last line has the merges that are found in corpus.txt.
"""
import json
import os
import random
import struct
import sys

import sentencepiece
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
OTHER_TEXT = """
Smoke 🔥 and fire 🔥🔥, the family 👨‍👩‍👧‍👦 and flags 🇩🇪🇫🇷. Café, naïve, Ångström, Straße, žluťoučký kůň.
東京は日本の首都です。 北京是中国的首都。 서울은 대한민국의 수도이다. Привет, мир! Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم
It's 1 of 22, 333 of 4444 and 55,555.5 - that's 10% more; we'll see, they've seen, I'd say, don't.
int main() {\n\treturn 0;   // done\n}\n\n\n    four spaces\n        eight
"""

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
UNIGRAM, BPE = 1, 2

STRINGS = [
    "",
    " ",
    "\n",
    "a",
    "In the beginning God created the heaven and the earth.",
    "  leading and trailing  ",
    "Hello world! It's 2024, isn't it? WE'LL SEE; THEY'VE SEEN.",
    "tabs\tand\t\ttabs\r\nCRLF\r\n\r\nend",
    "runs     of   spaces\n\n\n  and lines \n \n x",
    "1 12 123 1234 12345 3.14159 1,000,000 ½ Ⅷ ٣٤٥ 一二三",
    "Café naïve Ångström Straße e\u0301 ﬁ ſ \u212a",
    "it'ſ I'LL i'Ll don'T 'S'",
    "東京は日本の首都です。北京是中国的首都。서울은 대한민국의 수도이다.",
    "Привет, мир! Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم",
    "नमस्ते दुनिया สวัสดีชาวโลก",
    "🔥🔥 👨‍👩‍👧‍👦 🇩🇪 👍🏽 \U0001F9FF",
    "zero\u200bwidth\u00a0nbsp\u3000ideographic\u2028line\u0085nel\u180emongolian\ufeffbom",
    "\x00\x01\x7f control",
    "<|endoftext|>",
    "one<|endoftext|>two <|endoftext|> three<|endoftext|><|endoftext|>",
    "<s>not</s> <unk> <pad> <|begin_of_text|>x<|eot_id|>",
    "a <mask> b<mask>  c  <mask>\n\n<mask>",
    "new_word and new_words, anew_word",
    "<0x41> ▁under▁ __ ▁▁",
    "for (int i = 0; i < 10; ++i) {\n    sum += a[i] * b[i];  // add\n}\n",
    "https://example.org/a?b=c&d=e#f user@example.org",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababababababa bcbcbcbcbcbc",
    "!!!???...,,,;;; --- ### @@@ $$$ %%% ^^^ &&& *** ((( )))",
    "ＡＢＣ full width, ㎏ ℃ ① ﷺ",
    " \u00e9\u00e8",
    "a \u180e!b \u180e\u180e",
    "①② ①③ x<mask> x<ma",
    "x" + " " * 33 + "y",
]


def trained(corpus, pre_tokenizer, vocab_size, special, alphabet=True):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [],
        show_progress=False,
    )
    tokenizer.train_from_iterator([corpus], trainer)
    return tokenizer


def gpt2(corpus):
    """vocab.json and merges.txt, which GPT-2's tokenizer reads."""
    tokenizer = trained(corpus, pre_tokenizers.ByteLevel(add_prefix_space=False), 400, ["<|endoftext|>"])
    folder = os.path.join(HERE, "gpt2")
    os.makedirs(folder, exist_ok=True)
    tokenizer.model.save(folder)
    return transformers.GPT2Tokenizer(
        vocab=os.path.join(folder, "vocab.json"), merges=os.path.join(folder, "merges.txt")
    )._tokenizer


def rearranged(tokenizer, folder, change):
    """The tokenizer of what `change` makes of the file, which is written."""
    file = json.loads(tokenizer.to_str())
    change(file)
    os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    path = os.path.join(HERE, folder, "tokenizer.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump(file, out, ensure_ascii=False, separators=(",", ":"))
        out.write("\n")
    return Tokenizer.from_file(path)


def llama3(corpus):
    """Llama 3's expression, ignore_merges and a template. Added tokens have the last ids."""
    pre = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False),
        ]
    )
    tokenizer = trained(corpus, pre, 420, [])
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True),
            processors.TemplateProcessing(
                single="<|begin_of_text|> $A",
                pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                special_tokens=[("<|begin_of_text|>", begin)],
            ),
        ]
    )

    def change(file):
        file["model"]["ignore_merges"] = True
        # Words that merges no longer make: ignore_merges finds them whole.
        file["model"]["merges"] = [m for m in file["model"]["merges"] if "".join(m) not in ("Ġand", "Ġthe", "ing")]

    return rearranged(tokenizer, "llama3", change)


def digits(corpus):
    """Digits alone, a space in front, added tokens of all kinds, and merges as strings."""
    pre = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)]
    )
    tokenizer = trained(corpus, pre, 340, ["<s>", "</s>", "<pad>", "<|endoftext|>"])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken("new_word", normalized=True), AddedToken("new_words", normalized=True),
                          AddedToken("x<ma", normalized=True)])

    def change(file):
        file["model"]["merges"] = [" ".join(merge) for merge in file["model"]["merges"]]

    return rearranged(tokenizer, "digits", change)


def pieces(corpus_path, name, **options):
    sentencepiece.SentencePieceTrainer.train(
        input=corpus_path,
        model_prefix=os.path.join(HERE, name),
        minloglevel=2,
        num_threads=1,
        **options,
    )
    os.remove(os.path.join(HERE, name + ".vocab"))
    return sentencepiece.SentencePieceProcessor(model_file=os.path.join(HERE, name + ".model"))


def varint(value):
    encoded = b""
    while value > 127:
        encoded += bytes([value & 127 | 128])
        value >>= 7
    return encoded + bytes([value])


def field(number, data):
    """A field of a protobuf: bytes, or a small number."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def by_hand(name, algorithm, types):
    """A model of these pieces, the first with the highest score; it adds and removes no space."""
    pieces_ = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]
    pieces_ += [(text, -float(i), kind) for i, (text, kind) in enumerate(types.items())]
    model = b"".join(
        field(1, field(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + field(3, kind))
        for text, score, kind in pieces_
    )
    model += field(2, field(3, algorithm)) + field(3, field(1, b"identity") + field(3, 0) + field(4, 0))
    with open(os.path.join(HERE, name + ".model"), "wb") as out:
        out.write(model)
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def main():
    corpus = sys.stdin.read() + OTHER_TEXT
    corpus_path = os.path.join(HERE, "corpus.txt")
    with open(corpus_path, "w", encoding="utf-8", newline="") as out:
        out.write(corpus)

    lines = []

    def emit(**line):
        lines.append(json.dumps(line, ensure_ascii=False))

    for name, tokenizer in [("gpt2", gpt2(corpus)), ("llama3", llama3(corpus)), ("digits", digits(corpus))]:
        for text in STRINGS:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            emit(tokenizer=name, text=text, ids=ids, decoded=tokenizer.decode(ids, skip_special_tokens=False))
            if name != "digits":  # which puts spaces in front
                words = tokenizer.pre_tokenizer.pre_tokenize_str(text)
                emit(tokenizer=name, cut=text, words=[text[begin:end] for _, (begin, end) in words])

    rules = os.path.join(HERE, "rules.tsv")
    with open(rules, "w") as out:  # code points: what stands in the text, what it becomes
        for old, new in [("ﬁ", "fi"), ("①", "1"), ("①②", "one two"), ("\u00a0", " "), ("\u3000", " "), ("\u212a", "K"), ("e\u0301", "é"), ("\t", " ")]:
            out.write(" ".join(f"{ord(c):X}" for c in old) + "\t" + " ".join(f"{ord(c):X}" for c in new) + "\n")
    models_ = [
        # Llama 2's options.
        ("llama2", pieces(corpus_path, "llama2", model_type="bpe", vocab_size=480, byte_fallback=True,
                          split_digits=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                          allow_whitespace_only_pieces=True, character_coverage=0.995)),
        ("unigram", pieces(corpus_path, "unigram", model_type="unigram", vocab_size=300, character_coverage=0.98,
                           normalization_rule_tsv=rules, user_defined_symbols=["<mask>", "new_word"],
                           pad_id=3)),
        ("bpe_symbols", pieces(corpus_path, "bpe_symbols", model_type="bpe", vocab_size=300, character_coverage=0.98,
                               normalization_rule_name="identity", user_defined_symbols=["<mask>", "new_word", "ab"],
                               add_dummy_prefix=False)),
    ]
    os.remove(rules)
    for name, processor in models_:
        for text in STRINGS:
            ids = processor.encode(text)
            emit(tokenizer=name + ".model", text=text, ids=ids, decoded=processor.decode(ids))
        space = processor.piece_to_id("\u2581")
        draw = random.Random(7)
        for first in [[], [space], [space, space], [1, space], [0, space]]:
            for _ in range(4):
                ids = first + [draw.randrange(processor.vocab_size()) for _ in range(9)]
                emit(tokenizer=name + ".model", decode=ids, decoded=processor.decode(ids))

    # What trained models have not: a fixed piece inside of another, pieces that are not to be used.
    of_hand = [
        ("fixed", BPE, {"ab": USER_DEFINED} | dict.fromkeys(["abc", "bc", "a", "b", "c", "xa", "x"], NORMAL)),
        ("unused", BPE, {"ab": NORMAL, "cd": NORMAL, "abcd": UNUSED} | dict.fromkeys(["a", "b", "c", "d", "abcde", "e"], NORMAL)),
        ("fixed_unigram", UNIGRAM, {"ab": UNUSED, "a": NORMAL, "b": NORMAL, "ba": USER_DEFINED, "bab": NORMAL}),
    ]
    for name, algorithm, types in of_hand:
        processor = by_hand(name, algorithm, types)
        for text in ["ab", "abc", "xabc", "bc", "xa", "aabcc", "abcd", "abcde", "abcdabcd", "cdab", "abab", "bab", "babab", "zzab"]:
            ids = processor.encode(text)
            emit(tokenizer=name + ".model", text=text, ids=ids, decoded=processor.decode(ids))

    # What our trainer must find too: the merges of one that trains on all 256 bytes.
    tokenizer = trained(corpus, pre_tokenizers.ByteLevel(add_prefix_space=False), 600, [])
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    emit(trained=600, merges=[" ".join(merge) for merge in merges])

    with open(os.path.join(HERE, "expected.jsonl"), "w", encoding="utf-8") as out:
        out.write(json.dumps({"tokenizers": tokenizers.__version__, "transformers": transformers.__version__,
                              "sentencepiece": sentencepiece.__version__}) + "\n")
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
