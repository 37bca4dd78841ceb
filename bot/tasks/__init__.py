"""One task, from an accepted request to a pull request, surviving a killed worker.

The natural path: `intake.py` → `admission.py` → `workflow.py` → `agent/loop.py` → `publish.py`. Knows seams only:
concrete classes come from `bootstrap`. A durable engine is one file in `engines/`.
"""
