"""What the model may do: one file for each tool.

Tools know the sandbox and nothing of GitHub, the store or the agent. A new tool is one file that holds a `Tool`
and one line in `bootstrap`; nothing registers itself at import.
"""
