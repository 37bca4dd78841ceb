"""Where commands run and files are touched: one small helper process per workspace, with a uid of its own.

The only room that starts processes for the model. May import `domain` and `errors`.
A new kind of sandbox is one file that holds a `Sandbox`.
"""
