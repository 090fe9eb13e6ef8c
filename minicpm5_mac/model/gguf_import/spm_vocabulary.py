"""A `llama` vocabulary: SentencePiece BPE from its pieces and scores, checked against the library.

SentencePiece joins the adjacent pair whose piece has the highest score; the tokenizers library
joins the pair of lowest merge rank. Ranking every way to split a piece by that piece's score makes
both the same, up to ties. So the result is compared with sentencepiece itself before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator

import sentencepiece
from gguf import TokenType
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, decoders, normalizers
from tokenizers.models import BPE

from minicpm5_mac.model.gguf_import.reading import GGUFFile
from minicpm5_mac.model.gguf_import.vocabulary import Vocabulary, add_tokens, vocabulary_failure

SPACE = "▁"  # U+2581, how SentencePiece writes a space

_SAMPLES = (
    "Hello, world! The quick brown fox  jumps over\tthe lazy dog.\n\nIt's 12,345.67 – isn't it?",
    " leading and trailing spaces   ",
    "def f(x):\n    return {'a': [x**2, -1e-3]}  # comment\n",
    "Żółć, façade, naïve, Ελληνικά, Привет, мир! שלום العربية हिन्दी ไทย",
    "你好，世界。日本語のテキスト、한국어 문장.",
    "👍🏽 🧑‍💻 ∑∞≠ \u200b\u00a0 ﷽ \U0001f600",
    "aaaaaaaaaa aaaa aaa bbbbbb 1111111 !!!!! ------- ........ \n\n\n\n        x",
)


def spm_tokenizer(file: GGUFFile, vocabulary: Vocabulary) -> Tokenizer:
    """The tokenizer of the file, equal to sentencepiece's on every piece and on sample texts.

    Raises ModelFailure (foreign) where it cannot be made equal.
    """
    if "tokenizer.ggml.precompiled_charsmap" in file.metadata:
        raise vocabulary_failure(file.path.name, "it brings its own character normalization")
    if file.get("tokenizer.ggml.remove_extra_whitespaces", False):
        raise vocabulary_failure(file.path.name, "it drops repeated spaces")
    prefixed = bool(file.get("tokenizer.ggml.add_space_prefix", True))
    tokenizer = _tokenizer(vocabulary, prefixed)
    _compare(tokenizer, vocabulary, sentencepiece_reference(vocabulary, prefixed), prefixed)
    return tokenizer


def sentencepiece_reference(
    vocabulary: Vocabulary, prefixed: bool
) -> sentencepiece.SentencePieceProcessor:
    """sentencepiece's own processor for these pieces.

    prefixed: a space is put before every text. Raises ModelFailure (foreign) for pieces that
    sentencepiece refuses.
    """
    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    for token, kind, score in zip(
        vocabulary.tokens, vocabulary.types, vocabulary.scores, strict=True
    ):
        # The two enumerations have the same numbers (sentencepiece_model.proto, SentencePiece).
        model.pieces.add(piece=token, score=score, type=int(kind))
    model.trainer_spec.model_type = sentencepiece_model_pb2.TrainerSpec.BPE  # type: ignore[attr-defined]
    model.trainer_spec.byte_fallback = any(vocabulary.of_type(TokenType.BYTE))
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = prefixed
    model.normalizer_spec.remove_extra_whitespaces = False
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    except RuntimeError as error:
        raise vocabulary_failure(vocabulary.file_name, f"sentencepiece says: {error}") from error


def _tokenizer(vocabulary: Vocabulary, prefixed: bool) -> Tokenizer:
    ids = vocabulary.ids()
    unknown = next((text for _, text in vocabulary.of_type(TokenType.UNKNOWN)), None)
    model = BPE(
        vocab=ids,
        merges=list(_merges(vocabulary)),
        unk_token=unknown,
        fuse_unk=True,
        byte_fallback=any(vocabulary.of_type(TokenType.BYTE)),
    )
    tokenizer = Tokenizer(model)
    steps = [normalizers.Prepend(SPACE)] if prefixed else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])  # type: ignore[assignment]
    parts = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if prefixed:
        parts.append(decoders.Strip(" ", 1, 0))
    tokenizer.decoder = decoders.Sequence(parts)  # type: ignore[assignment]
    add_tokens(tokenizer, vocabulary)
    return tokenizer


def _merges(vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    ids = {
        text: index for index, text in vocabulary.of_type(TokenType.NORMAL, TokenType.USER_DEFINED)
    }
    ranked = []
    for text, index in ids.items():
        for cut in range(1, len(text)):
            left, right = ids.get(text[:cut]), ids.get(text[cut:])
            if left is not None and right is not None:
                ranked.append((-vocabulary.scores[index], index, left, right))
    ranked.sort()
    for _, _, left, right in ranked:
        yield vocabulary.tokens[left], vocabulary.tokens[right]


def _compare(
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    reference: sentencepiece.SentencePieceProcessor,
    prefixed: bool,
) -> None:
    texts = [
        text.replace(SPACE, " ")
        for _, text in vocabulary.of_type(TokenType.NORMAL, TokenType.USER_DEFINED)
    ]
    # Pieces alone and in rows: a row makes neighbours compete for the characters between them.
    rows = [" ".join(texts[start : start + 20]) for start in range(0, len(texts), 20)]
    joined = ["".join(texts[start : start + 7]) for start in range(0, len(texts), 7)]
    # Control tokens in text are for sentencepiece no tokens. After a user-defined one, the prefix
    # is put again by llama.cpp and by the original Llama tokenizer, and not by sentencepiece.
    kinds = [TokenType.CONTROL, TokenType.UNKNOWN] + [TokenType.USER_DEFINED] * prefixed
    apart = [
        text.replace(SPACE, " ") for _, text in vocabulary.of_type(*kinds) if text.strip(SPACE)
    ]
    samples = [
        text
        for text in (*_SAMPLES, *texts, *rows, *joined)
        if text and not any(part in text for part in apart)
    ]
    ours = tokenizer.encode_batch(samples, add_special_tokens=False)
    theirs = reference.encode(samples)
    for text, mine, right in zip(samples, ours, theirs, strict=True):
        if mine.ids != right:
            raise vocabulary_failure(
                vocabulary.file_name, f"{text[:60]!r} gives other tokens than in sentencepiece"
            )
