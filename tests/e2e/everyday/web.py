"""Story: a web server gets a hello endpoint, and its dependency is not there."""

from bot.testing.model.reply import Call
from bot.testing.model.script import Choose, Condition, Script, Turn
from tests.e2e.everyday.telling import CONFIG, Files, plan, run, story

ISSUE = (
    "Add a hello endpoint",
    (
        "`GET /hello` should answer `hello`. The server needs `tinyweb`, which nobody wrote into `requirements.txt`; "
        "do that too, and try the server."
    ),
)
TINYWEB = '''\
"""A very small web framework."""

from wsgiref.simple_server import make_server


class App:
    """Answers requests by their path."""

    def __init__(self):
        self.routes = {}

    def route(self, path):
        """Take a function as the answer of a path."""
        return lambda function: self.routes.setdefault(path, function)

    def __call__(self, environ, start_response):
        found = self.routes.get(environ["PATH_INFO"])
        start_response("200 OK" if found else "404 Not Found", [("content-type", "text/plain")])
        return [found().encode() if found else b"not found"]

    def run(self, port):
        """Serve until ended."""
        with make_server("127.0.0.1", port, self) as server:
            server.serve_forever()
'''
PACKAGES = {("tinyweb", "1.2"): TINYWEB, ("tinyname", "1.0"): "NAME = 'shop'\n"}
APP = b"""\
import sys

import tinyname
from tinyweb import App

app = App()


@app.route("/")
def home():
    return f"this is {tinyname.NAME}"


if __name__ == "__main__":
    app.run(int(sys.argv[1]))
"""
NEW = """

@app.route("/hello")
def hello():
    return "hello"
"""
CHECK = "python3 -m py_compile app.py"
FILES: Files = {
    CONFIG: f"version: 1\nchecks:\n- name: compiles\n  run: {CHECK}\n".encode(),
    "app.py": APP,
    "requirements.txt": b"tinyname==1.0\n",
}
AFTER: Files = FILES | {
    "app.py": APP.replace(b'NAME}"\n', b'NAME}"\n' + NEW.encode()),
    "requirements.txt": b"tinyname==1.0\ntinyweb==1.2\n",
}
INSTALL = "pip install -r requirements.txt"
INSTALL_OWN = "python3 -m venv ~/venv && ~/venv/bin/pip install -r requirements.txt"
TRY = (
    "~/venv/bin/python app.py 8765 & "
    "curl -sS --retry 20 --retry-delay 1 --retry-connrefused -w ' %{http_code}\\n' http://localhost:8765/hello"
)
STEPS = ("Look at the server", "Add the endpoint and the requirement", "Install, and try it")
NOT_TRIED = (
    "The endpoint is there, and so is the requirement. It could not be tried: commands have no network here, so "
    "`tinyweb` could not be installed; the operator's setting `sandbox.network` would have to name `python`."
)
TRIED = "The endpoint answers `hello`; I installed `tinyweb` 1.2 and asked the running server."

SCRIPT: Script = story(
    "web",
    Turn(
        "I look at the server.",
        calls=[
            plan(*STEPS, done=0),
            Call("list"),
            Call("read", {"path": "app.py"}),
            Call("read", {"path": "requirements.txt"}),
            run("python3 -c 'import tinyname, tinyweb'"),
        ],
    ),
    Turn(
        "The dependency is missing, as the issue says.",
        calls=[
            Call("edit", {"path": "app.py", "old": '.NAME}"\n', "new": f'.NAME}}"\n{NEW}'}),
            Call(
                "edit", {"path": "requirements.txt", "old": "tinyname==1.0\n", "new": "tinyname==1.0\ntinyweb==1.2\n"}
            ),
            run(INSTALL),
            plan(*STEPS, done=2),
        ],
        expect=[
            # What is declared was set up by the harness; what is not is missing.
            Condition(tool="run", matches="No module named 'tinyweb'"),
            Condition(tool="read", matches="from tinyweb import App"),
        ],
    ),
    Choose(
        [
            Turn(
                "Nothing can be installed here, and the result says why.",
                when=Condition(tool="run", matches=r"commands here have no network.*`sandbox\.network`"),
                calls=[run(CHECK)],
            ),
            Turn(
                "Not into that environment; into one of my own, as the harness says.",
                when=Condition(tool="run", matches=r"Install into an environment of your own: `python3 -m venv"),
                calls=[run(INSTALL_OWN)],
                expect=[Condition(tool="run", lacks="network")],
            ),
        ]
    ),
    Choose(
        [
            Turn(
                "It is installed; I try it.",
                when=Condition(tool="run", matches="^Successfully installed tinyname-1.0 tinyweb-1.2"),
                calls=[run(TRY), run(CHECK)],
            ),
            Turn(
                "I say so.",
                when=Condition(tool="run", matches=r"\Aexit code: 0\Z"),
                calls=[Call("finish", {"summary": NOT_TRIED})],
            ),
        ]
    ),
    Turn(
        "It works.",
        calls=[Call("finish", {"summary": TRIED})],
        expect=[Condition(tool="run", matches=r"\Aexit code: 0\nstdout:\nhello 200$")],
    ),
)
