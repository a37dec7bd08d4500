// Runs every row of tests/refusals/*.yaml: one test case each, "refusals/<table>/<name of the row>".
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>

#include "tests/support/refusal_table.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano::test;
namespace fs = std::filesystem;

namespace {

struct Slowest {
  double seconds = 0;
  std::string row;
  int num_rows = 0;
} slowest;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

void write_files(const fs::path& folder, const std::map<std::string, std::string>& files) {
  for (const auto& [name, text] : files) {
    fs::create_directories((folder / name).parent_path());
    write_bytes((folder / name).string(), text);
  }
}

/// `command` in a shell of the folder, where `altiplano` is the program under test and nothing else of the environment
/// of this process matters.
CommandResult run_in(const fs::path& folder, const std::string& command) {
  return run_command("cd " + quoted(folder.string()) +
                     " && unset ALTIPLANO_PLUGIN_PATH SCRATCH && export HOME=" + quoted(folder.string()) +
                     " PATH=" + quoted(ALTIPLANO_BINARY_DIR "/bin") + ":\"$PATH\" && " + command);
}

void run_setup(const fs::path& folder, const std::vector<std::string>& commands) {
  for (const auto& command : commands) {
    auto result = run_in(folder, command);
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, command << ": " << result.output);
  }
}

/// A table and the folder that its rows copy, made when the first row runs.
class Table {
 public:
  explicit Table(RefusalTable table) : table_(std::move(table)) {}

  const RefusalTable& get() const { return table_; }

  void copy_to(const fs::path& folder) {
    if (!folder_) {
      folder_ = std::make_unique<TemporaryDirectory>();
      write_files(folder_->path(), table_.files);
      run_setup(folder_->path(), table_.setup);
    }
    fs::copy(folder_->path(), folder, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }

 private:
  RefusalTable table_;
  std::unique_ptr<TemporaryDirectory> folder_;
};

void note_time(const std::string& row, double seconds) {
  ++slowest.num_rows;
  if (seconds > slowest.seconds) slowest = {seconds, row, slowest.num_rows};
}

void run_row(const std::shared_ptr<Table>& table, const RefusalRow& row) {
  TemporaryDirectory directory;
  table->copy_to(directory.path());
  write_files(directory.path(), row.files);
  run_setup(directory.path(), row.setup);
  std::string command = fmt::format("timeout -k 1 {} env", row.seconds);
  for (const auto& [name, value] : row.environment) command += " " + quoted(name + "=" + value);
  auto start = std::chrono::steady_clock::now();
  auto result = run_in(directory.path(), command + " altiplano " + row.args + " 2>&1 >stdout.txt </dev/null");
  note_time(table->get().name + "/" + row.name,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  const std::string error = replaced(result.output, directory.path().string(), "<folder>");
  BOOST_TEST(result.exit_code == row.exit);
  BOOST_TEST(matches_pattern(error, row.error), "printed:\n" << error << "expected:\n" << row.error);
}

std::string test_name(const std::string& text) {
  return replaced(replaced(text, " ", "_"), "/", "_");
}

/// Registers the rows of all tables before main runs.
struct Registration {
  Registration() {
    auto& master = boost::unit_test::framework::master_test_suite();
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(ALTIPLANO_SOURCE_DIR "/tests/refusals"))
      if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      auto table = std::make_shared<Table>(read_refusal_table(path));
      auto* suite = new boost::unit_test::test_suite(table->get().name, __FILE__, __LINE__);
      for (const auto& row : table->get().rows)
        suite->add(
            boost::unit_test::make_test_case([table, row] { run_row(table, row); }, test_name(row.name), path, 1));
      master.add(suite);
    }
    auto* end = new boost::unit_test::test_suite("end", __FILE__, __LINE__);
    end->add(boost::unit_test::make_test_case(
        [] {
          BOOST_TEST_MESSAGE(slowest.num_rows << " refusals, the slowest in " << slowest.seconds
                                              << " s: " << slowest.row);
          BOOST_TEST(slowest.num_rows >= 0);
        },
        "the_slowest_row_is_reported", __FILE__, __LINE__));
    master.add(end);
  }
} const registration;

}  // namespace

BOOST_AUTO_TEST_CASE(a_pattern_stands_for_one_text_and_any_within_a_line) {
  BOOST_TEST(matches_pattern("pid 12 on a\n", "pid <any> on <any>\n"));
  BOOST_TEST(!matches_pattern("pid 12\n on a\n", "pid <any> on a\n"));
  BOOST_TEST(!matches_pattern("pid 12 on a\nmore\n", "pid <any> on <any>\n"));
  BOOST_TEST(!matches_pattern("pid 12", "pid 13"));
}
