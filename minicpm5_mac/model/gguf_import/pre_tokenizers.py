"""The pre-tokenizers that a `gpt2` vocabulary names in tokenizer.ggml.pre.

A GGUF file holds a name, not the rule: the rules are those of the models' own tokenizer.json.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, PreTokenizer, Sequence, Split

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _cl100k(digits: str) -> str:
    # OpenAI's cl100k_base split, as Llama 3 and Qwen 2 use it with other runs of digits.
    return (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
        rf"{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class PreTokenizerRule:
    """How text is cut before merges apply.

    patterns: each cuts what the one before left whole; individual_digits: digits stand alone;
    whole_words: a word that is a token is taken as it is (`ignore_merges`); compose: Unicode
    NFC comes first; adds_bos: what holds where the file does not say add_bos_token.
    """

    patterns: tuple[str, ...]
    individual_digits: bool = False
    whole_words: bool = False
    compose: bool = False
    adds_bos: bool = False

    def build(self) -> PreTokenizer:
        """The rule as the tokenizers library runs it; the last step is GPT-2's byte alphabet."""
        steps: list[PreTokenizer] = [Digits(individual_digits=True)] * self.individual_digits
        steps += [Split(Regex(pattern), "isolated") for pattern in self.patterns]
        return Sequence([*steps, ByteLevel(add_prefix_space=False, use_regex=False)])


_LLAMA3 = PreTokenizerRule((_cl100k(r"\p{N}{1,3}"),), whole_words=True, adds_bos=True)
_QWEN2 = PreTokenizerRule((_cl100k(r"\p{N}"),), compose=True)
_SINGLE_DIGITS = PreTokenizerRule((_GPT2,), individual_digits=True)
_PLAIN_GPT2 = PreTokenizerRule((_GPT2,))

RULES = {
    # What llama.cpp falls back to where a file names nothing.
    "default": PreTokenizerRule(
        (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
    ),
    "dbrx": PreTokenizerRule((_cl100k(r"\p{N}{1,3}"),)),
    "deepseek-coder": PreTokenizerRule(
        (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"),
    ),
    "falcon3": _LLAMA3,
    "gpt-2": _PLAIN_GPT2,
    "llama-bpe": _LLAMA3,
    "llama-v3": _LLAMA3,
    "llama3": _LLAMA3,
    "mpt": _PLAIN_GPT2,
    "olmo": _PLAIN_GPT2,
    "phi-2": _PLAIN_GPT2,
    "qwen2": _QWEN2,
    "refact": _SINGLE_DIGITS,
    "smaug-bpe": PreTokenizerRule((_cl100k(r"\p{N}{1,3}"),)),
    "smollm": _SINGLE_DIGITS,
    "starcoder": _SINGLE_DIGITS,
    "tekken": PreTokenizerRule((_TEKKEN,), whole_words=True, adds_bos=True),
}
