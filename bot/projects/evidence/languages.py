"""How tests are written in each language, as regular expressions of lines; a further language is a row of `LANGUAGES`.

What is matched has its strings and comments blanked, see `masked`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """What a test looks like; every expression is searched in one line."""

    files: re.Pattern[str]
    """Paths of files that hold tests."""
    run: re.Pattern[str]
    """Those of them that the usual runner collects."""
    strings: re.Pattern[str]
    """Strings and comments of a whole file."""
    test: re.Pattern[str]
    """The line at which a test begins, with `name` in it unless that is a string."""
    asserts: re.Pattern[str]
    skips: re.Pattern[str]
    """What keeps a test from running, or its failure from counting."""
    group: re.Pattern[str] | None = None
    """The line at which a class, a module or a `describe` begins."""
    only: re.Pattern[str] | None = None
    """What keeps all other tests from running."""
    marked: re.Pattern[str] | None = None
    """What stands above a function that is a test; None where its name says so."""
    ends: re.Pattern[str] | None = None
    """What ends the process that runs the tests as if all had passed, or acts when it ends."""
    swallows: re.Pattern[str] | None = None
    """Where a failure that was raised is taken; `always` where nothing but a failure of a test is."""
    tries: re.Pattern[str] | None = None
    """The line at which what may raise it begins, above it."""
    rethrows: re.Pattern[str] | None = None
    """What lets a failure that was taken fail the test all the same, beside an assertion."""
    braces: bool = True
    join: str = "::"
    """Between the names of groups and the test's."""


_C_COMMENTS = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_QUOTED = r'"(?:\\.|[^"\\\n])*"?'
_SINGLE = r"'(?:\\.|[^'\\\n])*'?"
"""What is not closed goes on to the end of the line: looking for a missing end from each quote takes for ever."""
_PLAIN = r"(?:\\.|[^/\\\n\[]){0,300}+"
_REGEX = rf"(?<=[=(,:\[!&|?{{}};\n])[ \t]*/(?![*/]){_PLAIN}(?:\[(?:\\.|[^\]\\\n]){{0,60}}+\]{_PLAIN}){{0,5}}+/[a-z]*"
"""Of JavaScript, where an expression begins: else a quote within it would begin a string. Bounded: of a line that is
full of begins, each is looked for an end."""
_INSERTED = re.compile(r"\$\{[^{}]*\}")
_FORMATTED = re.compile(r"\{[^{}]*\}")
"""Code within a string."""
_SHOWN = re.compile(r"[^\n]")
_ESCAPED = re.compile(r"\\u+([0-9a-fA-F]{4})")


def _strings(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL)


