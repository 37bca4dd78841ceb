"""The model and the tools of a run, wrapped so that each call is a step."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, cast

from bot.agent.gate import Asked
from bot.agent.limits import LimitGuard
from bot.domain.codec import images_from_data, message_from_data, message_to_data
from bot.domain.events import ModelReplied, Notice, ToolFinished
from bot.domain.messages import (
    Message,
    Part,
    Prompt,
    Reply,
    StopReason,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from bot.domain.plan import PlanItem
from bot.domain.proposal import Proposal
from bot.domain.review import ThreadAnswer
from bot.errors import Cancelled, LimitReached, ModelError, OperatorError
from bot.llm.base import Model, OnText
from bot.llm.meter import Amount, Ceiling, Meter
from bot.redaction import mask, mask_known, mask_tokens
from bot.store.base import WORDS
from bot.tasks.engines.base import Json
from bot.tasks.gates import Gatekeeper
from bot.tasks.opening import NO_RESULT
from bot.tasks.scene import Scene
from bot.tasks.steps import describe, rebuild
from bot.tools.base import COMMANDS, Tool, ToolOutput, Toolset
from bot.tools.toolset import fit

TEXT_CHARS = 2_000
"""Of a reply's text and of a command's output that the stream keeps; the transcript keeps all."""


class RecordedModel:
    """A model whose replies are steps."""

    def __init__(self, scene: Scene, name: str, guard: LimitGuard, *, started: datetime, window: int) -> None:
        self._scene = scene
        self._name = name
        self._asked = name
        """Who is asked now: the configured one, or the one that went on in its place, also before a crash."""
        self._guard = guard
        self._started = started
        self._window = window
        self._model: Model | None = None
        self._meter = Meter(scene.desk.price_usd)
        self._told = 0

    @property
    def name(self) -> str:
        """The model's configured name."""
        return self._name

    @property
    def remark(self) -> str:
        """What people have to know of what was counted, as `Meter.remark`."""
        return self._meter.remark

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Return the recorded reply of this turn, or ask and record it."""
        turn = self._guard.spent.turns + 1

        async def action() -> Json:
            spent, limits = self._guard.spent, self._guard.limits
            self._meter.begin(Amount(spent.usage, spent.usd), Ceiling(limits.tokens, limits.usd))
            try:
                reply = await self._live().ask(_told(prompt), on_text=on_text)
            except (ModelError, OperatorError) as error:
                return {"error": describe(error), **self._used()}
            except LimitReached as limit:
                return {"limit": [limit.what, limit.value, limit.limit, limit.remark], **self._used()}
            reply = replace(reply, message=_without_secrets(reply.message))
            fact = ModelReplied(
                turn=turn,
                text=reply.message.text[:TEXT_CHARS],
                calls=len(reply.message.calls),
                input_tokens=reply.usage.input_tokens,
                cache_read_tokens=reply.usage.cache_read_tokens,
                cache_write_tokens=reply.usage.cache_write_tokens,
                output_tokens=reply.usage.output_tokens,
                cost_usd=self._meter.turn.usd,
                model=reply.model or self._name,
                window=self._window,
            )
            await self._scene.recorder.note(f"model/{turn}", fact)
            return {"reply": _reply_to_data(reply), **self._used()}

        value = cast("dict[str, object]", await self._scene.steps.do(f"model/{turn}", action, stoppable=True))
        self._asked = str(value.get("asked", self._asked))
        self._meter.unpriced = [*cast("list[str]", value.get("unpriced", ()))]
        self._guard.replied(_usage_of(value), cast("float | None", value["usd"]), cast("float", value["elapsed_s"]))
        if "error" in value:
            raise rebuild(cast("dict[str, object]", value["error"]))
        if "limit" in value:
            raise LimitReached(*cast("tuple[str, float, float, str]", value["limit"]))
        return _reply_from_data(cast("dict[str, object]", value["reply"]))

    def _used(self) -> dict[str, Json]:
        """Say what this turn used, the attempts that failed too, and who was asked last."""
        used = self._meter.turn
        elapsed_s = (self._scene.desk.clock() - self._started).total_seconds()
        asked = self._asked if self._model is None else self._model.name
        counted: dict[str, Json] = {"usage": asdict(used.usage), "usd": used.usd, "elapsed_s": elapsed_s}
        return {**counted, "asked": asked, "unpriced": [*self._meter.unpriced]}

    async def close(self) -> None:
        """Give back the connection, where one was made."""
        if self._model is not None:
            await self._model.close()

    def _live(self) -> Model:
        if self._model is None:
            self._model = self._scene.desk.model(self._asked, self._tell, self._meter)
        return self._model

    async def _tell(self, trouble: str) -> None:
        self._told += 1
        turn = self._guard.spent.turns + 1
        # A later life that tries this turn again counts from 1 too, and has something else to tell.
        seal = hashlib.sha256(trouble.encode("utf-8", "replace")).hexdigest()[:8]
        await self._scene.recorder.note(f"trouble/{turn}/{self._told}/{seal}", Notice(trouble))


class RecordedToolset:
    """Tools whose calls are steps; each step that changes something ends in a checkpoint."""

    def __init__(self, scene: Scene, tools: Sequence[Tool], *, waits: bool = False) -> None:
        """Make one.

        Args:
            scene: the run.
            tools: those that are offered.
            waits: whether a call may wait for people, who are then asked when the loop has come to its next turn.
        """
        self.gate = Gatekeeper(scene, waits=waits)
        self._scene = scene
        self._specs = sorted((tool.spec for tool in tools), key=lambda spec: spec.name)
        self._writers = {tool.spec.name for tool in tools if not tool.reads_only}
        self._latest = asyncio.Event()
        """Set once what the call that began last left behind is taken over."""
        self._latest.set()

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The tools' schemas."""
        return self._specs

    def reads_only(self, name: str) -> bool:
        """Whether a tool changes nothing."""
        return name not in self._writers

    async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
        """Return the recorded result of this call, or make it and record it; what is not offered is not made."""
        (output,) = await self.together(turn, {index: ToolCall("", name, arguments)})
        return output

    async def together(self, turn: int, calls: Mapping[int, ToolCall]) -> Sequence[ToolOutput]:
        """Do the same for calls that go side by side and of which none is recorded without the others.

        They share one work tree: whichever of them a crash cut short, all are made again where the first began.
        """

        async def action() -> Json:
            if self._scene.steps.stopping:
                # What is ended now may have begun these calls before it was killed.
                none = [ToolOutput(NO_RESULT, f"{call.name}: no result", is_error=True) for call in calls.values()]
                outputs = [_plain(output) for output in none]
                return {"outputs": outputs, "commit": self._scene.lease.commit, "seen": {}, "gone": []}
            offered = {spec.name for spec in self._specs}
            held = await self.gate.hold({index: call for index, call in calls.items() if call.name in offered})
            kept = {index: held.calls.get(index, call) for index, call in calls.items() if index not in held.outputs}
            value = await self._act(turn, calls, kept, held.outputs)
            return {**value, "asked": [asked.to_data() for asked in held.asked]}

        before, self._latest = self._latest, asyncio.Event()
        mine = self._latest
        try:
            stoppable = not self._scene.steps.stopping and any(call.name in COMMANDS for call in calls.values())
            value = await self._scene.steps.do(f"tool/{turn}/{min(calls)}", action, stoppable=stoppable)
            # Calls side by side end in any order, and each life has to come out of them with the same.
            await before.wait()
            return self._learn(cast("dict[str, object]", value))
        finally:
            mine.set()

    async def approved(
        self, number: int, call: ToolCall, why_not: Callable[[], Awaitable[Json]]
    ) -> tuple[Json, ToolOutput | None]:
        """Make a call that people approved, as a step of its own and without judging it again.

        Args:
            number: 1 for the first of the run.
            call: exactly what was approved.
            why_not: says inside the step what keeps it from being made; None where nothing does.

        Returns:
            What kept it from being made, or what it gave.
        """

        async def action() -> Json:
            if self._scene.steps.stopping:
                raise Cancelled("stopped by a person")
            if (why := await why_not()) is not None:
                return {"why_not": why}
            return await self._act(0, {number: call}, {number: call}, {})

        stoppable = call.name in COMMANDS
        value = cast("dict[str, object]", await self._scene.steps.do(f"approved/{number}", action, stoppable=stoppable))
        if "why_not" in value:
            return value["why_not"], None
        (output,) = self._learn(value)
        return None, output

    async def _act(
        self, turn: int, calls: Mapping[int, ToolCall], kept: Mapping[int, ToolCall], held: Mapping[int, ToolOutput]
    ) -> dict[str, Json]:
        """Make those of the calls that are kept, and take note of what all gave and left behind."""
        lease = self._scene.lease
        live = await lease.live()
        seen = dict(lease.ledger.seen)
        given = dict(zip(kept, await self._make(live.toolset, turn, kept), strict=True))
        made = [given.get(index) or (_shown(held[index]), 0.0) for index in calls]
        commit = lease.commit
        changed = _changed([output for output, _ in made])
        if changed is None or changed:
            names = ", ".join(f"{call.name} {turn}/{index}" for index, call in calls.items())
            commit = await live.workspace.checkpoint(changed, names, self._scene.run.created_at)
        for (index, call), (output, seconds) in zip(calls.items(), made, strict=True):
            await self._scene.recorder.note(f"tool/{turn}/{index}", _fact(turn, index, call.name, output, seconds))
        learnt = {path: digest for path, digest in lease.ledger.seen.items() if seen.get(path) != digest}
        gone = [path for path in seen if path not in lease.ledger.seen]
        return {"outputs": [_plain(output) for output, _ in made], "commit": commit, "seen": learnt, "gone": gone}

    async def _make(
        self, toolset: Toolset, turn: int, calls: Mapping[int, ToolCall]
    ) -> Sequence[tuple[ToolOutput, float]]:
        """Make calls side by side; return what each gave and the seconds it took."""

        async def make(index: int, call: ToolCall) -> tuple[ToolOutput, float]:
            begun = self._scene.desk.clock()
            offered = any(spec.name == call.name for spec in self._specs)
            output = await toolset.call(turn, index, call.name, call.arguments) if offered else self._refusal(call.name)
            return _shown(output), (self._scene.desk.clock() - begun).total_seconds()

        # All end before anything is raised: nothing may go on in the work tree behind the step.
        given = await asyncio.gather(*(make(*one) for one in calls.items()), return_exceptions=True)
        made: list[tuple[ToolOutput, float]] = []
        for one in given:
            if isinstance(one, BaseException):
                raise one
            made.append(one)
        return made

    def _refusal(self, name: str) -> ToolOutput:
        names = ", ".join(spec.name for spec in self._specs)
        told = f"unknown_tool: {name[:100]!r} is not offered here; the tools are {names}"
        return ToolOutput(fit(told, TEXT_CHARS), fit(name, 100), is_error=True, malformed=True)

    def _learn(self, value: dict[str, object]) -> Sequence[ToolOutput]:
        """Take over what calls left behind, and return what each gave; an earlier version kept one call alone."""
        lease = self._scene.lease
        lease.commit = cast("str | None", value["commit"])
        lease.ledger.seen.update(cast("dict[str, str]", value["seen"]))
        for path in cast("list[str]", value["gone"]):
            lease.ledger.seen.pop(path, None)
        self.gate.waiting += map(Asked.from_data, cast("list[dict[str, object]]", value.get("asked", [])))
        kept = cast("list[dict[str, object]]", value.get("outputs") or [value["output"]])
        return [_output_from_plain(one) for one in kept]


