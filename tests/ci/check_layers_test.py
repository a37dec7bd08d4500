#!/usr/bin/env python3
"""ci/check_layers passes on a clean tree and catches every kind of seeded violation with file:line."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def check(files):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ci").mkdir()
        shutil.copy(ROOT / "ci/LAYERS", Path(folder) / "ci/LAYERS")
        for name, text in files.items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        done = subprocess.run([ROOT / "ci/check_layers", "--root", folder], capture_output=True, text=True)
        return done.returncode, done.stdout


class CheckLayers(unittest.TestCase):
    def refused(self, path, line, rule):
        code, text = check({path: "// first line\n" + line + "\n"})
        self.assertEqual(code, 1, text)
        self.assertIn(f"{path}:2: ", text)
        self.assertIn(rule, text)

    def accepted(self, path, line):
        code, text = check({path: line + "\n"})
        self.assertEqual(code, 0, text)

    def test_this_tree_is_clean(self):
        done = subprocess.run([ROOT / "ci/check_layers"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_an_include_that_points_up_is_caught(self):
        self.refused("framework/base/a.hpp", '#include "framework/graph/graph.hpp"', "point down only")
        self.refused("framework/graph/ops/a.cpp", '#include "framework/cluster/cluster.hpp"', "point down only")
        self.refused("framework/api/a.hpp", '#  include "framework/runtime/executor.hpp"', "point down only")

    def test_includes_that_point_down_or_stay_are_fine(self):
        self.accepted("framework/cluster/a.hpp", '#include "framework/graph/dtype.hpp"')
        self.accepted("framework/cost/a.hpp", '#include "framework/sharding/spec.hpp"')
        self.accepted("framework/cli/a.cpp", '#include "framework/runtime/executor.hpp"')
        self.accepted("plugins/comms/shm/a.cpp", '#include "plugins/comms/shm/ring.hpp"\n#include "framework/api/comm.hpp"')

    def test_plugins_reach_neither_the_runtime_nor_each_other(self):
        self.refused("plugins/comms/shm/a.cpp", '#include "framework/runtime/executor.hpp"', "up to L4")
        self.refused("plugins/comms/shm/a.cpp", '#include "plugins/comms/inproc/hub.hpp"', "no other part")
        self.refused("schedulers/local/a.cpp", '#include "framework/launch/launcher.hpp"', "up to L4")

    def test_headers_stay_in_their_one_home(self):
        self.refused("framework/checkpoint/a.cpp", "#include <hdf5.h>", "has its home in framework/storage")
        self.refused("framework/runtime/a.cpp", "#include <dlfcn.h>", "has its home in framework/plugin")
        self.refused("plugins/comms/shm/a.cpp", "#include <mpi.h>", "has its home in plugins/comms/mpi")
        self.refused("framework/cluster/a.cpp", "#include <hwloc.h>", "has its home in framework/launch")
        self.refused("framework/launch/a.cpp", "#include <ucp/api/ucp.h>", "has its home in plugins/comms/ucx")
        self.refused("plugins/devices/cpu/a.cpp", "#include <cuda_runtime.h>", "has its home in")
        self.accepted("framework/storage/a.cpp", "#include <hdf5.h>")

    def test_slurm_variables_are_read_by_the_slurm_scheduler_only(self):
        self.refused("framework/launch/a.cpp", 'auto x = std::getenv("SLURM_JOB_ID");', "belongs to schedulers/slurm only")
        self.accepted("schedulers/slurm/a.cpp", 'auto x = std::getenv("SLURM_JOB_ID");')

    def test_the_framework_never_names_a_plugin_path(self):
        self.refused("framework/plugin/a.cpp", 'load("plugins/schedules/1f1b");', "never names")
        self.refused("framework/plugin/a.cpp", '#include "plugins/schedules/1f1b/a.hpp"', "includes nothing of plugins/")
        self.accepted("framework/plugin/a.cpp", "// a comment may say plugins/schedules/1f1b")

    def test_folders_nobody_placed_and_relative_includes_are_caught(self):
        self.refused("framework/api/a.hpp", '#include "framework/misc/a.hpp"', "in no layer")
        self.refused("framework/api/a.hpp", '#include "comm.hpp"', "paths from the repository root")
        self.refused("plugins/comms/shm/a.cpp", '#include "../inproc/hub.hpp"', "paths from the repository root")
        self.accepted("plugins/comms/shm/a.cpp", '#include "ring.hpp"')


if __name__ == "__main__":
    sys.exit(unittest.main())
