"""The contract of `zellige.ptypy` with PtyPy, against the stand-in in `stand_in`, in a process of its own that sees no other PtyPy."""

import os
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent / "stand_in"


class Contract(unittest.TestCase):
    def test_against_the_stand_in(self):
        path = [str(FOLDER), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
        done = subprocess.run([sys.executable, "-m", "unittest", "contract"], cwd=FOLDER, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Ran ", done.stderr)
        self.assertNotIn("Ran 0", done.stderr)


if __name__ == "__main__":
    unittest.main()
