"""The command `zellige`: the program of the same name, from the module that `import zellige` loads too."""

import os
import signal
import sys

from ._zellige import command


def main() -> int:
    """Carries out the command line of this process and returns the exit code, as the binary does."""
    # As the binary starts: Ctrl-C ends a command that has nothing to save, and a run after its checkpoint.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Closed ones are none.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    code = command(["zellige", *sys.argv[1:]], [sys.executable, "-m", "zellige"])
    # Threads and drivers have come to their end; the interpreter's own end could only change the code.
    os._exit(code)


if __name__ == "__main__":
    main()
