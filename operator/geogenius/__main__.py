"""Hands over to the command line: ``python -m geogenius``."""

from geogenius.cli import main

if __name__ == "__main__":
    main()
