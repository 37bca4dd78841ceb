"""What a run records, tells the model and publishes holds no secret, and the work goes on all the same."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from bot import redaction
from bot.domain.events import CommitMade, ModelReplied, Notice, RunFinished, ToolFinished
from bot.domain.messages import ThinkingPart
from bot.sandbox.base import ExecResult
from bot.tasks.workflow import Workflow
from bot.workspace.base import Opened, Origin
from tests.unit.tasks.made import Copy, Script, Shop, World, finish, read, reply, run, words, write
from tests.unit.tasks.test_workflow import Mortal

SECRET = "correct-horse-battery-staple"
TOKEN = "ghp_" + "aB3" * 12


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    """Know one secret."""
    redaction.register_secret(SECRET)
    yield
    redaction.forget_secrets()


class DiffingCopy(Copy):
    """A working copy that knows its diff."""

    async def diff(self, base: str, commit: str, *, limit_chars: int, paths: Sequence[str] = ()) -> str:
        """Show each changed file as a new one."""
        shown = []
        for path in await self.changed_paths(base, commit):
            data = self.shop.commits[commit].get(path, b"")
            if b"\0" in data:
                shown.append(f"Binary files /dev/null and b/{path} differ")
                continue
            lines = data.decode().splitlines()
            body = "".join(f"+{line}\n" for line in lines)
            shown.append(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{body}")
        return "".join(shown)


class DiffingShop(Shop):
    """Working copies that know their diffs."""

    async def open(self, task_id: str, origin: Origin, branch: str, *, commit: str | None = None) -> Opened:
        """Make such a copy."""
        made = await super().open(task_id, origin, branch, commit=commit)
        return replace(made, workspace=DiffingCopy(self, dict(self.commits[commit or self.branches[branch]])))


async def work(world: World, *replies: object) -> tuple[Script, Sequence[object], RunFinished]:
    """Work on a run; returns the model, all facts and the end."""
    world.shop = DiffingShop()
    task, one = await world.begin()
    script = Script(*replies)  # type: ignore[arg-type]
    await Workflow(world.desk(script))(one.id, Mortal(world, one))
    facts = [event.fact for event in await world.store.events(task.id)]
    (end,) = [fact for fact in facts if isinstance(fact, RunFinished)]
    return script, facts, end


async def test_a_commands_output_is_masked_for_all(world: World) -> None:
    """Neither the model nor the record gets a known value or a token that a command printed."""
    world.commands["leak"] = lambda _: ExecResult(0, f"{SECRET} {TOKEN}", "", 0.1, timed_out=False)
    script, facts, end = await work(
        world, reply(run("leak")), reply(words(f"I saw {SECRET}"), write("a.txt", "x")), reply(finish(f"Saw {TOKEN}."))
    )
    told = repr(script.prompts)
    assert "*** ***" in told
    assert SECRET not in told
    assert TOKEN not in told.replace(repr(finish(f"Saw {TOKEN}.")), "")
    assert end.summary == "Saw ***."
    (ran,) = [fact for fact in facts if isinstance(fact, ToolFinished) and fact.name == "run"]
    assert "*** ***" in (ran.output or "")
    said = [fact.text for fact in facts if isinstance(fact, ModelReplied)]
    assert said[1] == "I saw ***"
    assert SECRET not in repr(facts)
    assert TOKEN not in repr(facts)


async def test_a_file_is_shown_as_it_is_but_for_known_values(world: World) -> None:
    """A test's own made-up token is left alone, lest the model writes the mask back."""
    world.shop.commits[world.shop.branches["main"]]["rose.txt"] = f"{TOKEN} {SECRET}\n".encode()
    task, one = await world.begin()
    script = Script(reply(read("rose.txt")), reply(write("a.txt", "x")), reply(finish("Done.")))
    await Workflow(world.desk(script))(one.id, Mortal(world, one))
    assert f"{TOKEN} ***" in repr(script.prompts)
    assert SECRET not in repr(script.prompts)
    assert TOKEN not in repr(await world.store.events(task.id))


async def test_a_models_sealed_reasoning_stays_sealed(world: World) -> None:
    """Its provider takes it back only as it was."""
    sealed = ThinkingPart(f"Hm, {SECRET}.", "seal", "", "scripted:one")
    script, _, _ = await work(world, reply(sealed, write("a.txt", "x")), reply(finish("Done.")))
    assert sealed in script.prompts[1].messages[-2].parts


async def test_the_model_cannot_write_down_what_we_hold(world: World) -> None:
    """Were it to name a known value, its own call would be masked before it is made."""
    _, _, end = await work(world, reply(write("a.env", f"A=1\\nB={SECRET}\\n")), reply(finish("Done.")))
    assert end.outcome == "done"
    (branch,) = set(world.shop.branches) - {"main"}
    assert world.shop.commits[world.shop.branches[branch]]["a.env"] == b"A=1\nB=***\n"


async def test_a_secret_in_a_change_stops_the_push(world: World) -> None:
    """The reason names file and line and says what to do; the work is kept and nothing is published."""
    world.commands["leak"] = _leak
    _, facts, end = await work(world, reply(run("leak")), reply(finish("Done.")))
    assert end.outcome == "failed"
    assert "`conf/b.env` line 2: a secret of this server; `key.bin`: a secret of this server" in end.reason
    assert "take that out" in end.reason
    assert SECRET not in end.reason
    assert set(world.shop.branches) == {"main"}
    assert world.shop.forgotten == []
    assert world.github.pulls == {}
    assert not any(isinstance(fact, CommitMade) for fact in facts)


def _leak(copy: Copy) -> ExecResult:
    copy.files["conf/b.env"] = f"A=1\nB={SECRET}\n".encode()
    copy.files["key.bin"] = b"\0" + SECRET.encode("utf-16-le")
    return ExecResult(0, "", "", 0.1, timed_out=False)


async def test_what_only_looks_like_a_token_is_remarked_on(world: World) -> None:
    """The work is published, and the pull request says where to look."""
    _, facts, end = await work(world, reply(write("tests/t.py", f"x\\n{TOKEN}\\n")), reply(finish("Done.")))
    assert end.outcome == "done"
    remark = "The change adds what looks like a credential: `tests/t.py` line 2: a GitHub token. Make sure"
    assert any(isinstance(fact, Notice) and fact.text.startswith(remark) for fact in facts)
    (pull,) = world.github.pulls.values()
    assert "looks like a credential" in pull.body
