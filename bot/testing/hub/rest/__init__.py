"""The REST API: `routing` says what a route is and needs, `dispatch` answers, every other module serves one noun."""
