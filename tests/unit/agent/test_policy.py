"""The gates on single actions: what is allowed, asked about and denied."""

import json
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent.policy import Judgement, Surroundings, fits, judge, load
from bot.agent.shell import parse
from bot.settings.policy import Policy, Verdict, parse_policies
from bot.tools.standard import standard_tools
from tests.unit.agent.context.recorded import place, session

POLICIES = load()
ROOT = "/Users/badlogic/workspaces/pi-mono"
"""Where the recorded session found its work tree."""
ORDER = ["allow", "ask", "deny"]
EVASIONS = r"""
r'm' -rf x
\rm x
r"m" x
r$@m x
rm${IFS}x
rm$IFS-rf$IFS.
${x@P}
$'rm' x
$"ls"
command rm x
builtin eval rm x
exec rm x
alias ls='rm x'; ls
alias ls='rm x'
ls() { rm x; }; ls
function ls { rm x; }
unset PATH; ls
PATH=. ls
PATH=.; ls
export PATH=.
LD_PRELOAD=./x ls
BASH_ENV=./x bash -c ls
IFS=x; ls
cat <<E\n$(rm x)\nE
cat <<E\n`rm x`\nE
bash <<'E'\nrm x\nE
sh <<< 'rm x'
cat <(rm x)
cat x > >(rm x)
echo $(rm x)
echo "$(rm x)"
echo `rm x`
echo "${X:-$(rm x)}"
echo $(( $(rm x) ))
echo $((a[$(rm x)]))
test -v 'a[$(rm x)]'
printf -v 'a[$(rm x)]' x
[[ -v a[$(rm x)] ]]
let 'a[$(rm x)]=1'
read 'a[$(rm x)]'
ls\nrm x
ls; rm x
ls & rm x
ls && rm x
ls || rm x
ls | rm x
ls |& sh
ls #\nrm x
ls \\\nrm; rm x
(rm x)
{ rm x; }
! rm x
if true; then rm x; fi
while rm x; do :; done
for i in 1; do rm x; done
case a in a) rm x;; esac
coproc rm x
time rm x
trap 'rm x' EXIT
eval 'rm x'
eval rm x
eval > x
{}>x
sh -c '' > x
source x
. ./x
l{s,} x
{rm,x}
r[m] x
./ls
/tmp/ls
~/ls
rm\u{78}
git -c alias.x='!rm y' x
git -c core.pager='rm y' log
git -c core.fsmonitor=./x status
git --exec-path=. status
git -C .. status
git --git-dir=x status
git log --output=x
git log --outp x
git diff --ext-diff
git log --textconv
git diff --no-index /etc/passwd x
git show --format=%B --output x
git config alias.log '!rm x'
git grep -Ox a
git blame --contents /etc/passwd a
git branch x
git stash
find . -exec rm {} \;
find . -execdir rm {} +
find . -ok rm {} \;
find . -delete
find . -fprint x
find . -fls x
find . -fprintf x %p
find /etc
find *
ls | xargs rm
ls | xargs cat
xargs -a x rm
xargs -a /etc/passwd echo
xargs sh -c 'rm x'
tar -cf x --checkpoint=1 --checkpoint-action=exec='rm x' y
tar xf a --to-command='rm x'
awk 'BEGIN { system("rm x") }'
awk '{ print > "x" }' a
sed '1e rm x' a
sed -n '1e rm x' a
sed -n '1,5w x' a
sed -n '1p;1w x' a
sed -ni 1p a
sed -n 1p -i a
sed -i s/a/b/ a
sed -n -f x a
env -S 'rm x'
env rm x
env -C .. cat x
env --chdir=.. cat x
env LD_PRELOAD=./x ls
env -i PATH=. ls
nice rm x
timeout 5 rm x
nohup rm x
setsid rm x
stdbuf -o0 rm x
sudo ls
sh -c 'rm x'
sh -c "$X"
bash -lc 'ls; rm x'
bash -c 'bash -c "rm x"'
bash --rcfile x -c ls
bash x.sh
zsh -c ls
python -c 'import os'
node -e 1
cargo --version
perl -e 1
echo a > x
echo a >> x
echo a >| x
echo a &> x
echo a >& x
echo a 1<> x
cat a 2> x
> x
cat < /etc/passwd
cat /etc/passwd
cat /proc/self/environ
cat ../x
cat a/../../x
cat ~/.ssh/id_rsa
cat ~root/x
cat "$HOME/.ssh/id_rsa"
cat .*/x
cat .?/x
grep -f/etc/passwd a
grep -rnf/etc/passwd a
grep --file=/etc/passwd a
grep -r a /
head -c 5 /dev/sda
ls ..
cd
cd -
cd ..
cd /
cd ~
cd; cat x
cd a; cd ..
sort -o x a
sort -nox a
sort --output=x a
sort --compress-program=sh a
sort --compress-prog=sh a
sort -T /etc a
uniq a x
rg --pre sh a
rg --pre=sh a
rg -z a
rg -nz a
rg --hostname-bin=sh a
rg -f /etc/passwd a
rg a *
tree -o x
tee x
dd if=a of=x
date -s tomorrow
echo a < /dev/tcp/localhost/80
echo a | sh
curl http://localhost
npm test
npm exec -- sh -c 'rm x'
gitevil status
\ #;touch x
bash -c -- '-x; rm x' ls
sh -c - '-x; rm x' ls
bash -norc x ls
bash -restricted ls
bash -rcfile -c ls
eval ls *
sh -c *
echo 'x; rm x' | xargs -I X sh -c 'echo X'
echo rm x | xargs -I ls sh -c ls
echo x | xargs -i sh -c 'echo {}'
xargs --replace rm true x
xargs -I $X sh -c ls
timeout * ls
nice -n * ls
printf %n PATH; ls
printf '%-5ln' PATH
cd sub && git status
cd sub; git stash list
""".strip().splitlines()
UNSEEN = [
    "l\u0455",
    "ls\u00a0x",
    "ls\u200b",
    "ls\u2028rm x",
    "\uff4c\uff53",
    "ls\rrm x",
    "ls\x0brm x",
    "ls\0",
    "ls \ud800",
]
"""Commands that look as if they only read."""


