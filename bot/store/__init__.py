"""What is remembered: deliveries in a database of their own, everything else in one other.

The only speaker of SQL. May import `domain` and `errors`. A new table is a revision in `migrations/` and lines in
`schema.py`.
"""
