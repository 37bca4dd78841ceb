"""Reviews over GraphQL, and over REST where that is enough; nothing here approves, refuses, dismisses or merges."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress

import httpx

from bot.domain.refs import RepositoryRef
from bot.errors import Conflict, Forbidden, GitHubError, NotFound
from bot.github import markers, payloads
from bot.github import review_payloads as shapes
from bot.github.auth import API_PERMISSIONS, THREAD_PERMISSIONS, Credentials
from bot.github.calls import Caller, read, root
from bot.github.reviews import Reaction, Review, ReviewThread, Side

_THREADS = f"""query($owner: String!, $name: String!, $number: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{
    id reviewThreads(first: 50, after: $after) {{
      pageInfo {{ hasNextPage endCursor }}
      nodes {{ {shapes.THREAD} comments(first: 50) {{
        pageInfo {{ hasNextPage endCursor }} nodes {{ {shapes.COMMENT} }}
      }} }}
    }}
  }} }}
}}"""
_COMMENTS = f"""query($id: ID!, $after: String) {{
  node(id: $id) {{ ... on PullRequestReviewThread {{ comments(first: 100, after: $after) {{
    pageInfo {{ hasNextPage endCursor }} nodes {{ {shapes.COMMENT} }}
  }} }} }}
}}"""
_REVIEWS = f"""query($owner: String!, $name: String!, $number: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{
    id reviews(first: 100, after: $after) {{ pageInfo {{ hasNextPage endCursor }} nodes {{ {shapes.REVIEW} }} }}
  }} }}
}}"""
_PULL = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { id isDraft } }
}"""
_BEGIN = f"""mutation($pull: ID!, $commit: GitObjectID!, $body: String!) {{
  addPullRequestReview(input: {{pullRequestId: $pull, commitOID: $commit, body: $body}}) {{
    pullRequestReview {{ {shapes.REVIEW} }}
  }}
}}"""
_REPLY = """mutation($review: ID!, $thread: ID!, $body: String!) {
  addPullRequestReviewThreadReply(
    input: {pullRequestReviewId: $review, pullRequestReviewThreadId: $thread, body: $body}
  ) { comment { id } }
}"""
_SUBMIT = f"""mutation($review: ID!) {{
  submitPullRequestReview(input: {{pullRequestReviewId: $review, event: COMMENT}}) {{
    pullRequestReview {{ {shapes.REVIEW} }}
  }}
}}"""
_DELETE = """mutation($review: ID!) {
  deletePullRequestReview(input: {pullRequestReviewId: $review}) { clientMutationId }
}"""
_RESOLVE = """mutation($thread: ID!) {
  resolveReviewThread(input: {threadId: $thread}) { thread { isResolved } }
}"""
_READY = """mutation($pull: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $pull}) { pullRequest { isDraft } }
}"""


