"""Report -> what a person reads: plain text, Markdown, one self-contained HTML page."""

from .html import to_html
from .markdown import to_markdown
from .text import to_text

__all__ = ["to_html", "to_markdown", "to_text"]
