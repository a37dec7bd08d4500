#include "framework/cli/commands.hpp"

#include <exception>

#include "framework/base/console.hpp"
#include "framework/base/text.hpp"

namespace altiplano {

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help, const std::string& examples) {
  CLI::App* command = app.add_subcommand(name, help);
  std::string footer = "\nExamples:";
  for (const auto& line : split(trim(examples), '\n')) footer += "\n  " + trim(line);
  command->footer(footer);
  return command;
}

int report(const Status& status) {
  flush_out();
  if (!status) print_err("error: {}\n", status.to_string());
  return exit_code_of(status.code());
}

void on_run(CLI::App* command, int& exit_code, std::function<Status()> body) {
  on_run_for_code(command, exit_code, [body = std::move(body)](int&) { return body(); });
}

void on_run_for_code(CLI::App* command, int& exit_code, std::function<Status(int& code)> body) {
  command->callback([body = std::move(body), &exit_code] {
    try {
      int code = 0;
      const Status status = body(code);
      exit_code = status.is_ok() ? code : report(status);
    } catch (const std::exception& error) {
      exit_code = report(runtime_failure("internal error: {}", error.what()));
    }
  });
}

}  // namespace altiplano
