#!/usr/bin/env python3
"""The installed package, as a stranger uses it: install, move the prefix, write plugins with `altiplano plugins new`, build them against it,
hold them to their promises, and train a model with a schedule, a communication backend, an op and a model that the tree does not know.

usage: tests/sdk/sdk_test.py CLASS...      Installed, Tutorial, Training, EveryKind
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["ALTIPLANO_BUILD_DIR"])
KINDS = ["planner", "schedule", "comm", "device", "op", "model", "scheduler"]
JOB = """
run: {name: stranger}
model: {kind: far_model, num_hidden_layers: 4, hidden_size: 16}
data: {train: text.h5}
train: {max_steps: 4, global_batch_size: 8, micro_batch_size: 2, seq_length: 16}
optimizer: {name: adamw, lr: 1e-2}
parallel: {planner: manual, data_parallel_size: 1, tensor_parallel_size: 1, pipeline_parallel_size: 2}
checkpoint: {every_steps: 100}
"""


def run(command, cwd, expect=0, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ALTIPLANO_")}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={**clean, **environment}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if done.returncode != expect:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}, expected {expect}\n{done.stdout}")
    return done.stdout


class Sdk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="altiplano_sdk_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run(["cmake", "--install", BUILD, "--prefix", cls.folder / "first"], cls.folder)
        (cls.folder / "first").rename(cls.folder / "moved")  # nothing may remember where it was installed
        cls.prefix = cls.folder / "moved"
        cls.program = cls.prefix / "bin/altiplano"
        cls.work = cls.folder / "work"
        cls.work.mkdir()

    def build(self, plugins, edit=None):
        """Writes the plugins [(kind, name)], builds all of them in one go, returns their shared objects by kind."""
        for kind, name in plugins:
            run([self.program, "plugins", "new", kind, name], self.work)
        if edit:
            edit(self.work)
        lists = "".join(f"add_subdirectory({name})\n" for _, name in plugins)
        (self.work / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(all LANGUAGES CXX)\nenable_testing()\n" + lists)
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        run(["cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Debug",
             "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror", *launcher], self.work)
        run(["cmake", "--build", "build", "-j2"], self.work)
        return {kind: self.work / f"build/{name}/{kind}-{name}.so" for kind, name in plugins}


class Training(Sdk):
    def test_strangers_plugins_train_a_model_and_give_the_numbers_of_the_trees_own(self):
        def use_the_op(work):
            graph = work / "far_model/far_model_graph.cpp"
            text = graph.read_text()
            self.assertIn('b.gelu(name + ".gelu", ', text)
            graph.write_text(text.replace('b.gelu(name + ".gelu", ', 'b.op1("far_op", name + ".activation", {').replace(
                "normed, up));", "normed, up)});"))

        plugins = self.build([("schedule", "far_schedule"), ("comm", "far_comm"), ("op", "far_op"), ("model", "far_model")], use_the_op)
        run(["ctest", "--test-dir", "build", "--output-on-failure", "-R", "(schedule|comm|op)_test$|conformance_plugin_(schedule|op)_"], self.work)
        for kind, file in plugins.items():
            exported = run(["nm", "-D", "--defined-only", "--extern-only", file], self.work).split()
            self.assertEqual(exported[2:], ["altiplano_plugin_query"], f"{kind}: {exported}")

        (self.work / "text.txt").write_text("In the beginning God created the heaven and the earth. " * 60)
        run([self.program, "data", "pack", "text.txt", "-o", "text.h5"], self.work)
        (self.work / "job.yaml").write_text(JOB)
        path = ":".join(str(file.parent) for file in plugins.values())
        run([self.program, "plugins", "check", plugins["model"]], self.work, ALTIPLANO_PLUGIN_PATH=path)  # it needs the op
        losses = {}
        for run_name, settings in {"theirs": ["parallel.schedule=far_schedule", "comm.backend=far_comm"], "ours": []}.items():
            sets = [word for s in [f"run.dir={run_name}", *settings] for word in ("--set", s)]
            output = run([self.program, "launch", "-n", "2", "-c", "job.yaml", *sets], self.work, ALTIPLANO_PLUGIN_PATH=path)
            lines = [json.loads(line) for line in (self.work / run_name / "metrics.jsonl").read_text().splitlines()]
            losses[run_name] = [line["loss"] for line in lines if "loss" in line]
            self.assertEqual(len(losses[run_name]), 4, output)
            self.assertIn("far_schedule" if run_name == "theirs" else "1f1b", output)
        self.assertLess(losses["ours"][-1], losses["ours"][0])
        for theirs, ours in zip(losses["theirs"], losses["ours"]):
            self.assertAlmostEqual(theirs, ours, delta=1e-5)


class EveryKind(Sdk):
    def test_a_new_plugin_of_every_kind_builds_and_keeps_every_promise_as_it_stands(self):
        plugins = self.build([(kind, kind) for kind in KINDS])  # names that clash with much
        run(["ctest", "--test-dir", "build", "--output-on-failure", "-j2"], self.work)
        for kind, file in plugins.items():
            exported = run(["nm", "-D", "--defined-only", "--extern-only", file], self.work).split()
            self.assertEqual(exported[2:], ["altiplano_plugin_query"], f"{kind}: {exported}")
        listed = run([self.program, "plugins", "list"], self.work, ALTIPLANO_PLUGIN_PATH=":".join(str(f.parent) for f in plugins.values()))
        for kind, file in plugins.items():
            self.assertIn(f"{kind}/{kind}", listed)
        self.launch_under(plugins["scheduler"].parent)

    def launch_under(self, scheduler):
        """`altiplano launch` asks the scheduler that detects its environment, and no other."""
        (self.work / "text.txt").write_text("In the beginning God created the heaven and the earth. " * 60)
        run([self.program, "data", "pack", "text.txt", "-o", "text.h5"], self.work)
        (self.work / "job.yaml").write_text(JOB.replace("far_model, num_hidden_layers: 4, hidden_size: 16",
            "gpt, num_hidden_layers: 2, hidden_size: 16, num_attention_heads: 2, max_position_embeddings: 16, vocab_size: 257"))
        launch = [self.program, "launch", "-n", "2", "-c", "job.yaml", "--plugin-path", scheduler]
        job = {"SCHEDULER_JOB_ID": "17", "SCHEDULER_HOSTS": "a,b"}
        self.assertIn("error: scheduler/scheduler gave the job 2 hosts (a, b); `altiplano launch` starts ranks on one",
                      run(launch, self.work, expect=2, **job))
        run(launch, self.work, **{**job, "SCHEDULER_HOSTS": "a"})
        self.assertIn("== job 17, rank 0 of 2 on ", (self.work / "runs/stranger/logs/rank-0.log").read_text())


class Installed(Sdk):
    def test_the_moved_prefix_runs_from_itself(self):
        listed = run([self.program, "plugins", "list"], self.work)
        self.assertNotIn("refused", listed)
        self.assertIn(str(self.prefix / "lib/altiplano/plugins/schedule-1f1b.so"), listed)
        libraries = run(["ldd", self.program], self.work)
        self.assertIn(str(self.prefix / "lib/libaltiplano.so.0"), libraries.replace("/bin/../", "/"))
        for file in (self.prefix / "lib/cmake/Altiplano").iterdir():
            text = file.read_text()
            self.assertNotIn(str(BUILD), text, file)
            self.assertNotIn("first", text.split("IMPORT_PREFIX")[0][-200:], file)

    def test_find_package_wants_a_version_that_is_there(self):
        (self.work / "other").mkdir()
        (self.work / "other/CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(other LANGUAGES CXX)\nfind_package(Altiplano 7.0 REQUIRED)\n")
        output = run(["cmake", "-B", "b", f"-DCMAKE_PREFIX_PATH={self.prefix}"], self.work / "other", expect=1)
        self.assertIn("compatible with requested version \"7.0\"", output)

    def test_a_wrong_plugin_name_is_refused_by_cmake(self):
        (self.work / "wrong").mkdir()
        (self.work / "wrong/CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES CXX)\nfind_package(Altiplano REQUIRED)\n"
            "altiplano_add_plugin(wizard/mine SOURCES a.cpp)\n")
        output = run(["cmake", "-B", "b", f"-DCMAKE_PREFIX_PATH={self.prefix}"], self.work / "wrong", expect=1)
        self.assertIn("altiplano_add_plugin(wizard/mine): a name is <kind>/<name>", output)

    def test_new_refuses_what_would_not_compile_or_overwrite(self):
        for words, expected in {
            ("schedule", "My-Plan"): "'My-Plan' is no name for a plugin",
            ("schedule", "1f1b"): "'1f1b' is no name for a plugin",
            ("schedule", "gpipe"): "schedule/gpipe is there already: ",
            ("shedule", "mine"): "no kind of plugin shedule, did you mean schedule?; there is: planner, schedule, comm, device, op, model",
        }.items():
            self.assertIn(expected, run([self.program, "plugins", "new", *words], self.work, expect=2))
        (self.work / "full").mkdir()
        (self.work / "full/note.txt").write_text("mine")
        self.assertIn("full: is there already and not empty", run([self.program, "plugins", "new", "schedule", "full"], self.work, expect=2))


class Tutorial(Sdk):
    def test_the_tutorial_leads_to_a_schedule_that_trains(self):
        blocks = re.findall(r"^```sh sdk\n(.*?)^```", (ROOT / "docs/plugins/first-schedule.md").read_text(), re.M | re.S)
        blocks = [block for block in blocks if "cmake --install" not in block]  # setUpClass has done it
        self.assertGreater(len(blocks), 5)
        script = "set -euo pipefail\n" + "".join(blocks)
        output = run(["bash", "-c", script], self.work, PREFIX=str(self.prefix), PATH=f"{self.prefix}/bin:{os.environ['PATH']}",
                     **({"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}))
        self.assertIn("BROKEN    every size is right or refused with the nearest legal value: 1 stage, 1 microbatch: ", output)
        self.assertIn("w0: B0 F0", output)
        self.assertRegex(output, r"pipeline 2, zigzag")
        self.assertRegex(output, r"done +5 steps")


if __name__ == "__main__":
    unittest.main(verbosity=2)
