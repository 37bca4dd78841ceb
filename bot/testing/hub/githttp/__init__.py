"""Git over smart HTTP: `app` is the ASGI side, `backend` runs git's own CGI program, `proc_receive` is a git hook."""
