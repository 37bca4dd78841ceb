"""`issuewright demo`: the whole story on a local GitHub, with a scripted model unless a real one is named."""
