"""A `gpt2` vocabulary: byte-level BPE with its merges and a named pre-tokenizer."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, normalizers
from tokenizers.models import BPE

from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.gguf_import.pre_tokenizers import RULES, PreTokenizerRule
from minicpm5_mac.model.gguf_import.reading import GGUFFile
from minicpm5_mac.model.gguf_import.vocabulary import Vocabulary, add_tokens, vocabulary_failure


def pre_tokenizer_rule(file: GGUFFile) -> PreTokenizerRule:
    """The rule that the file names. Raises ModelFailure (foreign) for one we do not know."""
    name = file.get("tokenizer.ggml.pre", "default")
    if name not in RULES:
        raise ModelFailure(
            "foreign",
            f"{file.path.name} names the pre-tokenizer {name!r}, which is not known here.",
            f"Known: {', '.join(RULES)}.",
        )
    return RULES[name]


def bpe_tokenizer(file: GGUFFile, vocabulary: Vocabulary) -> Tokenizer:
    """The tokenizer of the file. Raises ModelFailure (foreign) where its parts do not agree."""
    rule = pre_tokenizer_rule(file)
    # Tokens hold no space of their own (a space is Ġ), but may begin with one in old files.
    merges = []
    for merge in file.require("tokenizer.ggml.merges"):
        cut = merge.find(" ", 1)
        merges.append((merge[:cut], merge[cut + 1 :]))
    try:
        model = BPE(vocab=vocabulary.ids(), merges=merges, ignore_merges=rule.whole_words)
    except Exception as error:  # the library raises plain Exception
        raise vocabulary_failure(file.path.name, f"{error}") from error
    tokenizer = Tokenizer(model)
    if rule.compose:
        tokenizer.normalizer = normalizers.NFC()  # type: ignore[assignment]
    tokenizer.pre_tokenizer = rule.build()  # type: ignore[assignment]
    tokenizer.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    add_tokens(tokenizer, vocabulary)
    return tokenizer