PYTHON = Language(
    files=re.compile(r"(?:^|/)(?:tests?/.*|test[^/]*|[^/]*_test|tests|conftest)\.py$"),
    run=re.compile(r"(?:^|/)(?:test[^/]*|[^/]*_test|tests)\.py$"),
    strings=_strings(rf'#[^\n]*|"""(?:\\.|[^\\])*?(?:"""|\Z)|\'\'\'(?:\\.|[^\\])*?(?:\'\'\'|\Z)|{_QUOTED}|{_SINGLE}'),
    test=re.compile(r"^\s*(?:async )?def (?P<name>test\w*)\s*[(\[]"),
    group=re.compile(r"^\s*class (?P<name>\w+)"),
    asserts=re.compile(
        r"(?:^|[;:])\s*assert\b|\b(?:assert\w+|expect\w*|raises|warns|deprecated_call|fail|should\w*)\s*\("
    ),
    skips=re.compile(
        r"@(?:\w+\.)*(?:skip|skipif|xfail|skipIf|skipUnless|expectedFailure)\b"
        r"|\bunittest\.(?:skip\w*|expectedFailure)\b|\bmark\.(?:skip|skipif|xfail)\b|\bpytestmark\s*=.{0,300}\b(?:skip|xfail)"
        r"|\bpytest\.(?:skip|xfail|importorskip)\s*\(|^\s*(?:skip|xfail|importorskip)\(\s*[\"'f]|\.skipTest\s*\(|\braise\s+(?:unittest\.)?SkipTest\b"
        r"|\b__test__\s*=\s*False|^\s*(?:if|while) (?:False|0)\s*:|^\s*for \w+ in (?:\(\)|\[\])\s*:"
        r"|\bparametrize\(\s*(?:[\"'][^\"']{0,200}[\"']|[(\[][^()\[\]]{0,200}[)\]])\s*,\s*(?:\[\s*\]|\(\s*\))\s*[,)]"
        r"|^(?:del\s+(?:test|Test)\w*|(?:test|Test)\w*\s*=\s*None\b)"
    ),
    ends=re.compile(
        r"\batexit\b|\bos\._exit\b|\._exit\(\s*0\s*\)|\bimport\b.{0,100}\b_exit\b|(?<![\w.])(?:sys\.)?(?:exit|quit)\(\s*0?\s*\)"
        r"|\bSystemExit\(\s*0\s*\)|\braise\s+SystemExit\s*$|\bos\.exec[lv]\w{0,3}\(|\bos\.kill\(\s*os\.getpid|\.exitstatus\s*=[^=]"
        r"|\bpytest\.exit\(.{0,200}(?:\breturncode\s*=\s*|,\s*)0\b|\bfrom pytest import\b.{0,200}\bexit\b"
    ),
    swallows=re.compile(
        r"^\s*(?:except\b[^:]*\b(?:(?P<always>AssertionError|BaseException)|Exception)\b|except\s*:|finally\s*:"
        r"|(?:async )?with\b.{0,200}?\bsuppress\([^)]{0,200}?\b(?:(?P<also>AssertionError|BaseException)|Exception)\b)"
    ),
    tries=re.compile(r"^\s*try\s*:"),
    rethrows=re.compile(r"\braise\b"),
    only=re.compile(r"^(?:def load_tests\b|load_tests\s*=)"),
    braces=False,
)
JAVASCRIPT = Language(
    files=re.compile(r"(?:^|/)(?:(?:__tests__|tests?|specs?)/.*|[^/]*[.-](?:test|spec|cy|e2e))\.[cm]?[jt]sx?$"),
    run=re.compile(r"(?:^|/)(?:(?:__tests__|tests?|specs?)/.*|[^/]*[.-](?:test|spec|cy|e2e))\.[cm]?[jt]sx?$"),
    strings=_strings(rf"{_C_COMMENTS}|{_REGEX}|{_QUOTED}|{_SINGLE}|`(?:\\.|[^`\\])*(?:`|\Z)"),
    test=re.compile(r"^\s*(?:await\s+)?(?:\w+\.)?(?:[xf]?it|[xf]?test|[xf]?specify)(?:\.\w+)*\s*[(`]"),
    group=re.compile(r"^\s*(?:[xf]?describe|[xf]?context|suite)(?:\.\w+)*\s*\("),
    asserts=re.compile(
        r"\b(?:expect\w*|assert\w*)\s*[.(]|\.should\b"
        r"|\bt\.(?:is|not|deepEqual|like|truthy|falsy|true|false|throws|notThrows|equal|ok|same|assert|rejects|regex|notRegex|snapshot|fail)\w*\s*\("
    ),
    skips=re.compile(
        r"^\s*(?:await\s+)?(?:\w+\.)*(?:x(?:it|test|describe|context|specify)\b"
        r"|(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.(?:skip|skipIf|runIf|todo|failing|fails|fixme)\b)"
        r"|\b(?:this|t|ctx|context|test)\.(?:skip|todo|fixme)\s*\(|[{,]\s*(?:skip|todo)\s*:\s*(?:true\b|[\"'`])"
        r"|=\s*(?:it|test|describe|context|suite|specify)\.(?:skip|todo|failing|fails|fixme)\s*;?$|\bif \((?:false|0)\)"
    ),
    ends=re.compile(r"\bprocess\.(?:exit\(\s*0?\s*\)|exitCode\s*=\s*0\b|reallyExit)"),
    swallows=re.compile(r"^\s*(?:\}\s*)?catch\b"),
    tries=re.compile(r"^\s*try\s*\{"),
    rethrows=re.compile(r"\b(?:throw|done|reject|t\.fail)\b"),
    only=re.compile(
        r"^\s*(?:await\s+)?(?:f(?:it|test|describe|context|specify)\s*\("
        r"|(?:\w+\.)?(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.only\b)|[{,]\s*only\s*:\s*true\b"
    ),
    join=" ",
)
GO = Language(
    files=re.compile(r"_test\.go$"),
    run=re.compile(
        r"^(?!(?:.*/)?(?:testdata|vendor|[_.][^/]*)/)(?:.*/)?[^_.][^/]*(?<!_windows)(?<!_darwin)(?<!_freebsd)(?<!_openbsd)"
        r"(?<!_netbsd)(?<!_android)(?<!_ios)(?<!_js)(?<!_wasm)(?<!_plan9)(?<!_solaris)(?<!_aix)_test\.go$"
    ),
    strings=_strings(rf"{_C_COMMENTS}|{_QUOTED}|{_SINGLE}|`[^`]*(?:`|\Z)"),
    test=re.compile(r"^func (?P<name>(?!TestMain\b)(?:Test|Fuzz|Example)(?![a-z])\w*)\s*\("),
    asserts=re.compile(
        r"\b\w+\.(?:Error|Fatal|Fail)(?:f|Now)?\(|\b(?:assert|require|is|qt|must)\.\w+\(|\.(?:Assert|Check)\(|\bExpect\("
    ),
    skips=re.compile(r"\b\w+\.(?:Skip|Skipf|SkipNow)\("),
    ends=re.compile(r"\b(?:os|syscall)\.Exit\(0\)"),
)
RUST = Language(
    files=re.compile(r"\.rs$"),
    run=re.compile(r"\.rs$"),
    strings=_strings(r'//[^\n]*|/\*.*?(?:\*/|\Z)|r(?P<h>#{1,9})".*?(?:"(?P=h)|\Z)|\'"\'|"(?:\\.|[^"\\])*"?'),
    test=re.compile(r"^\s*(?:pub\s+)?(?:async\s+)?fn (?P<name>\w+)"),
    group=re.compile(r"^\s*(?:pub )?mod (?P<name>\w+)\s*\{"),
    marked=re.compile(r"^\s*#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck|proptest)\b"),
    asserts=re.compile(r"\b\w*assert\w*!|\bpanic!|\.(?:unwrap_err|expect_err)\("),
    ends=re.compile(r"\bprocess::exit\(0\)|\b_exit\(0\)"),
    skips=re.compile(
        r"^\s*#\[\s*(?:ignore|should_panic|cfg_attr\(.*\bignore)\b|^\s*#!?\[\s*cfg\((?!test\))|\bif false\s*\{"
    ),
)
JAVA = Language(
    files=re.compile(
        r"(?:(?:^|/)src/\w*[tT]est\w*/.*|(?:^|/)Test[^/]*|(?:Tests?|TestCase|IT|Spec))\.(?:java|kt|groovy)$"
    ),
    run=re.compile(r"(?:(?:^|/)Test[^/]*|(?:Tests?|TestCase|IT|Spec))\.(?:java|kt|groovy)$"),
    strings=_strings(rf'{_C_COMMENTS}|""".*?(?:"""|\Z)|{_QUOTED}|{_SINGLE}'),
    test=re.compile(
        r"^\s*(?:@\w+(?:\(\s*\))?\s+)*(?:(?:public|protected|private|final|static|suspend)\s+)*(?:void|fun)\s+"
        r"(?P<name>\w+|`[^`]*`)\s*\("
    ),
    group=re.compile(r"^\s*(?:\w+\s+)*class (?P<name>\w+)"),
    marked=re.compile(r"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b"),
    asserts=re.compile(r"\b(?:assert\w*|verify\w*|fail|expect\w*|should\w*)\s*[({]|^\s*assert\b"),
    ends=re.compile(r"\bSystem\.exit\(0\)|\.halt\(0\)|\bexitProcess\(0\)"),
    swallows=re.compile(
        r"^\s*(?:\}\s*)?catch\s*\([^{}]{0,300}?\b(?:(?P<always>AssertionError|AssertionFailedError|Throwable)|Exception)\b"
    ),
    tries=re.compile(r"^\s*try\b"),
    rethrows=re.compile(r"\bthrow\b"),
    skips=re.compile(r"@(?:Disabled\w*|Ignore|EnabledIf\w*|EnabledOn\w*)\b|\bassum(?:e|ing)\w*\s*\("),
)
LANGUAGES: Sequence[Language] = (PYTHON, JAVASCRIPT, GO, RUST, JAVA)

