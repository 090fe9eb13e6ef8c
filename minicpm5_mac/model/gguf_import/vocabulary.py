"""What both kinds of vocabulary share: the token list, token types, and the added tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gguf import TokenType
from tokenizers import AddedToken, Tokenizer
from tokenizers.processors import TemplateProcessing

from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.gguf_import.reading import GGUFFile


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id, each with its type and, for `llama` vocabularies, its score."""

    file_name: str
    tokens: tuple[str, ...]
    types: tuple[TokenType, ...]
    scores: tuple[float, ...]

    def of_type(self, *kinds: TokenType) -> Iterator[tuple[int, str]]:
        """(id, text) of the tokens of these types, in the order of ids."""
        for index, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True)):
            if kind in kinds:
                yield index, token

    def ids(self) -> dict[str, int]:
        """Ids by text."""
        return {token: index for index, token in enumerate(self.tokens)}


def read_vocabulary(file: GGUFFile) -> Vocabulary:
    """The token list. Raises ModelFailure (corrupt) where lists differ in length or repeat."""
    tokens = tuple(file.require("tokenizer.ggml.tokens"))
    types = file.require("tokenizer.ggml.token_type")
    scores = file.get("tokenizer.ggml.scores", [0.0] * len(tokens))
    if not len(tokens) == len(types) == len(scores):
        raise vocabulary_failure(file.path.name, "its token lists differ in length")
    if len(set(tokens)) != len(tokens):
        repeated = next(token for token in tokens if tokens.count(token) > 1)
        raise vocabulary_failure(file.path.name, f"it holds the token {repeated!r} twice")
    try:
        kinds = tuple(TokenType(kind) for kind in types)
    except ValueError as error:
        raise vocabulary_failure(file.path.name, f"{error} of the tokens") from error
    return Vocabulary(file.path.name, tokens, kinds, tuple(scores))


def vocabulary_failure(file_name: str, why: str) -> ModelFailure:
    """The failure for a vocabulary that cannot be read faithfully."""
    return ModelFailure(
        "foreign",
        f"The vocabulary of {file_name} cannot be read faithfully: {why}.",
        "Take another file of this model, or convert it again.",
    )


def add_tokens(tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
    """Make control tokens special, and user-defined ones matched in text before anything else."""
    special = [
        AddedToken(text, special=True, normalized=False)
        for _, text in vocabulary.of_type(TokenType.CONTROL, TokenType.UNKNOWN)
    ]
    plain = [
        AddedToken(text, special=False, normalized=False)
        for _, text in vocabulary.of_type(TokenType.USER_DEFINED)
    ]
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens(plain)


def begin_with(tokenizer: Tokenizer, bos: str, bos_id: int) -> None:
    """Put the begin token before every text that is encoded with special tokens."""
    tokenizer.post_processor = TemplateProcessing(  # type: ignore[assignment]
        single=[bos, "$A"], pair=[bos, "$A", bos, "$B"], special_tokens=[(bos, bos_id)]
    )
