#pragma once
// The tables tests/refusals/*.yaml: what a user may do wrong, and the exact answer.
//
//   files: {words.txt: "..."}            for every row of the table
//   setup: ["altiplano data pack ..."]   shell commands, run once per table after its files are written
//   rows:
//     - name: a batch that no rank can divide        a sentence, unique in the table
//       files: {job.yaml: "..."}                     added to the table's
//       setup: ["..."]                               run in the row's own folder, before `args`
//       environment: {SCRATCH: /scratch}             variables of `args`
//       args: plan -n 4 -c job.yaml                  of the program, as in a shell
//       exit: 2
//       error: |                                     everything the program prints on stderr
//         error: job.yaml:5:22: ...
//
// Each row runs in a folder of its own, a copy of the table's. `altiplano` is on the PATH of commands, HOME is the
// folder. In `error`, `<folder>` stands for that folder and `<any>` for some text within a line (a process id, a host's
// name). `seconds` is the row's deadline where the usual one is too short.
#include <map>
#include <string>
#include <vector>

namespace altiplano::test {

struct RefusalRow {
  std::string name, args, error;
  std::map<std::string, std::string> files, environment;
  std::vector<std::string> setup;
  int exit = 2;
  double seconds = 20;
};

struct RefusalTable {
  std::string name;  ///< of the file, without .yaml
  std::map<std::string, std::string> files;
  std::vector<std::string> setup;
  std::vector<RefusalRow> rows;
};

/// Throws std::runtime_error with file and line on a table that is not as described.
RefusalTable read_refusal_table(const std::string& path);

/// Whether `text` is `pattern`, where `<any>` stands for any text within a line.
bool matches_pattern(const std::string& text, const std::string& pattern);

}  // namespace altiplano::test
