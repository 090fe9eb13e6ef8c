"""Streaming Markdown for the terminal at a price per token that does not grow.

`MarkdownStream` is the widget; `MarkdownDocument` is what it shows, without Textual's machinery.
"""

from minicpm5_mac.app.markdown.document import MarkdownDocument
from minicpm5_mac.app.markdown.plain_text import PlainText
from minicpm5_mac.app.markdown.stream import MarkdownStream

__all__ = ["MarkdownDocument", "MarkdownStream", "PlainText"]