class ReviewClient:
    """`Reviews` of one installation.

    Args:
        caller: makes the calls.
        credentials: of the installation.
    """

    def __init__(self, caller: Caller, credentials: Credentials) -> None:
        self._caller = caller
        self._credentials = credentials

    async def review_threads(self, repository: RepositoryRef, number: int) -> Sequence[ReviewThread]:
        """List all threads in the order in which they were begun, without what nobody submitted yet."""
        found: list[ReviewThread] = []
        async for pull in self._pages(repository, number, _THREADS):
            for node in filter(None, pull.review_threads.nodes or ()):
                comments = [one for one in await self._comments(repository, node) if one.state != "PENDING"]
                if comments:
                    found.append(shapes.to_thread(node, comments))
        return found

    async def reviews(self, repository: RepositoryRef, number: int) -> Sequence[Review]:
        """List all reviews, oldest first."""
        return (await self._reviewed(repository, number))[1]

    async def reply_in_review(
        self, repository: RepositoryRef, number: int, commit: str, body: str, replies: Sequence[tuple[str, str]]
    ) -> int:
        """Answer in threads, all at once, as one review that only comments; returns the review's id."""
        mark = markers.last(body)
        if mark is None:
            raise ValueError("a review without a mark could not be found again")
        pull_id, reviews = await self._reviewed(repository, number)
        for made in reviews:
            if made.is_ours and made.state != "PENDING" and markers.last(made.body) == mark:
                return made.id
        for left in reviews:
            # A crash left it, and nobody has seen it. Without a mark it is somebody else's under the same account.
            if left.is_ours and left.state == "PENDING" and markers.last(left.body) is not None:
                with suppress(NotFound):
                    await self._ask(repository, _DELETE, {"review": left.node_id})
        variables = {"pull": pull_id, "commit": commit, "body": body}
        begun = (await self._ask(repository, _BEGIN, variables, idempotent=False)).add_pull_request_review
        try:
            return await self._fill(repository, _review(begun).node_id, replies)
        except (Conflict, Forbidden):
            # Left pending it would swallow, unseen, whatever else we say on a line.
            with suppress(GitHubError):
                await self._ask(repository, _DELETE, {"review": _review(begun).node_id})
            raise

    async def resolve_thread(self, repository: RepositoryRef, thread_id: str) -> None:
        """Resolve a thread by its node id; a resolved one stays so."""
        await self._ask(repository, _RESOLVE, {"thread": thread_id}, permissions=THREAD_PERMISSIONS)

    async def ready_for_review(self, repository: RepositoryRef, number: int) -> None:
        """Make a draft ready for review; what is no draft stays as it is."""
        pull = await self._pull(repository, number, _PULL)
        if pull.is_draft:
            await self._ask(repository, _READY, {"pull": pull.id}, permissions=THREAD_PERMISSIONS)

    async def request_review(self, repository: RepositoryRef, number: int, logins: Sequence[str]) -> None:
        """Ask people for a review."""
        if logins:
            path = f"{root(repository)}/pulls/{number}/requested_reviewers"
            # Who was asked already is not asked twice.
            await self._send(repository, "POST", path, {"reviewers": list(logins)}, idempotent=True)

    async def review_comment(  # noqa: PLR0913 - a place in a diff has this many sides
        self, repository: RepositoryRef, number: int, commit: str, *, path: str, line: int, side: Side, body: str
    ) -> int:
        """Comment on one line of the diff, never tried again by itself; returns the comment's id."""
        json = {"commit_id": commit, "path": path, "line": line, "side": side, "body": body}
        made = await self._send(repository, "POST", f"{root(repository)}/pulls/{number}/comments", json)
        comment_id = read(made, payloads.Comment).id
        if comment_id is None:
            raise GitHubError("GitHub sent no id of the comment")
        return comment_id

    async def edit_review_comment(self, repository: RepositoryRef, comment_id: int, body: str) -> None:
        """Replace the text of a comment of ours on a line."""
        path = f"{root(repository)}/pulls/comments/{comment_id}"
        await self._send(repository, "PATCH", path, {"body": body}, idempotent=True)

    async def react_on_line(self, repository: RepositoryRef, comment_id: int, content: Reaction) -> None:
        """Put a reaction on a comment on a line; there is at most one of a kind."""
        path = f"{root(repository)}/pulls/comments/{comment_id}/reactions"
        await self._send(repository, "POST", path, {"content": content}, idempotent=True)

    async def _fill(self, repository: RepositoryRef, review_id: str, replies: Sequence[tuple[str, str]]) -> int:
        for thread_id, text in replies:
            with suppress(NotFound):
                variables = {"review": review_id, "thread": thread_id, "body": text}
                await self._ask(repository, _REPLY, variables, idempotent=False)
        submitted = await self._ask(repository, _SUBMIT, {"review": review_id}, idempotent=False)
        return _review(submitted.submit_pull_request_review).id

    async def _reviewed(self, repository: RepositoryRef, number: int) -> tuple[str, list[Review]]:
        pull_id, found = "", []
        async for pull in self._pages(repository, number, _REVIEWS):
            pull_id = pull.id
            nodes = pull.reviews.nodes if pull.reviews else None
            found += [shapes.to_review(node) for node in filter(None, nodes or ())]
        return pull_id, found

    async def _comments(self, repository: RepositoryRef, thread: shapes.ThreadNode) -> list[shapes.CommentNode]:
        page, found = thread.comments, list(filter(None, thread.comments.nodes or ()))
        while after := page.page_info.next:
            node = (await self._ask(repository, _COMMENTS, {"id": thread.id, "after": after})).node
            if node is None or node.comments is None:
                break
            page = node.comments
            found += filter(None, page.nodes or ())
        return found

    async def _pages(self, repository: RepositoryRef, number: int, text: str) -> AsyncIterator[shapes.Pull]:
        """Yield a pull request with one page of its threads or reviews after the other."""
        pull = await self._pull(repository, number, text, after=None)
        yield pull
        while after := (pull.reviews or pull.review_threads).page_info.next:
            pull = await self._pull(repository, number, text, after=after)
            yield pull

    async def _pull(self, repository: RepositoryRef, number: int, text: str, **more: object) -> shapes.Pull:
        variables = {"owner": repository.owner, "name": repository.name, "number": number, **more}
        found = (await self._ask(repository, text, variables)).repository
        if found is None or found.pull_request is None:
            raise NotFound(f"there is no pull request {number} in {repository.full_name}")
        return found.pull_request

    async def _send(
        self, repository: RepositoryRef, method: str, path: str, json: object, *, idempotent: bool = False
    ) -> httpx.Response:
        kit = self._caller.kit(self._credentials.auth(repository.id))
        return await self._caller.send(kit, method, path, json=json, idempotent=idempotent)

    async def _ask(
        self,
        repository: RepositoryRef,
        text: str,
        variables: Mapping[str, object],
        *,
        idempotent: bool = True,
        permissions: Mapping[str, str] = API_PERMISSIONS,
    ) -> shapes.Data:
        auth = self._credentials.auth(repository.id, permissions)
        response = await self._caller.ask(auth, text, variables, idempotent=idempotent)
        return read(response, shapes.Answer).data or shapes.Data()


def _review(made: shapes.Holder | None) -> Review:
    if made is None or made.pull_request_review is None:
        raise GitHubError("GitHub sent no review back")
    return shapes.to_review(made.pull_request_review)
