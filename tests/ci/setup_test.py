#!/usr/bin/env python3
"""ci/setup installs what is missing and only that, does nothing the second time, and says plainly what failed. dpkg-query, apt-get and sudo
are stand-ins here: a file `installed` lists packages, a file `log` records calls."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DPKG_QUERY = 'grep -qx "${@: -1}" "$STATE/installed" && echo -n installed || exit 1'
APT_GET = """echo "apt-get $*" >>"$STATE/log"
[[ ! -e "$STATE/offline" ]] || { echo "Could not resolve 'deb.debian.org'"; exit 100; }
[[ $1 != install || -e "$STATE/broken" ]] || printf '%s\\n' "${@:2}" | grep -v '^--' >>"$STATE/installed" """
SUDO = '[[ ! -e "$STATE/no_sudo" ]] || exit 1; shift; exec "$@"'


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.state = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        for name, body in {"dpkg-query": DPKG_QUERY, "apt-get": APT_GET, "sudo": SUDO}.items():
            script = self.state / name
            script.write_text("#!/bin/bash\n" + body + "\n")
            script.chmod(0o755)
        (self.state / "installed").write_text("cmake\n")
        self.state.chmod(0o777)

    def run_setup(self):
        environment = dict(os.environ, STATE=str(self.state), PATH=f"{self.state}:{os.environ['PATH']}")
        done = subprocess.run([ROOT / "ci/setup"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def log(self):
        file = self.state / "log"
        return file.read_text() if file.exists() else ""

    def test_it_installs_what_is_missing_and_the_second_time_calls_nothing(self):
        code, text = self.run_setup()
        self.assertEqual(code, 0, text)
        self.assertIn("libdnnl-dev", self.log())
        self.assertNotIn(" cmake ", self.log())
        (self.state / "log").unlink()
        code, text = self.run_setup()
        self.assertEqual((code, self.log()), (0, ""), text)
        self.assertIn("packages are there", text)

    def test_without_network_it_says_so_and_fails(self):
        (self.state / "offline").touch()
        code, text = self.run_setup()
        self.assertEqual(code, 1)
        self.assertIn("apt-get update failed", text)
        self.assertIn("Could not resolve", text)

    def test_a_package_that_did_not_arrive_is_named(self):
        (self.state / "broken").touch()
        code, text = self.run_setup()
        self.assertEqual(code, 1)
        self.assertIn("still missing: g++", text)

    @unittest.skipIf(os.geteuid() == 0, "root needs no sudo: run as a user to see the refusal without rights")
    def test_without_rights_it_prints_the_command_for_root(self):
        (self.state / "no_sudo").touch()
        code, text = self.run_setup()
        self.assertEqual(code, 1)
        self.assertIn("As root, run:", text)


if __name__ == "__main__":
    sys.exit(unittest.main())