def _changed(outputs: Sequence[ToolOutput]) -> Sequence[str] | None:
    """Join what calls changed; None where one of them may have changed anything."""
    paths: list[str] = []
    for output in outputs:
        if output.changed is None:
            return None
        paths += output.changed
    return paths


def _told(prompt: Prompt) -> Prompt:
    """Tell the provider no secret, whoever brought it up: a person, a check or a tool."""
    told = (_without_secrets(message) if message.role == "user" else message for message in prompt.messages)
    return replace(prompt, messages=tuple(told))


def _without_secrets(message: Message) -> Message:
    """Mask the values that we hold; a model's reasoning is sealed, and goes back to nobody but the model."""
    return Message(message.role, tuple(_without(part) for part in message.parts))


def _without(part: Part) -> Part:
    if isinstance(part, TextPart | ToolResult):
        return replace(part, text=mask_known(part.text))
    if isinstance(part, ToolCall):
        return replace(part, arguments=mask_known(part.arguments))
    return part


def _shown(output: ToolOutput) -> ToolOutput:
    """Mask what the model and the record get of a call.

    Of a command's output tokens go too. A file is shown as it is but for the values that we hold: what only looks
    like a token may be a test's, and a model that saw `***` in its place would write that back.
    """
    text = mask_known(output.text) if output.command is None else mask_tokens(output.text)
    command = None if output.command is None else mask(output.command)
    question = None if output.question is None else mask(output.question)
    proposal = None if output.proposal is None else _masked(output.proposal)
    answer = None if output.answer is None else replace(output.answer, text=mask(output.answer.text))
    return replace(
        output,
        text=text,
        summary=mask(output.summary),
        command=command,
        question=question,
        proposal=proposal,
        answer=answer,
    )