def run(name: str, command: str, **surroundings: str) -> Judgement:
    """Judge a command by one policy."""
    return judge({name: POLICIES[name]}, "run", {"command": command}, Surroundings(**surroundings))  # type: ignore[arg-type]


def worst(judgements: list[Judgement]) -> Verdict:
    """The strictest verdict of several."""
    return max((one.verdict for one in judgements), key=ORDER.index, default="allow")


def own(*rules: str, otherwise: str = "allow", unread: str = "allow") -> dict[str, Policy]:
    """A policy of these rules."""
    text = f"version: 1\npolicies:\n  own:\n    otherwise: {otherwise}\n    unread: {unread}\n    rules:\n"
    return dict(parse_policies(text + "".join(f"      - {rule}\n" for rule in rules), "policy.yaml", fits))


@pytest.mark.parametrize("command", [*(text.replace("\\n", "\n") for text in EVASIONS), *UNSEEN])
def test_strict_asks_about_what_only_looks_harmless(command: str) -> None:
    """None of the ways around lists of commands is taken for reading."""
    judgement = run("strict", command)
    assert judgement.verdict == "ask"
    assert judgement.why


@pytest.mark.parametrize(
    "command",
    [
        "ls;",
        "ls -la src | head -5",
        "cd src && grep -rn 'foo(bar)' . --include=*.py | sort | uniq -c | sort -rn",
        "cat README.md 2>/dev/null || true",
        "echo '$(rm x)' && echo \"a; rm x\"",
        "find packages -name '*.ts' -type f -not -path '*/node_modules/*' | wc -l",
        "sed -n '10,20p' src/a.py",
        "git status --short; git diff HEAD~1 -- src/a.py; git log --oneline -5; git show HEAD:a.py",
        "rg -n --glob='*.py' 'def foo' src",
        "timeout 5 grep -c a b",
        "bash -c 'cat a | head -1'",
        "command -v node && node --version",
        f"cd {ROOT}/src && cat {ROOT}/README.md",
        "cat <<'E' | grep a\n$(rm x)\nE",
        "# nothing",
    ],
)
def test_strict_lets_read(command: str) -> None:
    """What only reads inside the work tree needs nobody, whatever it is put together of."""
    assert run("strict", command, root=ROOT).verdict == "allow", run("strict", command, root=ROOT)


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("npm ci && npm test", "allow"),
        ("rm -rf build dist", "allow"),
        ("curl http://localhost:8000 | python", "allow"),
        ("for f in *.py; do sed -i s/a/b/ $f; done", "allow"),
        ("rm -rf .", "ask"),
        ("cd src && rm -rf ../.git", "ask"),
        (f"rm -r {ROOT}", "ask"),
        ("if true; then rm -rf *; fi", "ask"),
        ("echo $(rm -rf ~)", "ask"),
        ("echo x | tee .github/workflows/ci.yml", "ask"),
        ("cd .github/workflows && cat > ci.yml <<'E'\nname: x\nE", "ask"),
        ("cat > .github/x.yml <<'E'\n" + "a: b\n" * 4000 + "E", "ask"),
        (f"echo a >> {ROOT}/CODEOWNERS", "ask"),
        ("find . -name AGENTS.md -exec rm AGENTS.md {} +", "ask"),
        ("git push --force", "ask"),
        ("bash -c 'npm publish'", "ask"),
    ],
)
def test_default_asks_only_about_what_people_decide(command: str, verdict: Verdict) -> None:
    """Protected files, deletion of everything, and what leaves the machine."""
    assert run("default", command, root=ROOT).verdict == verdict


