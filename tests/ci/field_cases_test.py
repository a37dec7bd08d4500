#!/usr/bin/env python3
"""Every test that docs/field-cases.md names exists, and every row names one."""
import re
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[2]
tests = {m for f in (root / "tests").rglob("*_test.cpp") for m in re.findall(r"BOOST_AUTO_TEST_CASE\((\w+)\)", f.read_text())}
# Rows of the tables of refusals are tests too, named as their runner names them.
tests |= {n.replace(" ", "_").replace("/", "_") for f in (root / "tests/refusals").glob("*.yaml") for n in re.findall(r"^  - name: (.*)$", f.read_text(), re.M)}
SUITES = ("conformance", "golden", "integration", "numerics", "property", "refusals", "slow", "slurm", "slurm_long")
errors = []
rows = [line.split("|") for line in (root / "docs/field-cases.md").read_text().splitlines() if re.match(r"\| [A-Z]\d\d \|", line)]
for row in rows:
    names = [n for n in re.findall(r"`(\w+)`", row[4]) if not n.startswith("unit_") and n not in SUITES]
    if not names:
        errors.append(f"{row[1].strip()}: names no test")
    errors += [f"{row[1].strip()}: no test {name}" for name in names if name not in tests]
for error in errors:
    print(error)
print(f"{len(rows)} cases, {len(errors)} errors")
sys.exit(1 if errors or not rows else 0)
