"""A GGUF file's vocabulary and chat template as tokenizer.json, its configuration and template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.gguf_import.bpe_vocabulary import bpe_tokenizer, pre_tokenizer_rule
from minicpm5_mac.model.gguf_import.reading import GGUFFile
from minicpm5_mac.model.gguf_import.spm_vocabulary import spm_tokenizer
from minicpm5_mac.model.gguf_import.vocabulary import (
    begin_with,
    read_vocabulary,
    vocabulary_failure,
)


@dataclass(frozen=True)
class TokenizerFiles:
    """What a model folder needs: tokenizer.json, tokenizer_config.json, chat_template.jinja.

    template: None where the file brings none.
    """

    tokenizer: Tokenizer
    configuration: dict[str, Any]
    template: str | None


def tokenizer_files(file: GGUFFile, vocabulary_size: int) -> TokenizerFiles:
    """The tokenizer of the file, for an embedding of vocabulary_size rows.

    Raises ModelFailure (foreign) for a vocabulary that cannot be read faithfully.
    """
    vocabulary = read_vocabulary(file)
    if len(vocabulary.tokens) != vocabulary_size:
        raise vocabulary_failure(
            file.path.name,
            f"it has {len(vocabulary.tokens)} tokens, the embedding {vocabulary_size} rows",
        )
    kind = file.require("tokenizer.ggml.model")
    if kind == "gpt2":
        tokenizer = bpe_tokenizer(file, vocabulary)
        adds_bos = file.get("tokenizer.ggml.add_bos_token", pre_tokenizer_rule(file).adds_bos)
    elif kind == "llama":
        tokenizer = spm_tokenizer(file, vocabulary)
        adds_bos = file.get("tokenizer.ggml.add_bos_token", True)
    else:
        raise ModelFailure(
            "foreign",
            f"{file.path.name} has a vocabulary of kind {kind!r}.",
            "Only the kinds gpt2 (byte-level BPE) and llama (SentencePiece) can be imported.",
        )
    named = _named_tokens(file, vocabulary.tokens)
    if adds_bos and (bos := named.get("bos_token")) is not None:
        begin_with(tokenizer, bos, file.require("tokenizer.ggml.bos_token_id"))
    return TokenizerFiles(
        tokenizer,
        {
            "add_bos_token": bool(adds_bos),
            "clean_up_tokenization_spaces": False,
            "model_max_length": int(file.require("llama.context_length")),
            "tokenizer_class": "PreTrainedTokenizerFast",
            **named,
        },
        file.get("tokenizer.chat_template"),
    )


def _named_tokens(file: GGUFFile, tokens: tuple[str, ...]) -> dict[str, str]:
    named = {}
    for name, key in (
        ("bos_token", "bos_token_id"),
        ("eos_token", "eos_token_id"),
        ("unk_token", "unknown_token_id"),
        ("pad_token", "padding_token_id"),
    ):
        index = file.get(f"tokenizer.ggml.{key}")
        if index is None:
            continue
        if not 0 <= index < len(tokens):
            raise vocabulary_failure(
                file.path.name, f"tokenizer.ggml.{key} = {index} is no token of it"
            )
        named[name] = tokens[index]
    return named