@pytest.mark.parametrize(
    "command",
    [
        "git -C a push",
        "git -c x=y push",
        "git --no-pager push",
        "git --git-dir a --work-tree=b push",
        "git -C .github rm -q workflows/x.yml",
        "find -delete",
        "find -type f -delete",
        "git rm -rf .",
        "rm -rf $PWD",
        'rm -rf "$PWD"/*',
        "rm -rf $(pwd)",
        "echo x > $PWD/.github/x",
        "\\ #;git push",
        "bash -o pipefail -c 'git push'",
        "bash -euo pipefail -c 'git push'",
        "bash -co pipefail 'git push'",
        "bash +x -O extglob -c 'git push'",
        "bash --norc -c -e -- 'git push'",
        "eval -- git push *",
        "xargs --replace git push x",
        "xargs -I{} cp {} AGENTS.md",
        "xargs -i cp {} AGENTS.md",
        "git rm -rf ':/'",
        "git rm -r ':(top)'",
        "rm -rf **",
        "pnpm -r publish",
        "python -m twine upload x",
        "git lfs push x",
        "find .github -delete",
        "git checkout main -- .github",
        "cd -- .github; echo x > y",
        "pushd .github && echo x > y",
    ],
)
def test_other_ways_to_write_the_same_are_seen(command: str) -> None:
    """Options before git's own command, no path at all, and the place by another name."""
    assert run("default", command).verdict == "ask"


@pytest.mark.parametrize("command", ["rm -rf $HERE", "rm -rf {a,b}", "git -C push status", "rm -rf $PWD/build"])
def test_what_only_looks_like_it_is_allowed(command: str) -> None:
    """What another variable holds nobody knows, and a folder may have any name."""
    assert run("default", command).verdict == "allow"


def test_without_a_sandbox_of_the_least_strength_nothing_is_allowed_for_its_sake() -> None:
    """The sandbox is the boundary: where it is weaker than the operator asks for, a person stands in."""
    assert run("default", "npm test", level="landlock", minimum="landlock").verdict == "allow"
    assert run("default", "npm test", level="none", minimum="none").verdict == "allow"
    assert run("default", "npm test", level="none", minimum="landlock").verdict == "ask"
    assert run("default", "echo `x`", level="landlock", minimum="bubblewrap").verdict == "ask"
    assert run("strict", "ls", level="none", minimum="landlock").verdict == "allow"


@pytest.mark.parametrize("policy", ["default", "strict"])
@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        ("read", {"path": ".github/workflows/ci.yml"}, "allow"),
        ("write", {"path": "src/a.py", "content": "x"}, "allow"),
        ("write", {"path": "./.GitHub/workflows/ci.yml", "content": "x"}, "ask"),
        ("move", {"path": "a", "target": "CODEOWNERS"}, "ask"),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: sub/AGENTS.md\n*** End Patch"}, "ask"),
        ("apply_patch", {"patch": "*** Update File: a\n*** Move to: .github/b\n"}, "ask"),
        ("apply_patch", {"patch": "*** Begin Patch\n *** Delete File: AGENTS.md\n*** End Patch"}, "ask"),
        ("apply_patch", {"patch": "*** Update File: a\n\t\r*** Move to: .github/b\n"}, "ask"),
        ("apply_patch", {"patch": "*** Update File: a\n"}, "allow"),
        ("edit", {"path": 5}, "allow"),
        ("checks", {}, "allow"),
        ("run", {"command": "ls", "requires_approval": True}, "ask"),
        ("run", {"command": None}, "allow"),
    ],
)
def test_tools_are_judged_by_their_paths(
    policy: str, name: str, arguments: dict[str, object], verdict: Verdict
) -> None:
    """Whichever argument names the path, also inside a patch; what is no text is for the tool to refuse."""
    assert judge({policy: POLICIES[policy]}, name, arguments).verdict == verdict


