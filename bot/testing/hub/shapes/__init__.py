"""GitHub's JSON for each record, the same for REST answers and webhook payloads."""
