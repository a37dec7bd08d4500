#!/usr/bin/env python3
"""ci/quickstart, shortened, tells its whole story twice in a row from any folder: trains, resumes under another plan, writes.

ALTIPLANO_BUILD_DIR names the build to use; default build/dev.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ALTIPLANO_BUILD_DIR", ROOT / "build/dev")).resolve()


def quickstart(folder):
    done = subprocess.run([ROOT / "ci/quickstart", "--build", BUILD, "--run", f"{folder}/run", "--steps", "20", "--more", "10"], cwd=folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    return done.returncode, done.stdout


class Quickstart(unittest.TestCase):
    def story_is_whole(self, code, text):
        self.assertEqual(code, 0, text)
        steps = [(int(step), float(loss)) for step, loss in re.findall(r"step:\s*(\d+)/\d+\s+loss:\s*([\d.]+)", text)]
        self.assertEqual(steps[-1][0], 30, text)
        self.assertLess(steps[-1][1], steps[0][1], "the loss does not fall\n" + text)
        self.assertGreater(min(step for step, _ in steps[-1:]), 20, "the resumed part shows no step\n" + text)
        self.assertRegex(text, r"validation\D*\d", text)
        self.assertIn("In the beginning", text.split("6/6")[1])

    def test_it_trains_resumes_and_writes_twice(self):
        with tempfile.TemporaryDirectory(prefix="altiplano_quickstart_") as folder:
            self.story_is_whole(*quickstart(folder))
            self.story_is_whole(*quickstart(folder))
            self.assertTrue((Path(folder) / "run.previous").is_dir(), "the first run was not kept")

    def test_a_wrong_option_is_refused_with_the_usage(self):
        done = subprocess.run([ROOT / "ci/quickstart", "--stepz", "3"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: ci/quickstart", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
