"""``python -m netloop.sandbox``: the child process, which reads requests from stdin and writes replies to stdout."""

from netloop.tools.sandbox.child import main

if __name__ == "__main__":
    main()
