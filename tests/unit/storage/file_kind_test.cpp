#include "framework/storage/file_kind.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "tests/support/temporary_directory.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

/// One file or folder of each kind.
struct OneOfEach {
  TemporaryDirectory folder;
  OneOfEach() {
    write_bytes(folder / "job.yaml", "# a job\nmodel: {kind: gpt}\ntrain: {max_steps: 4}\n");
    write_bytes(folder / "dotted.yaml", "\xEF\xBB\xBFtrain.max_steps: 4\n");
    write_bytes(folder / "plan.yaml", "altiplano_plan: 1\ngraph: {model: gpt}\n");
    write_bytes(folder / "cluster.yaml", "altiplano_cluster: 1\nname: \"a\"\n");
    write_bytes(folder / "tokens.h5", std::string("\x89HDF\r\n\x1a\n\0\0", 10));
    write_bytes(folder / "words.txt", "the model: a story. trainers run.\n");
    write_bytes(folder / "plugin.so", std::string("\x7f"
                                                  "ELF\0\0",
                                                  6));
    write_bytes(folder / "noise", std::string("a\0b", 3));
    write_bytes(folder / "empty", "");
    std::filesystem::create_directories(folder / "run/checkpoints/step-00000004");
    std::filesystem::create_directories(folder / "run/provenance/0001");
    write_bytes(folder / "run/provenance/0001/job.yaml", "train: {}\n");
    write_bytes(folder / "run/checkpoints/step-00000004/manifest.json", "{}");
    std::filesystem::create_directories(folder / "folder");
  }
  std::string refusal(const std::string& name, FileKind wanted) const {
    return check_file_kind(folder / name, wanted).message();
  }
  std::string path(const std::string& name) const { return folder / name; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_or_folder_is_told_by_its_first_bytes_or_by_what_lies_in_it) {
  const OneOfEach all;
  using enum FileKind;
  for (const auto& [name, kind] : {std::pair("job.yaml", kJob),
                                   {"dotted.yaml", kJob},
                                   {"plan.yaml", kPlan},
                                   {"cluster.yaml", kCluster},
                                   {"tokens.h5", kData},
                                   {"words.txt", kText},
                                   {"plugin.so", kProgram},
                                   {"noise", kOther},
                                   {"empty", kOther},
                                   {"nowhere", kOther},
                                   {"folder", kOther},
                                   {"run", kRun},
                                   {"run/checkpoints", kCheckpoints},
                                   {"run/checkpoints/step-00000004", kCheckpoint}})
    BOOST_TEST((file_kind_of(all.path(name)) == kind), name);
  BOOST_TEST((file_kind_of("/dev/zero") == kOther));
}

BOOST_AUTO_TEST_CASE(what_is_certainly_something_else_is_refused_by_what_it_is_and_where_it_belongs) {
  const OneOfEach all;
  using enum FileKind;
  BOOST_TEST(all.refusal("plan.yaml", kJob) ==
             all.path("plan.yaml") + ": is a plan, not a job file; give it with --plan");
  BOOST_TEST(all.refusal("job.yaml", kPlan) == all.path("job.yaml") + ": is a job file, not a plan; give it with -c");
  BOOST_TEST(all.refusal("run", kJob) == all.path("run") + ": is a run's folder, not a job file; the job of its last " +
                                             "start is " + all.path("run/provenance/0001/job.yaml"));
  BOOST_TEST(all.refusal("run", kCheckpoint) == all.path("run") +
                                                    ": is a run's folder, not a checkpoint; its checkpoints are in " +
                                                    all.path("run/checkpoints"));
  BOOST_TEST(all.refusal("words.txt", kData) ==
             all.path("words.txt") + ": is a text, not a data file (HDF5); make tokens of it: altiplano data pack -o " +
                 "NAME.h5 " + all.path("words.txt"));
}

BOOST_AUTO_TEST_CASE(what_is_right_or_cannot_be_told_is_left_to_its_reader) {
  const OneOfEach all;
  using enum FileKind;
  for (const auto& [name, wanted] : {std::pair("job.yaml", kJob),
                                     {"words.txt", kJob},
                                     {"words.txt", kPlan},
                                     {"plan.yaml", kText},
                                     {"noise", kData},
                                     {"nowhere", kJob},
                                     {"folder", kCheckpoints},
                                     {"run/checkpoints", kCheckpoint}})
    BOOST_TEST(all.refusal(name, wanted) == "", name);
}
