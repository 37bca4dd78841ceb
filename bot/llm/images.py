"""Pictures in a prompt: what adapters share of them, and words in their place."""

from collections.abc import Container
from dataclasses import replace

from bot.domain.messages import Image, ImageType, Message, Part, Prompt, Reply, TextPart, ToolResult
from bot.llm.base import Model, OnText


def data_url(image: Image) -> str:
    """Return the picture as the URL that holds it."""
    return f"data:{image.media_type};base64,{image.data}"


def caption(call: str) -> str:
    """Say whose pictures follow where they cannot stand in their result.

    Args:
        call: names the call for the model.
    """
    return f"From the result of {call}, and data as the rest of it is:"


def unseen(image: Image) -> str:
    """Say what stands in the place of a picture."""
    return f"[an image of {-(-image.size_bytes // 1000)} kB ({image.media_type}), which this model cannot see]"


def without_images(prompt: Prompt, *, seen: Container[ImageType] = ()) -> Prompt:
    """Return the prompt for a model that cannot see: each picture is a line of words, the same at every request.

    Args:
        prompt: as the seam has it.
        seen: kinds of pictures that the model can see after all.
    """

    def told(part: Part) -> Part:
        if isinstance(part, Image):
            return part if part.media_type in seen else TextPart(unseen(part))
        if not isinstance(part, ToolResult) or not part.images:
            return part
        lines = [part.text] if part.text.strip() else []
        lines += [unseen(image) for image in part.images if image.media_type not in seen]
        images = tuple(image for image in part.images if image.media_type in seen)
        return replace(part, text="\n".join(lines), images=images)

    messages = tuple(Message(message.role, tuple(map(told, message.parts))) for message in prompt.messages)
    return replace(prompt, messages=messages)


class Blind:
    """A model that gets words in the place of pictures, since its API would refuse them."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """`provider:model` of the wrapped model."""
        return self._model.name

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Ask without pictures; errors as `Model.ask` says."""
        return await self._model.ask(without_images(prompt), on_text=on_text)

    async def close(self) -> None:
        """Close the wrapped model."""
        await self._model.close()
