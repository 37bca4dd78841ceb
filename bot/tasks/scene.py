"""What the parts of one run share: its task, its steps, its pen and its working copy."""

from dataclasses import dataclass

from bot.domain.task import Run, Task
from bot.tasks.desk import Desk
from bot.tasks.lease import Lease
from bot.tasks.recorder import Recorder
from bot.tasks.steps import Steps


@dataclass(frozen=True, slots=True)
class Scene:
    """One run while it is worked on."""

    desk: Desk
    task: Task
    run: Run
    steps: Steps
    recorder: Recorder
    lease: Lease
