"""Jobs of workflows on pages: where GitHub's own links lead."""

from tests.hub.pages.shop import Shop


def test_a_job_is_shown_where_its_check_links_to(fresh: Shop) -> None:
    """Two workflows with a job of one name are two checks of the pull request, each with its page."""
    hub = fresh.hub
    sha = hub.commit_files(fresh.repository, fresh.maria, "jobs", {"a": "b"})
    pull = hub.open_pull(fresh.repository, fresh.maria, "Jobs", head="jobs")
    for name, conclusion in (("CI", "failure"), ("Nightly", "success")):
        run = hub.run_workflow(fresh.repository, fresh.maria, sha, ["test"], name=name)
        hub.finish_job(run.jobs[0], conclusion)
        page = fresh.client.get(f"/corner-shop/cart/actions/runs/{run.id}/job/{run.jobs[0].id}")
        assert page.status_code == 200
        assert conclusion in page.text
    shown = fresh.client.get(f"/corner-shop/cart/pull/{pull.number}").text
    assert shown.count("/corner-shop/cart/runs/") == 2
