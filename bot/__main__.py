"""`python -m bot` is the `issuewright` command."""

from bot.cli.main import main

if __name__ == "__main__":
    main()