def _masked(proposal: Proposal) -> Proposal:
    files, questions = ([mask(text) for text in texts] for texts in (proposal.files, proposal.questions))
    return replace(proposal, text=mask(proposal.text), files=files, questions=questions)


def _reply_to_data(reply: Reply) -> dict[str, object]:
    return {
        "message": message_to_data(reply.message),
        "stop": reply.stop,
        "usage": asdict(reply.usage),
        "model": reply.model,
    }


def _usage_of(value: dict[str, object]) -> Usage:
    """Return what a turn used; an earlier version kept it with the reply alone."""
    kept = value.get("usage") or cast("dict[str, object]", value["reply"])["usage"]
    return Usage(**cast("dict[str, int]", kept))


def _reply_from_data(data: dict[str, object]) -> Reply:
    message = message_from_data(cast("dict[str, object]", data["message"]))
    usage = Usage(**cast("dict[str, int]", data["usage"]))
    return Reply(message, cast("StopReason", data["stop"]), usage, str(data["model"]))


def _plain(output: ToolOutput) -> dict[str, object]:
    kept = asdict(output)
    kept["changed"] = None if output.changed is None else list(output.changed)
    kept["images"] = list(kept["images"])
    kept["plan"] = None if output.plan is None else list(kept["plan"])
    if output.proposal is not None:
        kept["proposal"] |= {"files": list(output.proposal.files), "questions": list(output.proposal.questions)}
    return kept


