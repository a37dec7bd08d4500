#!/usr/bin/env python3
"""Every message that docs/troubleshooting.md explains is one the program prints: each part of a heading, between what differs, stands in the
sources, where string literals that follow each other are one and {} is what differs."""
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SHORTEST = 5  # characters of a part that is looked for


def messages(text):
    return re.findall(r"^### `(.+)`$", text, re.M)


def parts(message):
    """Literal pieces of a message: what is between …, without the words that the console puts before it."""
    message = re.sub(r"^(error|note): ", "", message)
    return [p for p in (piece.strip() for piece in message.split("…")) if len(p) >= SHORTEST]


def literals(source):
    """All string literals of a source, joined where they follow each other, with {...} as a break."""
    joined = re.sub(r'"\s*\n\s*"', "", source)
    found = re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)
    return [re.sub(r"\{[^{}]*\}", "\x00", text.replace('\\"', '"')) for text in found]


def printed(part, texts):
    """A part may span what the program fills in: then each piece of it counts."""
    if any(part in text for text in texts):
        return True
    pieces = [p.strip() for p in re.split(r"[():;]|\d+| (?=in step|signal\b|while starting)", part) if len(p.strip()) >= SHORTEST]
    return all(any(piece in text for text in texts) for piece in pieces)


class Troubleshooting(unittest.TestCase):
    def setUp(self):
        files = [f for top in ("framework", "plugins") for ext in ("*.cpp", "*.hpp") for f in (ROOT / top).rglob(ext)]
        self.texts = [text for f in files for text in literals(f.read_text())]
        # Names of signals are the C library's.
        self.texts += ["signal \x00 (Killed)", "(Segmentation fault)", "Segmentation fault", "Killed"]
        self.messages = messages((ROOT / "docs/troubleshooting.md").read_text())

    def test_every_message_is_printed_by_the_program(self):
        self.assertGreater(len(self.messages), 15)
        for message in self.messages:
            self.assertTrue(sum(len(p) for p in parts(message)) >= 12, f"nothing to look for in: {message}")
            for part in parts(message):
                self.assertTrue(printed(part, self.texts), f"no source prints '{part}' of: {message}")

    def test_no_message_is_explained_twice(self):
        self.assertEqual(len(self.messages), len(set(self.messages)))

    def test_a_message_that_nobody_prints_is_noticed(self):
        self.assertFalse(printed("the flux capacitor is empty", self.texts))
        self.assertFalse(printed("was killed by a lack of imagination", self.texts))


if __name__ == "__main__":
    sys.exit(unittest.main())
