"""Token ids and text of one model folder, with control tokens that text cannot forge.

A tokenizer that finds `<|im_end|>` in a file's text and makes it the control token lets that file
open a turn. `split_special_tokens` does not prevent it for `</think>`, which is not special. So
the encoder here works on a copy of the model's tokenizer in which every added token carries a
private name that nobody outside this process can know: plain text never holds one, and the
prompt's own control tokens are put in under those names. Everything else (normalizer,
pre-tokenizer, merges) is the model's own, so text without tags gets exactly the ids that it gets
in the whole prompt.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers.decoders import DecodeStream

from minicpm5_mac.failure import Failure

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"

# Tags of a reply that the parser reads. Other special tokens that a model writes are not text.
REPLY_TAGS = frozenset(
    {
        THINK_OPEN,
        THINK_CLOSE,
        "<function",
        "</function>",
        "<param",
        "</param>",
        "<tool_call>",
        "</tool_call>",
        "<tool_response>",
        "</tool_response>",
        "<tools>",
        "</tools>",
    }
)


class Tokenizer:
    """One model's tokenizer.

    control: every control token's id by its text. end_ids: ids that end a reply. think_open,
    think_close: ids of the tags, None where the vocabulary lacks them. special_texts: bos_token
    and so on, as templates name them. fingerprint: of the vocabulary, hexadecimal.
    """

    def __init__(
        self,
        definition: Mapping[str, Any],
        *,
        special_texts: Mapping[str, str] | None = None,
        end_ids: Iterable[int] = (),
    ) -> None:
        text = json.dumps(definition, ensure_ascii=False)
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.special_texts = dict(special_texts or {})
        self._tokenizer = tokenizers.Tokenizer.from_str(text)
        added: list[dict[str, Any]] = [dict(t) for t in definition.get("added_tokens") or []]
        # Runs of blanks are added tokens in some vocabularies; they are text, not control.
        control = [t for t in added if t["content"].strip()]
        self.control: dict[str, int] = {t["content"]: t["id"] for t in control}
        self.end_ids = frozenset(end_ids)
        self.think_open = self.control.get(THINK_OPEN, self._tokenizer.token_to_id(THINK_OPEN))
        self.think_close = self.control.get(THINK_CLOSE, self._tokenizer.token_to_id(THINK_CLOSE))
        if self.think_open is None or self.think_close is None:
            self.think_open = self.think_close = None
        self._silent = frozenset(
            t["id"] for t in control if t.get("special") and t["content"] not in REPLY_TAGS
        )

        nonce = secrets.token_hex(8)
        # U+FDD0 to U+FDEF are noncharacters: no text has a reason to hold them, and no text can
        # hold the nonce.
        self._private = {t["content"]: f"\ufdd0{nonce}:{i}\ufdd1" for i, t in enumerate(control)}
        self._marker = f"\ufdd2{nonce}\ufdd3"
        names = sorted(self.control, key=len, reverse=True)
        self._tag = re.compile("|".join(map(re.escape, names))) if names else None
        self._encoder, self._real_ids = self._rename(definition, added)
        self._anchor = next(
            (self._private[t["content"]] for t in control if not t.get("rstrip")), ""
        )

    @property
    def has_thinking(self) -> bool:
        """Whether the vocabulary has both think tags as single tokens."""
        return self.think_close is not None

    @property
    def vocab_size(self) -> int:
        """Number of ids, added tokens included."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def _rename(
        self, definition: Mapping[str, Any], added: list[dict[str, Any]]
    ) -> tuple[tokenizers.Tokenizer, dict[int, int]]:
        """The copy that knows control tokens only by private names, and its ids for them."""
        renamed = []
        for token in added:
            private = self._private.get(token["content"])
            renamed.append(
                token if private is None else token | {"content": private, "normalized": False}
            )
        copy = {**definition, "added_tokens": renamed, "post_processor": None}
        copy["truncation"] = copy["padding"] = None
        encoder = tokenizers.Tokenizer.from_str(json.dumps(copy, ensure_ascii=False))
        renamed_ids = encoder.get_vocab(with_added_tokens=True)
        real = {renamed_ids[name]: self.control[text] for text, name in self._private.items()}
        for content, token_id in self.control.items():
            ids = encoder.encode(f"a{content}b {content}", add_special_tokens=False).ids
            if token_id in ids and len(content) > 1:
                raise Failure(
                    f"This model's tokenizer reads the text {content!r} as a control token even "
                    "where it is ordinary text, so a file could forge a turn.",
                    "Use another conversion of the model, one with a tokenizer.json of type BPE.",
                )
        return encoder, real

    def guard(self, text: str) -> str:
        """Foreign text for a template: same text, but no tag in it is the template's own.

        `encode_prompt` takes the marks out again. Templates look for tags such as `</think>` or
        `<tool_sep>` in a message; every `<` is marked so that they find none.
        """
        if self._tag is not None:
            text = self._tag.sub(lambda m: m[0][0] + self._marker + m[0][1:], text)
        return re.sub("<(?!" + re.escape(self._marker) + ")", "<" + self._marker, text)

    def unguard(self, text: str) -> str:
        """What `guard` was given."""
        return text.replace(self._marker, "")

    def encode_prompt(self, rendered: str, *, anchored: bool = False) -> list[int]:
        """Ids of a rendered template whose foreign text went through `guard`.

        anchored: the text continues a prompt, so that nothing that a tokenizer does only at the
        start of a text (a leading blank, say) is done.
        """
        if self._tag is not None:
            rendered = self._tag.sub(lambda m: self._private[m[0]], rendered)
        return self._ids(rendered.replace(self._marker, ""), anchored)

    def encode_text(self, text: str) -> list[int]:
        """Ids of ordinary text that continues a prompt: never a control token."""
        return self._ids(text, anchored=True)

    def _ids(self, text: str, anchored: bool) -> list[int]:
        anchored = anchored and bool(self._anchor)
        ids = self._encoder.encode(
            self._anchor + text if anchored else text, add_special_tokens=False
        ).ids
        return [self._real_ids.get(i, i) for i in (ids[1:] if anchored else ids)]

    def text_of(self, ids: Iterable[int]) -> str:
        """The text of ids, control tokens included, as the model's own decoder writes it."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def token_text(self, token_id: int) -> str:
        """One id as the vocabulary writes it, for diagnostics."""
        return self._tokenizer.id_to_token(token_id) or f"<{token_id}>"

    def detokenizer(self) -> Detokenizer:
        """A fresh stream of text from generated ids."""
        return Detokenizer(self._tokenizer, self._silent)


class Detokenizer:
    """Text from ids as they come: whole characters only, no space lost.

    pending: the ids so far end in the middle of a character.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer, silent: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self._silent = silent
        self._stream = DecodeStream(skip_special_tokens=False)
        self._held: list[int] = []

    @property
    def pending(self) -> bool:
        """Bytes of an unfinished character are held back."""
        return bool(self._held)

    def step(self, token_id: int) -> str:
        """The text that this id completes, possibly none."""
        if token_id in self._silent:
            return ""
        text = self._stream.step(self._tokenizer, token_id)
        if text is None:
            self._held.append(token_id)
            return ""
        self._held.clear()
        return text

    def finish(self) -> str:
        """What a reply's end leaves of an unfinished character: replacement characters."""
        held, self._held = self._held, []
        self._stream = DecodeStream(skip_special_tokens=False)
        return self._tokenizer.decode(held, skip_special_tokens=False) if held else ""


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model folder.

    End ids come from generation_config.json, config.json and the tokenizer's eos_token together,
    as models disagree on where they list them.
    """
    definition = _json(folder / "tokenizer.json")
    config = _json(folder / "tokenizer_config.json")
    special_map = _json(folder / "special_tokens_map.json")
    special_texts = {
        key: value["content"] if isinstance(value, dict) else value
        for source in (special_map, config)
        for key, value in source.items()
        if key.endswith("_token") and isinstance(value, str | dict)
    }
    known = {t["content"]: t["id"] for t in definition.get("added_tokens") or []}
    end_ids: set[int] = set()
    for source in (_json(folder / "generation_config.json"), _json(folder / "config.json")):
        value = source.get("eos_token_id")
        end_ids.update(value if isinstance(value, list) else [] if value is None else [value])
    eos = special_texts.get("eos_token")
    if eos in known:
        end_ids.add(known[eos])
    return Tokenizer(definition, special_texts=special_texts, end_ids=end_ids)


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(
            f"{path} cannot be read: {error}",
            "The file is damaged or only half there. Download the model again with "
            "`minicpm5-mac models pull`.",
            exit_code=3,
        ) from error
    return value if isinstance(value, dict) else {}
