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

    def test_wrong_arguments_are_refused_by_name(self):
        for script, arguments, message in (
                ("quickstart", ["--stepz", "3"], "unknown option --stepz"),
                ("quickstart", ["--steps", "abc"], "--steps: got 'abc', expected a whole number of at least 1"),
                ("quickstart", ["--more", "0"], "--more: got '0', expected a whole number of at least 1"),
                ("quickstart", ["--steps"], "--steps: needs a value"),
                ("quickstart", ["--build", "/nowhere"], "--build: no program at /nowhere/bin/altiplano"),
                ("test", ["--fast"], "unknown option --fast")):
            done = subprocess.run([ROOT / "ci" / script, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr, f"ci/{script}: {message}; ci/{script} --help says what there is\n")

    def test_help_says_what_the_script_does_and_takes(self):
        for script, word in (("quickstart", "--steps N"), ("test", "ci/test --full")):
            done = subprocess.run([ROOT / "ci" / script, "--help"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(word, done.stdout)
            self.assertNotIn("set -euo", done.stdout)

    def test_the_step_that_fails_is_named_last(self):
        with tempfile.TemporaryDirectory(prefix="altiplano_quickstart_") as folder:
            done = subprocess.run([ROOT / "ci/quickstart", "--build", BUILD, "--run", "/proc/nowhere", "--steps", "2"], cwd=folder,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.splitlines()[-1],
                             "ci/quickstart: failed with exit code 2 in: 4/6 training 2 steps on four ranks: data 2 x tensor 2")


if __name__ == "__main__":
    sys.exit(unittest.main())
