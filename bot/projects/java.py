"""Java: the local repository of Maven, or the user home of Gradle; both write there, so each task has its own copy."""

from bot.projects.base import OWN, Files, Recipe, under

WANTED = (
    "pom.xml", "**/pom.xml", "mvnw", ".mvn/*", ".mvn/wrapper/*", "gradlew", "gradle.properties", "gradle/*",
    "gradle/wrapper/*.properties", "**/build.gradle", "**/build.gradle.kts", "build.gradle", "build.gradle.kts",
    "settings.gradle", "settings.gradle.kts", "gradle.lockfile", "**/gradle.lockfile",
)  # fmt: skip
_GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
_DEBIAN = "/usr/share/maven-repo"
"""Where Debian's packages of Java libraries put them, in the form of a repository."""

_RESOLVE = """\
allprojects {
  task issuewrightResolve {
    doLast {
      def names = ~/(.*[cC]ompileClasspath|.*[rR]untimeClasspath|.*[aA]nnotationProcessor)/
      configurations.findAll { it.name ==~ names && it.canBeResolved }.each { it.resolve() }
    }
  }
}
"""
"""Gradle has no task of its own that downloads everything."""
_OFFLINE = 'if (System.getenv("ISSUEWRIGHT_OFFLINE") == "1") { gradle.startParameter.offline = true }\n'
"""Gradle reads `--offline` from its command line only, or from a script like this one."""


def recipe(files: Files) -> Recipe | None:
    """Say how the Java part is set up; None where there is none."""
    if "pom.xml" in files:
        return _maven(files)
    return _gradle(files) if any(name in files for name in _GRADLE) else None


def _maven(files: Files) -> Recipe:
    program = "sh ./mvnw" if "mvnw" in files else "mvn"
    quiet = f"{program} --batch-mode --no-transfer-progress"
    # Nothing is compiled, so that a project which does not compile is not told as one that cannot be set up.
    resolve = "-Dmaven.main.skip=true -Dmaven.test.skip=true test"
    # Surefire asks for its provider only when it meets a test: the project's own are not run for that.
    provider = "-Dtest=IssuewrightNone -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false test"
    debian = f'[ -d {_DEBIAN} ] && mkdir -p "$ISSUEWRIGHT_M2" && cp -rs {_DEBIAN}/. "$ISSUEWRIGHT_M2"'
    return Recipe(
        name="java",
        needs=("java",) if "mvnw" in files else ("java", "mvn"),
        commands=(
            f"{quiet} {resolve} || {{ {debian} && {quiet} --offline {resolve}; }}",
            f"{quiet} {provider} >/dev/null 2>&1 || true",
        ),
        inputs=[*under(files, "pom.xml", "mvnw"), *(path for path in sorted(files) if path.startswith(".mvn/"))],
        versions=_versions("mvn"),
        variables={
            "ISSUEWRIGHT_M2": f"{OWN}/m2",
            "MAVEN_OPTS": f"-Dmaven.repo.local={OWN}/m2",
            "MAVEN_USER_HOME": f"{OWN}/maven",
        },
        # Read from Maven 3.9 on; earlier ones find out by themselves.
        offline={"MAVEN_ARGS": "--offline"},
    )


def _gradle(files: Files) -> Recipe:
    program = "sh ./gradlew" if "gradlew" in files else "gradle"
    script = '"$GRADLE_USER_HOME/resolve.gradle"'
    return Recipe(
        name="java",
        needs=("java",) if "gradlew" in files else ("java", "gradle"),
        first=(
            'mkdir -p "$GRADLE_USER_HOME/init.d"',
            f"cat >{script} <<'END'\n{_RESOLVE}END",
            f"cat >\"$GRADLE_USER_HOME/init.d/issuewright.gradle\" <<'END'\n{_OFFLINE}END",
        ),
        commands=(f"{program} --no-daemon --quiet --init-script {script} issuewrightResolve",),
        inputs=[path for path in sorted(files) if "gradle" in path],
        versions=_versions("gradle"),
        variables={
            "GRADLE_USER_HOME": f"{OWN}/gradle",
            # No daemon outlives the command that started it.
            "GRADLE_OPTS": "-Dorg.gradle.daemon=false",
        },
        offline={"ISSUEWRIGHT_OFFLINE": "1"},
    )


def _versions(program: str) -> str:
    """Asking the program itself takes seconds; its file tells as much."""
    return f'java -version 2>&1; stat -L -c "%n %s %Y" "$(command -v {program})" 2>&1'