_ANY = r"[^\s=][^\n]{0,100}?"
"""An expression; the same twice says nothing, also where it is called each time."""
TRIVIAL = re.compile(
    r"^(?:assert (?:True|1|not False|[\"'] *[\"'])"
    r"|assert \((?:[^()]|\([^()]*\)){1,300},\s*f?([\"'])[^\"')]*\1\)"
    r"|self\.assertTrue\(True\)|self\.assertFalse\(False\)"
    rf"|assert (?P<a>{_ANY}) (?:==|is|>=|<=) (?P=a)|self\.assert(?:Equals?|Is)\((?P<b>{_ANY}), (?P=b)\)"
    rf"|assert [^\n]{{1,200}} or (?:True|1)|expect\((?P<c>{_ANY})\)\.to(?:Be|Equal|StrictEqual)\((?P=c)\)"
    r"|expect\(true\)\.to(?:Be\(true\)|BeTruthy\(\))|assert\((?:true|1)\)|assert\.ok\(true\)"
    rf"|(?:assert|require)\.True\(t, true\)|assert!\(true\)|assert_eq!\((?P<d>{_ANY}), (?P=d)\)"
    rf"|(?:Assertions?\.)?assertTrue\(true\)|(?:Assertions?\.)?assertEquals\((?P<e>{_ANY}), (?P=e)\))\s*;?$"
)
"""Assertions that hold whatever the code does."""