def _output_from_plain(kept: dict[str, object]) -> ToolOutput:
    """Turn what `_plain` made back; an earlier version kept fewer fields."""
    items = cast("list[dict[str, object]] | None", kept.get("plan"))
    plan = None if items is None else [PlanItem(str(item["text"]), bool(item["done"])) for item in items]
    proposed = cast("dict[str, Any] | None", kept.get("proposal"))
    proposal = None if proposed is None else Proposal(**proposed)
    images = images_from_data(kept.get("images"))
    answered = cast("dict[str, Any] | None", kept.get("answer"))
    answer = None if answered is None else ThreadAnswer(**answered)
    return ToolOutput(**{**kept, "images": images, "plan": plan, "proposal": proposal, "answer": answer})  # type: ignore[arg-type]


def _fact(turn: int, index: int, name: str, output: ToolOutput, seconds: float) -> ToolFinished:
    return ToolFinished(
        turn=turn,
        index=index,
        name=name,
        summary=output.summary[:300],
        is_error=output.is_error,
        seconds=round(seconds, 3),
        command=output.command,
        exit_code=output.exit_code,
        output=output.text[-TEXT_CHARS:] if output.command is not None else None,
        plan=None if output.plan is None else [asdict(item) for item in output.plan],
        answer=None if output.answer is None else asdict(output.answer),
    )


async def deaf(_: int) -> Sequence[str]:
    """Hear nothing: what people say meanwhile is for the work, and reaches the next run."""
    return ()


class Ears:
    """What people say to a running task, heard once a turn."""

    def __init__(self, scene: Scene, *, after: int) -> None:
        self._scene = scene
        self.heard = after
        """The id of the last inbox item that was heard."""
        self._times = 0

    async def listen(self, turn: int) -> Sequence[str]:
        """Return what was said since the last time; raises Cancelled where somebody said stop."""
        self._times += 1
        after, times = self.heard, self._times

        async def action() -> Json:
            items = await self._scene.desk.store.inbox(self._scene.task.id, after=after)
            for item in items:
                if item.kind in WORDS and item.text:
                    await self._scene.recorder.note(
                        f"heard/{item.id}", Notice(f"{item.author} says: {item.text[:200]}")
                    )
            return [[item.id, item.kind, item.author, item.text] for item in items]

        items = cast("list[list[object]]", await self._scene.steps.do(f"inbox/{times}", action))
        stops = [cast("int", number) for number, kind, _, _ in items if kind == "stop"]
        if stops:
            # What was said after it is a request of its own.
            self.heard = stops[0]
            raise Cancelled("stopped by a person")
        if items:
            self.heard = cast("int", items[-1][0])
        return [str(text) for _, kind, _, text in items if kind in WORDS and text]
