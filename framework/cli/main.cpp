// The program `altiplano`. Exit codes: exit_code_of(); usage mistakes are 2.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"

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
  add_plan_command(app, exit_code);
  add_plugins_command(app, exit_code);
  add_train_command(app, exit_code);
  add_validate_command(app, exit_code);
}

std::vector<std::string> command_names(CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](CLI::App*) { return true; })) names.push_back(command->get_name());
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

int usage_mistake(CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);  // --help, --version
  const std::string command = command_mistake(app, argc, argv);
  return report(invalid_argument("{} (altiplano --help says more)", command.empty() ? error.what() : command));
}

int run(int argc, char** argv) {
  int exit_code = 0;
  CLI::App app{"Altiplano trains neural networks under any parallel plan.", "altiplano"};
  app.set_version_flag("--version", "altiplano " ALTIPLANO_VERSION);
  app.require_subcommand(1);
  app.footer("\n`altiplano COMMAND --help` shows a command's options and examples.");
  add_commands(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return usage_mistake(app, error, argc, argv);
  }
  return exit_code;
}

}  // namespace
}  // namespace altiplano

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is an error like a full disk, not a death
  int exit_code = altiplano::run(argc, argv);
  // What was printed must have arrived: a full disk behind `> file` is a failure.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    const int lost = altiplano::report(altiplano::runtime_failure("stdout: {}", std::strerror(errno)));
    if (exit_code == 0) exit_code = lost;
  }
  return exit_code;
}
