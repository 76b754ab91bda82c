"""``python -m matchbound``."""

from matchbound.cli import main

if __name__ == "__main__":
    main()
