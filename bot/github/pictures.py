"""Pictures in what people write: a model is told their words alone, and people are told so."""

import re
from collections.abc import Iterable

_CODE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"!\[[^\]\n]{0,1000}\](?:\(|\[)|<img\b", re.IGNORECASE)


def count(texts: Iterable[str]) -> int:
    """Count the pictures of some Markdown; what stands in code is none."""
    return sum(len(_PICTURE.findall(_CODE.sub("", text))) for text in texts)


def not_looked_at(number: int) -> str:
    """Say that pictures were not seen; empty where there are none."""
    if not number:
        return ""
    return "1 image was not looked at." if number == 1 else f"{number} images were not looked at."
