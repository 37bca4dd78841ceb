"""Level `none`: a process of the workspace's uid, and nothing else between it and the machine."""

from bot.sandbox.base import Level, Place
from bot.sandbox.confinement import Layout
from bot.sandbox.identity import Identity, interpreters


class Unconfined:
    """Shuts nothing in."""

    @property
    def level(self) -> Level:
        """`none`."""
        return "none"

    def layout(self, place: Place, identity: Identity, home: str) -> Layout:
        """Leave everything where it is."""
        return Layout(
            root=str(place.root),
            home=home,
            temporary=f"{home}/tmp",  # noqa: S108 - it is below the home
            seccomp=False,
            alone=identity.alone,
            interpreters=interpreters(),
        )
