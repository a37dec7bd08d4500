// altiplano data: text to token files, and what is in one.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"
#include "framework/runtime/data/token_file.hpp"
#include "framework/storage/input_file.hpp"

namespace altiplano {
namespace {

struct PackArguments {
  PackOptions options;
  std::string tokenizer = "byte", vocab, merges;
};

struct InspectArguments {
  std::string file;
  int64_t offset = 0, count = 64;
};

Result<std::unique_ptr<Tokenizer>> chosen_tokenizer(const PackArguments& arguments) {
  if (arguments.tokenizer != "gpt2") {
    if (!arguments.vocab.empty() || !arguments.merges.empty()) {
      return invalid_argument("--vocab and --merges belong to --tokenizer gpt2, not to {}", arguments.tokenizer);
    }
    return make_tokenizer(arguments.tokenizer, {});
  }
  if (arguments.vocab.empty() || arguments.merges.empty()) {
    return invalid_argument("--tokenizer gpt2 needs --vocab encoder.json and --merges vocab.bpe");
  }
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  ALTIPLANO_ASSIGN(std::string vocab, read_input_file(arguments.vocab, kMostBytes));
  ALTIPLANO_ASSIGN(std::string merges, read_input_file(arguments.merges, kMostBytes));
  return make_gpt2_tokenizer({vocab, arguments.vocab}, {merges, arguments.merges});
}

Status pack(const PackArguments& arguments) {
  ALTIPLANO_ASSIGN(std::unique_ptr<Tokenizer> tokenizer, chosen_tokenizer(arguments));
  PackOptions options = arguments.options;
  options.note = [](const std::string& text) { print_err("note: {}\n", text); };
  ALTIPLANO_ASSIGN(TokenFileInfo info, pack_text(options, *tokenizer));
  print_out("{}: {} of {}, tokenizer {} ({} ids), ids {} to {}\n", info.path, counted(info.num_tokens, "token"),
            counted(info.num_documents, "document"), info.tokenizer, info.vocab_size, info.min_id, info.max_id);
  return Status::ok();
}

/// Every token is read, so that a damaged chunk is found here and not in the middle of a run.
Status check_all_tokens(const TokenFile& file) {
  const TokenFileInfo& info = file.info();
  std::vector<int32_t> ids;
  int64_t largest = -1, largest_at = 0;
  for (int64_t at = 0; at < info.num_tokens; at += 1 << 20) {
    ids.resize(static_cast<size_t>(std::min<int64_t>(1 << 20, info.num_tokens - at)));
    ALTIPLANO_RETURN_IF_ERROR(file.read(at, ids));
    auto top = std::ranges::max_element(ids);
    if (*top > largest) {
      largest = *top;
      largest_at = at + (top - ids.begin());
    }
  }
  if (largest == info.max_id && largest_at == info.max_id_offset) return Status::ok();
  return runtime_failure("{}: largest id is {} at token {}, its attributes say {} at {}; pack the text again",
                         info.path, largest, largest_at, info.max_id, info.max_id_offset);
}

Result<std::string> sample_text(const TokenFile& file, int64_t offset, int64_t count) {
  int64_t total = file.info().num_tokens;
  if (offset < 0 || offset >= total)
    return invalid_argument("--offset {}: the file has tokens 0 to {}", offset, total - 1);
  std::vector<int32_t> ids(static_cast<size_t>(std::clamp<int64_t>(count, 0, total - offset)));
  ALTIPLANO_RETURN_IF_ERROR(file.read(offset, ids));
  ALTIPLANO_ASSIGN(std::unique_ptr<Tokenizer> tokenizer, file.tokenizer());
  return nlohmann::json(tokenizer->decode(ids)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status inspect(const InspectArguments& arguments) {
  ALTIPLANO_ASSIGN(TokenFile file, TokenFile::open(arguments.file));
  ALTIPLANO_RETURN_IF_ERROR(check_all_tokens(file));
  ALTIPLANO_ASSIGN(std::string sample, sample_text(file, arguments.offset, arguments.count));
  const TokenFileInfo& info = file.info();
  std::vector<std::string> sources = info.sources;
  if (sources.size() > 3) {
    sources[3] = fmt::format("and {} more", sources.size() - 3);
    sources.resize(4);
  }
  print_out("file       {}\n", info.path);
  print_out("tokenizer  {}, vocabulary {}\n", info.tokenizer, info.vocab_size);
  print_out("tokens     {}, every chunk read and its checksum right\n", with_thousands(info.num_tokens));
  print_out("documents  {}, from {}\n", with_thousands(info.num_documents), join(sources, ", "));
  print_out("ids        {} to {}, the largest first at token {}\n", info.min_id, info.max_id, info.max_id_offset);
  print_out("sample     at token {}: {}\n", arguments.offset, sample);
  return Status::ok();
}

void add_pack(CLI::App& data, int& exit_code) {
  auto arguments = std::make_shared<PackArguments>();
  CLI::App* command = add_command(data, "pack", "Turn text files into a file of tokens", R"(
    altiplano data pack -o data/kjv.h5 data/kjv.txt
    altiplano data pack --tokenizer gpt2 --vocab encoder.json --merges vocab.bpe -o data/kjv.h5 data/kjv.txt
    altiplano data pack --deflate 4 -o data/books.h5 books/*.txt)");
  command->add_option("files", arguments->options.inputs, "Text files; each is one document, in this order")
      ->required();
  command->add_option("-o,--output", arguments->options.output, "The file to write; it appears when it is whole")
      ->required()
      ->type_name("FILE");
  command->add_option("--tokenizer", arguments->tokenizer, "byte or gpt2")->capture_default_str();
  command->add_option("--vocab", arguments->vocab, "GPT-2's encoder.json");
  command->add_option("--merges", arguments->merges, "GPT-2's vocab.bpe");
  command->add_option("--deflate", arguments->options.deflate, "gzip level of the tokens, 0 to 9; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(0, 9));
  on_run(command, exit_code, [arguments] { return pack(*arguments); });
}

void add_inspect(CLI::App& data, int& exit_code) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = add_command(data, "inspect", "Check a file of tokens and say what is in it", R"(
    altiplano data inspect data/kjv.h5
    altiplano data inspect data/kjv.h5 --offset 100000 --count 200)");
  command->add_option("file", arguments->file, "A file that `altiplano data pack` wrote")->required();
  command->add_option("--offset", arguments->offset, "First token of the sample")->capture_default_str();
  command->add_option("--count", arguments->count, "Tokens of the sample")->capture_default_str();
  on_run(command, exit_code, [arguments] { return inspect(*arguments); });
}

}  // namespace

void add_data_command(CLI::App& app, int& exit_code) {
  CLI::App* data = add_command(app, "data", "Make and look at files of tokens", R"(
    altiplano data pack -o data/kjv.h5 data/kjv.txt
    altiplano data inspect data/kjv.h5)");
  data->require_subcommand(1);
  add_pack(*data, exit_code);
  add_inspect(*data, exit_code);
}

}  // namespace altiplano