def language_of(path: str) -> Language | None:
    """Name the language of a file of tests; None for other files."""
    return next((language for language in LANGUAGES if language.files.search(path)), None)


def meant(path: str, text: str) -> str:
    """Read a file as its language does: what ends a line for it, and what is written as an escape."""
    language = language_of(path)
    if language is JAVASCRIPT:
        return text.replace("\u2028", "\n").replace("\u2029", "\n")
    if language is JAVA and path.endswith(".java"):
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return text


def masked(language: Language, text: str) -> str:
    """Blank strings and comments, so that what is left is code; every character keeps its place."""

    def blank(found: re.Match[str]) -> str:
        if found[0].startswith("`") and language is JAVASCRIPT:
            return _blank(found[0], _INSERTED)
        is_formatted = language is PYTHON and "f" in text[max(0, found.start() - 2) : found.start()].lower()
        return _blank(found[0], _FORMATTED if is_formatted and found[0][0] in "\"'" else None)

    return language.strings.sub(blank, text)


def _blank(text: str, code: re.Pattern[str] | None) -> str:
    """Blank a string, but for what of it is code."""
    quote = text[0] if text[0] in "\"'`" else " "
    pieces, at = list[str](), 0
    for found in code.finditer(text) if code is not None else ():
        pieces += [_SHOWN.sub(" ", text[at : found.start()]), found[0]]
        at = found.end()
    body = "".join([*pieces, _SHOWN.sub(" ", text[at:])])
    return quote + body[1:-1] + quote if len(body) > 1 and text[-1] == text[0] else body
