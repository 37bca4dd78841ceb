"""Go: the module cache, which Go itself can read where it may not write."""

from bot.projects.base import OWN, SHARED, Files, Recipe, under

WANTED = ("go.mod", "go.sum", "go.work", "go.work.sum", "vendor/modules.txt", "**/go.mod", "**/go.sum")


def recipe(files: Files) -> Recipe | None:
    """Say how the Go part is set up; None where there is none."""
    if "go.mod" not in files and "go.work" not in files:
        return None
    # What is vendored is taken from there by itself, from Go 1.14 on.
    vendored = "vendor/modules.txt" in files
    inputs = ["vendor/modules.txt"] if vendored else []
    return Recipe(
        name="go",
        needs=("go",),
        commands=() if vendored else ("go mod download",),
        inputs=[*under(files, "go.mod", "go.sum", "go.work", "go.work.sum"), *inputs],
        versions="go version",
        variables={
            "GOPATH": f"{SHARED}/go",
            # What was built is written by every task for itself.
            "GOCACHE": f"{OWN}/go-build",
            "GOTOOLCHAIN": "local",
        },
        offline={"GOPROXY": "off"},
        programs=(f"{SHARED}/go/bin",),
    )
