// The program `altiplano`. Exit codes: exit_code_of(); usage mistakes are 2.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <vector>

#include "framework/base/console.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"
#include "framework/launch/openmp_waiting.hpp"

namespace altiplano {
namespace {

void add_commands(CLI::App& app, int& exit_code) {
  add_ckpt_command(app, exit_code);
  add_config_command(app, exit_code);
  add_data_command(app, exit_code);
  add_doctor_command(app, exit_code);
  add_estimate_command(app, exit_code);
  add_eval_command(app, exit_code);
  add_generate_command(app, exit_code);
  add_init_command(app, exit_code);
  add_launch_command(app, exit_code);
  add_logs_command(app, exit_code);
  add_plan_command(app, exit_code);
  add_plugins_command(app, exit_code);
  add_profile_command(app, exit_code);
  add_simulate_command(app, exit_code);
  add_status_command(app, exit_code);
  add_submit_command(app, exit_code);
  add_supervise_command(app, exit_code);
  add_train_command(app, exit_code);
  add_validate_command(app, exit_code);
  add_agent_command(app, exit_code);
}

std::vector<std::string> command_names(CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](CLI::App*) { return true; }))
    if (!command->get_group().empty()) names.push_back(command->get_name());  // else it is for our own processes
  return names;
}

/// Follows the words given; says which is no command, or that one is missing. Empty when the mistake is another one.
std::string command_mistake(CLI::App& app, int argc, char** argv) {
  CLI::App* at = &app;
  for (int i = 1;; ++i) {
    const auto names = command_names(*at);
    if (names.empty() || (i < argc && argv[i][0] == '-')) return {};
    if (i == argc) return "no command; there is " + join(names, ", ");
    if (std::ranges::find(names, argv[i]) == names.end()) {
      auto near = did_you_mean(argv[i], names);
      std::string hint = near ? fmt::format("did you mean {}?", *near) : "there is " + join(names, ", ");
      return fmt::format("unknown command {}; {}", argv[i], hint);
    }
    at = at->get_subcommand(argv[i]);
  }
}

/// What may be empty; elsewhere an empty value is a variable of a script that was not set, and no wish for the default.
constexpr const char* kMayBeEmpty = "--prompt";

void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0 || option->check_name(kMayBeEmpty)) continue;
    const auto refuse = [](std::string& value) {
      return value.empty() ? std::string("empty value; give one, or leave the option out") : std::string();
    };
    option->transform(CLI::Validator(refuse, ""));  // comes before the option's own checks
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) refuse_empty_values(*command);
}

/// The parser would take the next word for the value of `--file=`.
std::string empty_assignment(int argc, char** argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1)
      return fmt::format("{0}: empty value; write {0}VALUE, or leave the option out", word);
  }
  return {};
}

struct GivenCommand {
  std::string name;  ///< "altiplano ckpt ls": whose --help says more
  const CLI::App* app;
};

GivenCommand deepest_command(const CLI::App& app, int argc, char** argv) {
  GivenCommand given{app.get_name(), &app};
  for (int i = 1; i < argc; ++i) {
    const auto at = given.app->get_subcommands([&](const CLI::App* command) { return command->get_name() == argv[i]; });
    if (at.empty()) break;
    given = {given.name + " " + at[0]->get_name(), at[0]};
  }
  return given;
}

int refuse_usage(const CLI::App& app, const std::string& what, int argc, char** argv) {
  return report(invalid_argument("{} ({} --help says more)", what, deepest_command(app, argc, argv).name));
}

/// "missing: -c FILE, Job file (YAML)", as one would write it; empty when nothing that is required is missing.
std::string missing_option(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const auto& shorts = option->get_snames();
    std::string word = shorts.empty() ? option->get_name() : "-" + shorts[0];
    const std::string type = option->get_type_name();  // with its bounds behind a colon
    if (!option->get_positional()) word += " " + type.substr(0, type.find(':'));
    return fmt::format("missing: {}, {}", word, option->get_description());
  }
  return {};
}

int usage_mistake(CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::string command = command_mistake(app, argc, argv);  // also with --help behind it
  if (command.empty() && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {  // --help, --version
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    print_out_text(out.str());
    return code;
  }
  if (!command.empty()) return refuse_usage(app, command, argc, argv);
  const bool is_missing = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  const std::string missing = is_missing ? missing_option(*deepest_command(app, argc, argv).app) : "";
  return refuse_usage(app, missing.empty() ? error.what() : missing, argc, argv);
}

/// What did not arrive is a failure of the command. A reader that has seen enough (`| head`) is told nothing. Training
/// is not done for what it prints: where nobody reads (a closed console, a reader that has gone) it is done all the
/// same.
int with_output(const CLI::App& app, int exit_code) {
  flush_out();
  const int error = output_error();
  const bool trains = app.got_subcommand("launch") || app.got_subcommand("train") || app.got_subcommand("supervise");
  if (error == 0 || (trains && (error == EPIPE || error == EBADF))) return exit_code;
  const Status lost = runtime_failure("stdout: {}{}", std::strerror(error),
                                      trains && exit_code == 0 ? "; the run itself is done and saved" : "");
  if (error != EPIPE) report(lost);
  return exit_code == 0 ? exit_code_of(lost.code()) : exit_code;
}

/// `altiplano help ckpt ls` is `altiplano ckpt ls --help`.
std::vector<char*> with_help_as_option(int argc, char** argv) {
  static char help[] = "--help";
  std::vector<char*> words(argv, argv + argc);
  if (argc > 1 && std::strcmp(argv[1], "help") == 0) {
    words.erase(words.begin() + 1);
    words.push_back(help);
  }
  return words;
}

int run(std::vector<char*> words) {
  const auto argc = static_cast<int>(words.size());
  char** const argv = words.data();
  int exit_code = 0;
  CLI::App app{"Altiplano trains neural networks under any parallel plan.", "altiplano"};
  app.set_version_flag("--version", "altiplano " ALTIPLANO_VERSION);
  app.require_subcommand(1);
  app.footer("\n`altiplano COMMAND --help`, or `altiplano help COMMAND`, shows a command's options and examples.");
  add_commands(app, exit_code);
  refuse_empty_values(app);
  if (const std::string empty = empty_assignment(argc, argv); !empty.empty())
    return refuse_usage(app, empty, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = usage_mistake(app, error, argc, argv);
  }
  return with_output(app, exit_code);
}

}  // namespace
}  // namespace altiplano

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is an error like a full disk, not a death
  altiplano::guard_console();
  altiplano::bound_openmp_waiting();
  return altiplano::run(altiplano::with_help_as_option(argc, argv));
}