def test_a_tool_that_no_rule_knows_is_for_the_policy_to_say() -> None:
    """`default` allows, `strict` asks."""
    assert judge({"default": POLICIES["default"]}, "figma", {}) == Judgement("allow", "", "default.otherwise")
    assert judge({"strict": POLICIES["strict"]}, "figma", {}).rule == "strict.otherwise"


def test_strict_asks_nobody_about_a_tool_that_changes_nothing() -> None:
    """Each of ours stands in its rules."""
    asked = {
        tool.spec.name: verdict
        for tool in standard_tools()
        if tool.reads_only and (verdict := judge({"strict": POLICIES["strict"]}, tool.spec.name, {}).verdict) != "allow"
    }
    assert asked == {}


def test_the_strictest_rule_decides_and_is_named() -> None:
    """In whatever order rules stand; more policies only tighten."""
    policies = own(
        "{tool: run, command: [a], verdict: deny, why: never}",
        "{tool: run, verdict: allow, why: why not}",
        "{tool: run, command: [[b, c], '/x+/'], verdict: ask, why: who knows}",
        otherwise="deny",
    )
    assert judge(policies, "run", {"command": "b xx; a"}) == Judgement("deny", "never", "own[0]")
    assert judge(policies, "run", {"command": "c xx y"}) == Judgement("ask", "who knows", "own[2]")
    assert judge(policies, "run", {"command": "c xy"}) == Judgement("allow", "why not", "own[1]")
    assert judge(policies, "write", {"path": "a"}).verdict == "deny"
    both = {**policies, "strict": POLICIES["strict"]}
    assert judge(both, "run", {"command": "c xy"}).rule == "strict.otherwise"


def test_a_rule_that_allows_paths_allows_no_others() -> None:
    """One path outside is enough to leave the call to others, and one inside for a rule that denies."""
    allowing = own("{tool: move, path: ['docs/**'], verdict: allow, why: x}", otherwise="ask")
    denying = own("{tool: move, path: ['docs/**'], verdict: deny, why: x}", otherwise="ask")
    for policies, mixed, inside in ((allowing, "ask", "allow"), (denying, "deny", "deny")):
        assert judge(policies, "move", {"path": "docs/a", "target": "b"}).verdict == mixed
        assert judge(policies, "move", {"path": "docs/a", "target": "docs/b"}).verdict == inside


def test_a_folder_counts_as_what_is_in_it() -> None:
    """Whoever deletes or moves it touches all of that; allowed is only what is named."""
    denying = own("{tool: run, command: [[rm, mv]], path: 'data/**', verdict: deny, why: x}")
    allowing = own("{tool: write, path: 'data/**', verdict: allow, why: x}", otherwise="ask")
    for command, verdict in (("rm -rf data", "deny"), ("mv ./data/ x", "deny"), ("rm -rf database", "allow")):
        assert judge(denying, "run", {"command": command}).verdict == verdict
    assert judge(allowing, "write", {"path": "data"}).verdict == "ask"


PARTS = [
    "ls",
    "rm x",
    "cat a | head",
    "rm -rf .",
    "echo '$(x)'",
    "cat > CODEOWNERS",
    "git push",
    "A=1 ls",
    "a 'b",
    "$x",
]
PARTS += ["(ls; rm y)", "if ls; then rm x; fi", "sh -c 'ls'", "sh -c 'git push'", "cat <(ls)", "find . -delete", "# x"]


@given(st.text() | st.lists(st.sampled_from(PARTS + EVASIONS), max_size=5).map("\n".join))
def test_any_text_is_judged(text: str) -> None:
    """Nothing raises, `strict` is never looser, and a script that is not understood is asked about."""
    strict, default = run("strict", text), run("default", text)
    assert ORDER.index(strict.verdict) >= ORDER.index(default.verdict)
    assert parse(text).unread is None or strict.verdict == "ask"


