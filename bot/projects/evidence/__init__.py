"""What shows that a change works, and what weakens it: counts of tests, changes of checks, tests that are new.

Pure: text and bytes come in, values come out. No file of a repository is compiled here, only read by line, so that none
can bring the harness down.
"""
