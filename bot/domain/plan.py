"""What a model says it will do, and how far it has come."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One line of the plan."""

    text: str
    done: bool


def check_boxes(plan: Sequence[PlanItem]) -> str:
    """Write a plan as a Markdown list of check boxes; the texts are the model's own, on one line each."""
    return "\n".join(f"- [{'x' if item.done else ' '}] {item.text}" for item in plan)