@given(st.lists(st.sampled_from([part for part in PARTS if part not in {"a 'b", "# x"}]), min_size=1, max_size=5))
@pytest.mark.parametrize("name", ["default", "strict"])
@pytest.mark.parametrize("sign", ["\n", " ; ", " && ", " || ", " | "])
def test_a_compound_is_as_strict_as_its_strictest_part(sign: str, name: str, parts: list[str]) -> None:
    """So one more command never makes it looser."""
    assert run(name, sign.join(parts)).verdict == worst([run(name, part) for part in parts])


READING = [
    "ls ",
    "cat a",
    "echo ",
    "printf ",
    "test ",
    "cd b ",
    "find . ",
    "sort ",
    "uniq a ",
    "sed -n ",
    "1p ",
    "xargs ",
]
READING += ["env ", "sh -c ", "command ", "eval ", "exec ", "timeout 1 ", "date ", "git log ", " ", "\n", "\t", "\\\n"]
WRITING = [
    "touch M",
    "M",
    ">M ",
    "> M",
    "2>",
    "&>",
    "-exec touch M \\;",
    "-fprint M",
    "-o M ",
    "'1w M' ",
    "-v ",
    "tee M",
]
WRITING += [
    "'a[$(touch M)]' ",
    "--output=M ",
    "alias ls='touch M'",
    "ls(){ touch M;}",
    "trap 'touch M' 0",
    "x=1 ",
    "IFS=",
]
BETWEEN = [
    ";",
    "&",
    "&&",
    "|",
    "||",
    "(",
    ")",
    "{ ",
    ";}",
    "'",
    '"',
    "\\",
    "#",
    "$(",
    "`",
    "<(",
    ">(",
    "<<E\n",
    "<<'E'\n",
]
BETWEEN += [
    "\nE\n",
    "<<<",
    "$IFS",
    "*",
    "~",
    "! ",
    "if true;then ",
    "fi",
    "for i in 1;do ",
    "done",
    "[",
    "]",
    "{",
    "}",
    ",",
]


def test_what_strict_allows_makes_no_file(tmp_path: Path) -> None:
    """Scripts put together by chance, always the same ones: bash runs what is allowed, and nothing new is there."""
    chance = random.Random(6)
    folder = tmp_path / "tree"
    (folder / "b").mkdir(parents=True)
    (folder / "a").write_text("a\n", encoding="utf-8")
    ran = 0
    for _ in range(8000):
        text = "".join(chance.choices(READING + WRITING + BETWEEN, k=chance.randint(2, 8)))
        if "M" not in text or run("strict", text).verdict != "allow":
            continue
        ran += 1
        subprocess.run(
            ["/bin/bash", "-c", text],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
            "tree",
            "tree/a",
            "tree/b",
        ], text
    assert ran > 50


def test_the_recorded_session(capsys: pytest.CaptureFixture[str]) -> None:
    """A real session: at most two of its commands need a person, and under `strict` nearly half of them none."""
    session()  # skips where it is absent
    messages = [json.loads(line).get("message") or {} for line in place().read_text(encoding="utf-8").splitlines()]
    calls = [part for one in messages if one.get("role") == "assistant" for part in one["content"]]
    commands = [call["arguments"]["command"] for call in calls if call.get("name") == "bash"]
    assert len(commands) == 192
    read = sum(parse(command).unread is None for command in commands)
    found = {
        name: Counter(run(name, command, root=ROOT).verdict for command in commands) for name in ("default", "strict")
    }
    with capsys.disabled():
        print(  # noqa: T201 - the figures are what the test is for
            f"\n{len(commands)} commands of a recorded session: {read / len(commands):.1%} are parsed; "
            f"default asks {found['default']['ask']}, denies {found['default']['deny']}; "
            f"strict needs nobody for {found['strict']['allow'] / len(commands):.1%}, asks {found['strict']['ask']}"
        )
    assert found["default"]["ask"] <= 2
    assert found["default"]["deny"] == found["strict"]["deny"] == 0
    assert found["strict"]["allow"] >= 0.45 * len(commands)
    assert read >= 0.95 * len(commands)
