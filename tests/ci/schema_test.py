#!/usr/bin/env python3
"""`altiplano config schema` is a JSON schema that takes every job file of the tree and marks mistakes, as an editor would.

ALTIPLANO_BUILD_DIR names the build to use; default build/dev.
"""
import json
import os
import subprocess
import unittest
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ALTIPLANO_BUILD_DIR", ROOT / "build/dev")).resolve()
SMALLEST = "model: {kind: gpt}\ntrain: {max_steps: 1, seq_length: 1, global_batch_size: 1}\n"


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([BUILD / "bin/altiplano", "config", "schema"], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
        schema = json.loads(done.stdout)
        jsonschema.Draft7Validator.check_schema(schema)
        cls.schema, cls.validator = schema, jsonschema.Draft7Validator(schema)

    def errors(self, text):
        return [f"{'.'.join(map(str, e.absolute_path))}: {e.message}" for e in self.validator.iter_errors(yaml.safe_load(text))]

    def test_every_job_file_of_the_tree_is_valid(self):
        files = sorted((ROOT / "configs/jobs").glob("*.yaml"))
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            self.assertEqual(self.errors(file.read_text()), [], file)

    def test_what_the_reader_takes_is_valid(self):
        for text in (
            SMALLEST,
            "model.kind: gpt\ntrain.max_steps: 1\ntrain.seq_length: 1\ntrain.global_batch_size: 1\n",
            SMALLEST + "optimizer: {lr: 1e-4, betas: [0.9, .95]}\n",  # YAML 1.1 reads 1e-4 as a text
            SMALLEST + 'run: {dir: "${SCRATCH:-runs}/x"}\nmemory: {per_rank: 31.5 MiB}\n',
            SMALLEST + "parallel: {planner: manual, data_parallel_size: auto, pipeline: {split: [1, 2]}}\n",
            SMALLEST + "parallel: {planner: {stages: manual}, sharding: {'b.*': '[-]'}}\n",
            SMALLEST + "data: {validation.fraction: 0.1}\nparallel: {planner.stages: manual, pipeline.split: [1, 2]}\n",
            SMALLEST + "tensor_model_parallel_size: 2\nbf16: true\nmin_lr: 1e-5\n",
            SMALLEST + "zero_optimization: {stage: 1}\nbf16: {enabled: true}\n",
            "model: {kind: gpt, n_layer: 3}\ntrain: {max_steps: 20_000, seq_length: 1, micro_batch_size: auto}\n",
        ):
            self.assertEqual(self.errors(text), [], text)

    def test_mistakes_are_marked(self):
        for text, place in (
            (SMALLEST.replace("gpt", "gtp"), "model.kind"),
            (SMALLEST.replace("max_steps: 1, ", ""), ""),
            (SMALLEST.replace("max_steps: 1", "max_steps: 0"), "train.max_steps"),
            (SMALLEST.replace("max_steps: 1", "max_steps: many"), "train.max_steps"),
            (SMALLEST + "optimizer: {betas: [0.9]}\n", "optimizer.betas"),
            (SMALLEST + "optimizer: {name: lion}\n", "optimizer.name"),
            (SMALLEST + "optimizer: {leraning_rate: 1}\n", "optimizer"),
            (SMALLEST + "optimiser: {lr: 1}\n", ""),
            (SMALLEST + "parallel: {zero_stage: 4}\n", "parallel.zero_stage"),
        ):
            found = self.errors(text)
            self.assertTrue(found, text)
            self.assertTrue(found[0].startswith(place + ": "), found)

    def test_every_key_has_its_help(self):
        train = self.schema["properties"]["train"]["properties"]
        self.assertIn("Optimizer steps", train["max_steps"]["description"])
        self.assertEqual(self.schema["properties"]["train.log_every"]["default"], 10)


if __name__ == "__main__":
    unittest.main()
