#pragma once
// cli/ (L6): the program `altiplano`: one thin file per command, which reads arguments, calls the framework and prints.
// May include everything of framework/; nothing includes it.
//
// A command is a function add_<name>_command in command_<name>.cpp, declared here and listed in main.cpp. Its callback
// stores the exit code; errors are printed once, last, on stderr as "error: ..." (on_run does both).
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

void add_agent_command(CLI::App& app, int& exit_code);
void add_ckpt_command(CLI::App& app, int& exit_code);
void add_config_command(CLI::App& app, int& exit_code);
void add_data_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);
void add_estimate_command(CLI::App& app, int& exit_code);
void add_eval_command(CLI::App& app, int& exit_code);
void add_generate_command(CLI::App& app, int& exit_code);
void add_init_command(CLI::App& app, int& exit_code);
void add_launch_command(CLI::App& app, int& exit_code);
void add_logs_command(CLI::App& app, int& exit_code);
void add_plan_command(CLI::App& app, int& exit_code);
void add_plugins_command(CLI::App& app, int& exit_code);
void add_profile_command(CLI::App& app, int& exit_code);
void add_simulate_command(CLI::App& app, int& exit_code);
void add_status_command(CLI::App& app, int& exit_code);
void add_submit_command(CLI::App& app, int& exit_code);
void add_supervise_command(CLI::App& app, int& exit_code);
void add_train_command(CLI::App& app, int& exit_code);
void add_validate_command(CLI::App& app, int& exit_code);

/// A subcommand with examples at the end of its --help; `examples` are whole lines without indentation.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help, const std::string& examples);

/// Runs `body` when `command` was called; a Status that is not ok is printed and becomes the exit code.
void on_run(CLI::App* command, int& exit_code, std::function<Status()> body);

/// The same for a body that ends well with an exit code of its own: that of the ranks it has started.
void on_run_for_code(CLI::App* command, int& exit_code, std::function<Status(int& code)> body);

/// Prints "error: ..." on stderr unless ok; the exit code.
int report(const Status& status);

}  // namespace altiplano
