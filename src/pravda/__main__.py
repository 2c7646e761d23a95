"""`python -m pravda`."""

from pravda.cli.entry import main

if __name__ == "__main__":
    main()
