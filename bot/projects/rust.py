"""Rust: Cargo's home, which Cargo reads without a lock where it may not write."""

from bot.projects.base import SHARED, Files, Recipe, under

WANTED = (
    "Cargo.toml", "Cargo.lock", "**/Cargo.toml", ".cargo/config.toml", ".cargo/config", "rust-toolchain",
    "rust-toolchain.toml",
)  # fmt: skip


def recipe(files: Files) -> Recipe | None:
    """Say how the Rust part is set up; None where there is none."""
    if "Cargo.toml" not in files:
        return None
    locked = "Cargo.lock" in files
    return Recipe(
        name="rust",
        needs=("cargo", "rustc"),
        # A mirror that the operator names stands in the usual place, where Cargo does not look now.
        first=('mkdir -p "$CARGO_HOME" && if [ -d ~/.cargo ]; then cp -r ~/.cargo/. "$CARGO_HOME"; fi',),
        commands=(f"cargo fetch{' --locked' if locked else ''}",),
        inputs=[name for name in WANTED if name in files] if locked else under(files, *_names()),
        versions="cargo --version; rustc --version",
        variables={"CARGO_HOME": f"{SHARED}/cargo"},
        offline={"CARGO_NET_OFFLINE": "true"},
        programs=(f"{SHARED}/cargo/bin",),
    )


def _names() -> list[str]:
    return [name.rpartition("/")[2] for name in WANTED]
