#!/usr/bin/env python3
"""ci/check_docs and ci/test_docs pass on true documents and name file, line and fault of false ones."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = "# x\n```sh setup\n./ci/quickstart\n./ci/test\n```\n"


class Documents(unittest.TestCase):
    def run_tool(self, tool, files, *more):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"README.md": README, "ci/quickstart": "", "configs/a.yaml": "", "tests/t": "", **files}.items():
                file = Path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            done = subprocess.run([ROOT / "ci" / tool, "--root", folder, *more], capture_output=True, text=True)
            return done.returncode, done.stdout

    def accepted(self, files):
        code, text = self.run_tool("check_docs", files)
        self.assertEqual(code, 0, text)

    def refused(self, files, message):
        code, text = self.run_tool("check_docs", files)
        self.assertEqual(code, 1, text)
        self.assertIn(message, text)

    def test_this_tree_tells_the_truth(self):
        done = subprocess.run([ROOT / "ci/check_docs"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_paths_in_backticks_and_links_must_exist(self):
        self.accepted({"docs/a.md": "see `configs/a.yaml`, `./ci/quickstart --help`, `configs/*.yaml`, `configs/{a,a}.yaml:3`, `runs/x`, [r](../README.md)"})
        self.refused({"docs/a.md": "\nsee `configs/b.yaml`"}, "docs/a.md:2: `configs/b.yaml` does not exist")
        self.refused({"docs/a.md": "see `configs/*.json`"}, "does not exist")
        self.refused({"docs/a.md": "see `configs/{a,b}.yaml`"}, "`configs/b.yaml` does not exist")
        self.refused({"docs/a.md": "[r](gone.md)"}, "link to gone.md")

    def test_shell_blocks_say_how_they_are_tested(self):
        self.refused({"docs/a.md": "\n```sh\naltiplano doctor\n```\n"}, "docs/a.md:2: shell block without a test")
        self.accepted({"docs/a.md": "```sh run\naltiplano doctor\n```\n```yaml\na: 1\n```\n"})
        self.accepted({"docs/a.md": "```sh tested: tests/t\naltiplano doctor  # well\n```\n", "tests/t": "run altiplano doctor"})
        self.refused({"docs/a.md": "```sh tested: tests/t\naltiplano plan\n```\n", "tests/t": "run altiplano doctor"}, "`altiplano plan` is not in tests/t")
        self.refused({"docs/a.md": "```sh tested: tests/u\naltiplano plan\n```\n"}, "tests/u, which does not exist")

    def test_the_readme_has_exactly_the_two_set_up_commands(self):
        self.refused({"README.md": README.replace("./ci/test\n", "")}, "the set-up block holds")
        self.refused({"README.md": README + "```sh run\n./ci/setup\n```\n"}, "exactly ['./ci/quickstart', './ci/test']")
        self.refused({"README.md": "# nothing"}, "0 set-up blocks")

    def test_blocks_to_run_share_a_folder_and_stop_at_the_first_failure(self):
        code, text = self.run_tool("test_docs", {"docs/a.md": "```sh run\necho hello > note\n```\n\n```sh run\ngrep hello note && ls configs/a.yaml\n```\n"})
        self.assertEqual((code, text.splitlines()[-1]), (0, "ci/test_docs: 2 blocks run, 0 failed"))
        code, text = self.run_tool("test_docs", {"docs/a.md": "```sh run\nfalse\ntrue\n```\n```sh run\ntrue\n```\n"})
        self.assertEqual(code, 1)
        self.assertIn("docs/a.md:1: FAILED with exit code 1", text)
        self.assertIn("1 blocks run, 1 failed", text)


if __name__ == "__main__":
    sys.exit(unittest.main())
