"""An imported vocabulary encodes as the tokenizer it was written from."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from gguf_samples import CONTROLS, TEXT, Sample, byte_level_metadata, byte_level_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, normalizers
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.gguf_import.folder import write_model_folder

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def whole_words(pattern: str) -> Sequence:
    return Sequence([Split(Regex(pattern), "isolated"), ByteLevel(False, use_regex=False)])


# How the models that gave these names to llama.cpp cut text, in their own tokenizer.json.
ORIGINALS: dict[str, Callable[[], Tokenizer]] = {
    "gpt-2": lambda: byte_level_tokenizer(ByteLevel(add_prefix_space=False)),
    "smollm": lambda: byte_level_tokenizer(
        Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    ),
    "llama-bpe": lambda: byte_level_tokenizer(whole_words(LLAMA3), whole_words=True),
    "qwen2": lambda: composed(byte_level_tokenizer(whole_words(QWEN2))),
}
AWKWARD = st.text(
    st.sampled_from("aAbB 's'LL12³½ \t\r\n  .,!?-_—你好žñ\u0301é👍🏽\u200b<|>im_startend/▁")
    | st.characters(exclude_categories=["Cs"])
)


def composed(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def imported(folder: Path, tokens: dict[str, Any], **metadata: Any) -> Tokenizer:
    size = len(tokens["tokenizer.ggml.tokens"])
    source = Sample(size).write(folder / "m.gguf", tokens, **metadata)
    write_model_folder(source, folder)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module", params=ORIGINALS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    original = ORIGINALS[request.param]()
    folder = tmp_path_factory.mktemp("tokenizer")
    return original, imported(folder, byte_level_metadata(original, request.param))


@given(text=AWKWARD)
def test_any_text_encodes_as_by_the_original(pair: tuple[Tokenizer, Tokenizer], text: str):
    original, ours = pair
    assert ours.encode(text).ids == original.encode(text).ids


@pytest.mark.parametrize("text", TEXT)
def test_text_comes_back(pair: tuple[Tokenizer, Tokenizer], text: str):
    _, ours = pair
    composed_text = normalizers.NFC().normalize_str(text)
    assert ours.decode(ours.encode(text).ids) in (text, composed_text)


def test_control_tokens_are_single_and_special(pair: tuple[Tokenizer, Tokenizer]):
    _, ours = pair
    for text in CONTROLS:
        assert ours.encode(f"a{text}b").tokens.count(text) == 1
        assert ours.decode([ours.token_to_id(text)]) == ""


def test_user_defined_tokens_are_matched_first_and_shown(tmp_path: Path):
    original = byte_level_tokenizer(ByteLevel(add_prefix_space=False), extra=("<think>", "   "))
    ours = imported(tmp_path, byte_level_metadata(original, "gpt-2"))
    for text in ("x<think>y", "a    b", "<think><think>"):
        assert ours.encode(text).ids == original.encode(text).ids
        assert ours.decode(ours.encode(text).ids) == text


@pytest.mark.parametrize("adds", [True, False])
def test_the_begin_token_is_added_where_the_file_says_so(adds: bool, tmp_path: Path):
    original = ORIGINALS["gpt-2"]()
    tokens = byte_level_metadata(original, "gpt-2") | {"tokenizer.ggml.add_bos_token": adds}
    ours = imported(tmp_path, tokens)
    assert (ours.encode("fox").tokens[0] == "<s>") is adds
    assert ours.encode("fox", add_special_tokens=False).tokens[0] != "<s>"


def test_names_and_template_are_those_of_the_file(tmp_path: Path):
    tokens = byte_level_metadata(ORIGINALS["gpt-2"](), "gpt-2")
    imported(tmp_path, tokens)
    configuration = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (configuration["bos_token"], configuration["eos_token"]) == ("<s>", "</s>")
    template = (tmp_path / "chat_template.jinja").read_text()
    assert template == tokens["tokenizer.chat_template"]


# SentencePiece -------------------------------------------------------------------------------


def trained_pieces(*, byte_fallback: bool, prefixed: bool, symbols: tuple[str, ...] = ()) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in TEXT * 8 for line in text.split("\n") if line]),
        model_writer=model,
        model_type="bpe",
        vocab_size=(420 if byte_fallback else 280) + len(symbols),
        byte_fallback=byte_fallback,
        add_dummy_prefix=prefixed,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        control_symbols=["<|im_end|>"],
        user_defined_symbols=list(symbols),
        minloglevel=3,
    )
    return model.getvalue()


def piece_metadata(model: bytes, *, prefixed: bool) -> dict[str, Any]:
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": [piece.piece for piece in proto.pieces],
        "tokenizer.ggml.scores": [piece.score for piece in proto.pieces],
        "tokenizer.ggml.token_type": [piece.type for piece in proto.pieces],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_space_prefix": prefixed,
    }


# sentencepiece ends at a NUL, and does not read control tokens in text at all.
NOT_COMPARED = ("\0", "<s>", "</s>", "<unk>", "<|im_end|>")


@pytest.fixture(
    scope="module",
    params=[(True, True), (True, False), (False, True)],
    ids=["bytes", "bytes, no prefix", "unknown characters"],
)
def pieces(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    byte_fallback, prefixed = request.param
    model = trained_pieces(byte_fallback=byte_fallback, prefixed=prefixed)
    tokens = piece_metadata(model, prefixed=prefixed)
    ours = imported(tmp_path_factory.mktemp("pieces"), tokens)
    return sentencepiece.SentencePieceProcessor(model_proto=model), ours


@given(text=AWKWARD.filter(lambda text: not any(part in text for part in NOT_COMPARED)))
def test_any_text_encodes_as_by_sentencepiece(
    pieces: tuple[sentencepiece.SentencePieceProcessor, Tokenizer], text: str
):
    reference, ours = pieces
    assert ours.encode(text, add_special_tokens=False).ids == reference.encode(text)


def test_sentencepiece_text_comes_back(tmp_path: Path):
    model = trained_pieces(byte_fallback=True, prefixed=True)
    ours = imported(tmp_path, piece_metadata(model, prefixed=True))
    for text in (*TEXT, "  two spaces", "𓀀 not in the vocabulary"):
        assert ours.decode(ours.encode(text).ids) == text


def test_user_defined_pieces_are_matched_as_by_sentencepiece(tmp_path: Path):
    model = trained_pieces(byte_fallback=True, prefixed=False, symbols=("<tool>", "▁▁", "▁▁▁▁"))
    ours = imported(tmp_path, piece_metadata(model, prefixed=False))
    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    for text in ("fox<tool>fox", "<tool> fox", "a     b", "  fox", "fox"):
        assert ours.encode(text, add_special_tokens=False).ids == reference.encode(text)


def test_text_after_an_added_token_begins_as_any_text_does(tmp_path: Path):
    # As llama.cpp and the original Llama tokenizer have it: the space prefix is put again.
    model = trained_pieces(byte_fallback=True, prefixed=True, symbols=("<tool>",))
    ours = imported(tmp_path, piece_metadata(model, prefixed=True))
    alone = ours.encode("fox", add_special_tokens=False).tokens
    assert ours.encode("<tool>fox", add_special_tokens=False).tokens == ["<tool>", *alone]


def test_a_vocabulary_that_would_encode_differently_is_refused(tmp_path: Path):
    # Without scores sentencepiece takes the leftmost pair, which no order of merges does.
    tokens = piece_metadata(trained_pieces(byte_fallback=True, prefixed=True), prefixed=True)
    del tokens["tokenizer.ggml.scores"]
    with pytest.raises(ModelFailure, match="other tokens than in sentencepiece") as caught:
        imported(tmp_path, tokens)
    assert caught.value.reason == "foreign"
