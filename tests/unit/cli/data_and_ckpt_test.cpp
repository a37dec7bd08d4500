// altiplano data and altiplano ckpt as a person starts them.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/save.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/cli/run_altiplano.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

void check_output(const CommandResult& result, int exit_code, const std::string& part) {
  BOOST_TEST(result.exit_code == exit_code, result.output);
  BOOST_TEST(result.output.find(part) != std::string::npos, result.output);
}

void save(const std::string& directory, int64_t step) {
  const double values[] = {1, 2, 3, 4, 5, 6};
  TensorPart part{"wte", DType::kF64, {3, 2}, Box::whole({3, 2}), values, "parameter"};
  CheckpointInfo info;
  info.step = step;
  info.run_id = "run-a";
  info.architecture = {{"hidden_size", "2"}};
  info.plan = "schedule: 1f1b\n";
  BOOST_REQUIRE(save_shard(directory, step, 0, {&part, 1}).is_ok());
  BOOST_REQUIRE(publish_checkpoint(directory, info, {}).is_ok());
}

}  // namespace

BOOST_AUTO_TEST_CASE(data_pack_then_inspect_says_what_is_in_the_file) {
  TemporaryDirectory dir;
  write_bytes(dir / "a.txt", "In the beginning\n");
  check_output(run_altiplano("data pack -o " + dir / "a.h5" + " " + dir / "a.txt"), 0,
               "17 tokens of 1 document, tokenizer byte (257 ids), ids 10 to 116");
  auto shown = run_altiplano("data inspect " + dir / "a.h5");
  check_output(shown, 0, "tokens     17, every chunk read");
  check_output(shown, 0, "ids        10 to 116, the largest first at token 3");
  check_output(shown, 0, "sample     at token 0: \"In the beginning\\n\"");
  check_output(run_altiplano("data inspect --offset 7 --count 5 " + dir / "a.h5"), 0, "at token 7: \"begin\"");
  check_output(run_altiplano("data inspect --offset 17 " + dir / "a.h5"), 2,
               "--offset 17: the file has tokens 0 to 16");
}

BOOST_AUTO_TEST_CASE(data_pack_with_gpt2_takes_its_two_files) {
  TemporaryDirectory dir;
  write_bytes(dir / "a.txt", "Hello, world!");
  std::string files = " -o " + dir / "a.h5" + " " + dir / "a.txt",
              fixtures = ALTIPLANO_SOURCE_DIR "/tests/fixtures/gpt2/";
  check_output(run_altiplano("data pack --tokenizer gpt2" + files), 2,
               "needs --vocab encoder.json and --merges vocab.bpe");
  check_output(run_altiplano("data pack --tokenizer word" + files), 2,
               "tokenizer 'word' is not known; there are: byte, gpt2");
  check_output(run_altiplano("data pack --tokenizer gpt2 --vocab " + fixtures + "encoder.json --merges " + fixtures +
                             "vocab.bpe" + files),
               0, "4 tokens of 1 document, tokenizer gpt2 (50257 ids), ids 0 to 15496");
  check_output(run_altiplano("data inspect " + dir / "a.h5"), 0, "\"Hello, world!\"");
}

BOOST_AUTO_TEST_CASE(a_token_file_locked_by_others_is_read_or_explained) {
  TemporaryDirectory dir;
  write_bytes(dir / "a.txt", "In the beginning\n");
  check_output(run_altiplano("data pack -o " + dir / "a.h5" + " " + dir / "a.txt"), 0, "17 tokens");
  int fd = ::open((dir / "a.h5").c_str(), O_RDWR | O_CLOEXEC);
  BOOST_REQUIRE(::flock(fd, LOCK_EX) == 0);
  check_output(run_altiplano("data inspect " + dir / "a.h5"), 0, "tokens     17");
  auto refused =
      run_command("HDF5_USE_FILE_LOCKING=TRUE " ALTIPLANO_BINARY_DIR "/bin/altiplano data inspect " + dir / "a.h5");
  check_output(refused, 1, "a.h5: cannot be opened: another process holds a lock on it");
  check_output(refused, 1, "running with HDF5_USE_FILE_LOCKING=FALSE is safe");
  ::close(fd);
}

BOOST_AUTO_TEST_CASE(ckpt_lists_inspects_and_verifies) {
  TemporaryDirectory dir;
  std::string path = dir.path().string();
  check_output(run_altiplano("ckpt ls " + path), 4, "has no folder named step-<number>");
  save(path, 900);
  save(path, 1000);
  auto listed = run_altiplano("ckpt ls " + path);
  check_output(listed, 0, "complete, latest");
  BOOST_TEST(listed.output.find(" 1000 ") < listed.output.find(" 900 "));
  auto shown = run_altiplano("ckpt inspect --plan " + path);
  for (const char* part :
       {"step        1000", "run         run-a", "hidden_size: 2", "wte", "f64", "[3,2]", "schedule: 1f1b"})
    check_output(shown, 0, part);
  check_output(run_altiplano("ckpt verify " + path), 0, "step-00000900: every byte as it was written");
  flip_bit(step_folder(path, 900) + "/rank-0000.h5", 64);
  auto damaged = run_altiplano("ckpt verify " + path);
  check_output(damaged, 1, "step-00000900/rank-0000.h5: checksum");
  check_output(damaged, 1, "error: 1 of 2 checkpoints damaged");
  std::filesystem::remove(step_folder(path, 900) + "/rank-0000.h5");
  check_output(run_altiplano("ckpt ls " + path), 0, "rank-0000.h5: missing");
  check_output(run_altiplano("ckpt inspect " + step_folder(path, 900)), 4, "rank-0000.h5: missing");
}
