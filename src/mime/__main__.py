"""`python -m mime`: the command line, where its script is not on the path."""

from mime.cli import main

if __name__ == "__main__":
    main()
