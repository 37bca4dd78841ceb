"""JSON of repositories and of what their git holds."""

from __future__ import annotations

from bot.testing.hub.core import Core
from bot.testing.hub.git.history import Commit, FileChange
from bot.testing.hub.git.objects import Person
from bot.testing.hub.records import ROLES, Repository, User
from bot.testing.hub.shapes.common import Json, stamp, user_json

LINKS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}

UNUSED: Json = {
    "homepage": None,
    "language": None,
    "size": 1,
    "stargazers_count": 0,
    "watchers_count": 0,
    "watchers": 0,
    "forks_count": 0,
    "forks": 0,
    "has_issues": True,
    "has_projects": True,
    "has_downloads": True,
    "has_wiki": True,
    "has_pages": False,
    "has_discussions": False,
    "archived": False,
    "disabled": False,
    "mirror_url": None,
    "license": None,
    "allow_forking": True,
    "is_template": False,
    "web_commit_signoff_required": False,
    "topics": [],
}
"""What this hub has no use for, as GitHub shows it of a fresh repository."""


def repository_json(hub: Core, repository: Repository) -> Json:
    """Return a `repository` (also enough for a `minimal-repository`)."""
    url = f"{hub.api_url}/repos/{repository.full_name}"
    html = f"{hub.base_url}/{repository.full_name}"
    open_issues = sum(issue.state == "open" for issue in repository.issues.values())
    return {
        "id": repository.id,
        "node_id": repository.node_id,
        "name": repository.name,
        "full_name": repository.full_name,
        "private": repository.private,
        "owner": user_json(hub, repository.owner),
        "html_url": html,
        "description": repository.description,
        "fork": repository.parent is not None,
        "url": url,
        **{key: url + path for key, path in LINKS.items()},
        "git_url": html.replace("http://", "git://") + ".git",
        "ssh_url": f"git@{hub.base_url.partition('://')[2]}:{repository.full_name}.git",
        "clone_url": f"{html}.git",
        "svn_url": html,
        "default_branch": repository.default_branch,
        "visibility": "private" if repository.private else "public",
        "open_issues": open_issues,
        "open_issues_count": open_issues,
        "created_at": stamp(repository.created_at),
        "updated_at": stamp(repository.pushed_at),
        "pushed_at": stamp(repository.pushed_at),
        **UNUSED,
    }


def full_repository_json(hub: Core, repository: Repository, viewer: User | None) -> Json:
    """Return a `full-repository` as one person sees it."""
    rank = ROLES.index(hub.role(repository, viewer))
    parent = {"parent": repository_json(hub, repository.parent)} if repository.parent else {}
    return {
        **repository_json(hub, repository),
        "permissions": {
            "admin": rank >= ROLES.index("admin"),
            "maintain": rank >= ROLES.index("maintain"),
            "push": rank >= ROLES.index("write"),
            "triage": rank >= ROLES.index("triage"),
            "pull": rank >= ROLES.index("read"),
        },
        "network_count": 0,
        "subscribers_count": 0,
        **parent,
    }


def brief_json(repository: Repository) -> Json:
    """Return a repository as `installation` events list it."""
    return {
        "id": repository.id,
        "node_id": repository.node_id,
        "name": repository.name,
        "full_name": repository.full_name,
        "private": repository.private,
    }


def person_json(person: Person) -> Json:
    """Return author or committer of a commit."""
    return {"name": person.name, "email": person.email, "date": stamp(person.date)}


UNSIGNED: Json = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}


def git_commit_json(hub: Core, repository: Repository, commit: Commit) -> Json:
    """Return a `git-commit`."""
    url = f"{hub.api_url}/repos/{repository.full_name}/git"
    html = f"{hub.base_url}/{repository.full_name}/commit"
    return {
        "sha": commit.sha,
        "node_id": f"C_{commit.sha[:24]}",
        "url": f"{url}/commits/{commit.sha}",
        "html_url": f"{html}/{commit.sha}",
        "author": person_json(commit.author),
        "committer": person_json(commit.committer),
        "tree": {"sha": commit.tree, "url": f"{url}/trees/{commit.tree}"},
        "message": commit.message,
        "parents": [{"sha": sha, "url": f"{url}/commits/{sha}", "html_url": f"{html}/{sha}"} for sha in commit.parents],
        "verification": UNSIGNED,
    }


def head_commit_json(hub: Core, repository: Repository, sha: str) -> Json:
    """Return a `simple-commit`, as check suites and workflow runs carry that of their head."""
    commit = hub.git(repository).commit(sha)
    return {
        "id": commit.sha,
        "tree_id": commit.tree,
        "message": commit.message,
        "timestamp": stamp(commit.committer.date),
        "author": {"name": commit.author.name, "email": commit.author.email},
        "committer": {"name": commit.committer.name, "email": commit.committer.email},
    }


def commit_json(hub: Core, repository: Repository, commit: Commit) -> Json:
    """Return a `commit` without its files."""
    url = f"{hub.api_url}/repos/{repository.full_name}"
    git = git_commit_json(hub, repository, commit)
    by_email = {user.email: user for user in hub.users.values() if user.email}
    author, committer = by_email.get(commit.author.email), by_email.get(commit.committer.email)
    return {
        "sha": commit.sha,
        "node_id": git["node_id"],
        "url": f"{url}/commits/{commit.sha}",
        "html_url": git["html_url"],
        "comments_url": f"{url}/commits/{commit.sha}/comments",
        "commit": {
            "url": git["url"],
            "author": git["author"],
            "committer": git["committer"],
            "message": commit.message,
            "comment_count": 0,
            "tree": git["tree"],
            "verification": UNSIGNED,
        },
        "author": user_json(hub, author) if author else None,
        "committer": user_json(hub, committer) if committer else None,
        "parents": [
            {
                "sha": sha,
                "url": f"{url}/commits/{sha}",
                "html_url": f"{hub.base_url}/{repository.full_name}/commit/{sha}",
            }
            for sha in commit.parents
        ],
    }


def change_json(hub: Core, repository: Repository, change: FileChange, sha: str) -> Json:
    """Return a `diff-entry`; `sha` is the commit whose files the links show."""
    html = f"{hub.base_url}/{repository.full_name}"
    entry: Json = {
        "sha": change.blob,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": f"{html}/blob/{sha}/{change.path}",
        "raw_url": f"{html}/raw/{sha}/{change.path}",
        "contents_url": f"{hub.api_url}/repos/{repository.full_name}/contents/{change.path}?ref={sha}",
    }
    if change.patch is not None:
        entry["patch"] = change.patch
    if change.previous is not None:
        entry["previous_filename"] = change.previous
    return entry
