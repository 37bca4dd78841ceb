"""Tests that are new are named, so that they can be run on the old code too."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.projects.evidence.changes import Change
from bot.projects.evidence.touched import changed_tests, new_tests
from tests.unit.projects.evidence.made import changes

OLD = """
    def test_old():
        assert add(1, 1) == 2
"""
MORE = """

    class TestB:
        @mark
        async def test_b(
            self,
        ) -> None:
            assert b
"""
JS = """
    describe('a', () => {
      describe("b", () => {
        it(`does c`, async () => {});
      });
      test.each([
        1,
      ])('d %s', (one) => {
        expect(1);
      });
    });
"""
RUST = """
    fn a() {
    }

    mod tests {
        fn helper() {}

        #[tokio::test]
        async fn b() {
            assert!(a());
        }
    }
"""
JAVA = """
    public class ATest {
        @BeforeEach
        void up() {
        }

        @Test
        public void a()
        {
            fail();
        }

        @ParameterizedTest
        @ValueSource(ints = {1})
        void b(int one) {
        }
    }
"""
NEW: Mapping[str, tuple[str, str | None, str, list[str]]] = {
    "python": (
        "tests/test_a.py",
        OLD,
        OLD + MORE,
        ["TestB::test_b"],
    ),
    "python, a new file": ("tests/test_a.py", None, OLD, ["test_old"]),
    "python, only in a string": (
        "tests/test_a.py",
        OLD,
        OLD + '    """\n    def test_b():\n        assert b\n    """\n',
        [],
    ),
    "python, renamed": ("tests/test_a.py", OLD, OLD.replace("test_old", "test_sum"), []),
    "python that does not parse": ("tests/test_a.py", OLD, OLD + "    def test_b(:\n        assert (\n", ["test_b"]),
    "javascript": (
        "src/a.spec.ts",
        None,
        JS,
        ["a b does c", "a d %s"],
    ),
    "go": (
        "a_test.go",
        None,
        'func TestA(t *testing.T) {\n\tt.Run("b", f)\n}\n\nfunc Testing() {\n}\n\nfunc FuzzB(f *testing.F) {\n}\n',
        ["FuzzB", "TestA"],
    ),
    "rust": (
        "src/lib.rs",
        "fn a() {\n}\n",
        RUST,
        ["tests::b"],
    ),
    "java": (
        "src/test/java/ATest.java",
        None,
        JAVA,
        ["ATest::a", "ATest::b"],
    ),
    "kotlin": ("ATest.kt", None, "class ATest {\n    @Test fun `adds two`() {\n    }\n}\n", ["ATest::`adds two`"]),
    "no tests": ("src/small.py", None, OLD, []),
}


@pytest.mark.parametrize("name", NEW)
def test_new_tests_are_named(name: str) -> None:
    """Each by its path, the groups that it stands in, and its name."""
    path, before, after, expected = NEW[name]
    assert new_tests(changes({path: (before, after)})) == [f"{path}::{one}" for one in expected]


def test_a_moved_test_is_not_new() -> None:
    """Neither with its file nor alone."""
    assert new_tests(changes({"test_a.py": (OLD, None), "tests/test_a.py": (None, OLD)})) == []
    assert new_tests(changes({"test_a.py": (OLD, ""), "test_b.py": ("", OLD)})) == []


def test_changed_tests_are_named_apart() -> None:
    """A case more in a test that was there is no new test, but one that says something else."""
    files = {"test_a.py": (OLD, OLD + "        assert add(2, 2) == 4\n"), "test_b.py": (OLD, OLD + "\n\n")}
    assert new_tests(changes(files)) == []
    assert changed_tests(changes(files)) == ["test_a.py::test_old"]


@given(
    st.lists(st.builds(Change, st.sampled_from(["test_a.py", "a.test.js", "a.rs"]), st.none(), st.binary()), max_size=3)
)
def test_no_bytes_bring_it_down(some: list[Change]) -> None:
    """Whatever the files hold, there is an answer."""
    assert len(new_tests(some)) >= len(changed_tests(some))
