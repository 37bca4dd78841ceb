"""The main job, over real HTTP, git, databases and processes."""

import pytest

from tests.e2e.stage import Stage, until

pytestmark = pytest.mark.e2e


def test_a_label_becomes_a_pull_request_and_a_comment_a_further_commit(stage: Stage) -> None:
    """A labelled issue ends as a draft pull request with evidence; a comment on it adds one commit."""
    with stage.serving():
        issue = stage.labelled()
        until(lambda: [r for r in issue.reactions if r.content == "eyes"] or None, "the eyes", 10)
        told = stage.story_ends(issue.number)
        assert told.startswith("**Done**: [#2]"), told
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert pull.pull.draft
        assert pull.user is stage.app.bot
        assert pull.body is not None
        assert pull.body.startswith(f"Closes #{issue.number}")
        assert "| greeting | `sh check.sh` | 1 | 0 |" in pull.body
        assert "`sh check.sh; cat greet.txt` | 0 |" in pull.body
        assert pull.pull.base_ref == "main"
        branch = pull.pull.head_ref
        assert branch.startswith(f"agent/{issue.number}-")
        assert stage.git("show", f"{branch}:greet.txt") == "Hello, world"
        assert stage.git("diff", "--name-only", "main", branch) == "greet.txt"
        assert len(stage.bot_comments(issue.number)) == 1

        stage.hub.comment(pull, stage.maria, "/agent fix Greet the whole world, please.")
        told = stage.story_ends(pull.number)
        assert told.startswith("**Done**: [#2]"), told
        assert stage.git("show", f"{branch}:greet.txt") == "Hello, whole world"
        assert stage.git("rev-list", "--count", f"main..{branch}") == "2"
        assert len(stage.pulls()) == 1
        assert pull.body is not None
        assert "The whole world is greeted." in pull.body
        assert "> Greet the whole world, please." in pull.body
        assert "It says Helo." in pull.body
        assert "In the last of 2 commits: 1 file changed" in pull.body
        assert "| greeting | `sh check.sh` | 1 | 0 |" in pull.body


def test_a_command_on_an_issue_equals_the_label(stage: Stage) -> None:
    """`/agent fix` in an issue's comment starts the same task, with the person's words."""
    with stage.serving():
        issue = stage.hub.open_issue(stage.repository, stage.maria, "The greeting is wrong", None)
        comment = stage.hub.comment(issue, stage.maria, "/agent fix it, and nothing else")
        assert stage.story_ends(issue.number).startswith("**Done**")
        until(
            lambda: True if {r.content for r in comment.reactions} == {"eyes", "rocket"} else None, "the reactions", 10
        )
        (pull,) = stage.pulls()
        assert pull.body is not None
        assert "> it, and nothing else" in pull.body


def test_people_who_may_not_are_told_once(stage: Stage) -> None:
    """A stranger's command gets one polite line, no reaction, no clone and no model request."""
    with stage.serving():
        issue = stage.hub.open_issue(stage.repository, stage.stranger, "The greeting is wrong", "x")
        comment = stage.hub.comment(issue, stage.stranger, "/agent fix")
        (said,) = until(lambda: stage.bot_comments(issue.number) or None, "the refusal")
        assert "needs write access" in said
        assert comment.reactions == []
        assert stage.model.requests == []
        assert stage.pulls() == []


def test_unknown_commands_help_and_status_are_answered_once(stage: Stage) -> None:
    """A misspelt command gets a did-you-mean, `help` the list, `status` the state; quotes and code start nothing."""
    with stage.serving():
        issue = stage.hub.open_issue(stage.repository, stage.maria, "A question", "x")
        for text in (
            "> /agent fix",
            "```\n/agent fix\n```",
            "please /agent fix",
            "/agent fxi",
            "/agent help",
            "/agent status",
        ):
            stage.hub.comment(issue, stage.maria, text)
        said = until(lambda: found if len(found := stage.bot_comments(issue.number)) >= 3 else None, "three answers")
        assert len(said) == 3
        assert any("Did you mean `/agent fix`" in text for text in said)
        assert any("| Comment | What happens |" in text for text in said)
        assert any("no task on this thread" in text for text in said)
        assert stage.model.requests == []


def test_a_fork_is_refused_plainly(stage: Stage) -> None:
    """On a pull request from a fork nothing is pushed, and the person hears why and what to do."""
    fork = stage.hub.fork(stage.repository, stage.stranger)
    stage.write(fork, "Hi\n", stage.stranger)
    pull = stage.hub.open_pull(stage.repository, stage.stranger, "Hi", head="stranger:topic", body="x")
    with stage.serving():
        stage.hub.comment(pull, stage.maria, "/agent fix it")
        (said,) = until(lambda: stage.bot_comments(pull.number) or None, "the refusal")
        assert "comes from a fork" in said
        assert stage.model.requests == []


def test_a_persons_pull_request_gets_a_commit_on_its_branch(stage: Stage) -> None:
    """On a person's pull request the work lands on its head branch, and its text stays theirs."""
    stage.write(stage.repository, "Hello, world\n", stage.maria)
    pull = stage.hub.open_pull(stage.repository, stage.maria, "Say hello", head="topic", body="Mine.")
    with stage.serving():
        stage.hub.comment(pull, stage.maria, "/agent fix Greet the whole world")
        told = stage.story_ends(pull.number)
        assert told.startswith("**Done**"), told
        assert stage.git("show", "topic:greet.txt") == "Hello, whole world"
        assert pull.body == "Mine."
        assert [name for name in stage.branches() if name.startswith("agent/")] == []
