// What every plugin owes, whatever its kind. The descriptor itself was checked when the file was loaded.
#include <memory>

#include "framework/base/text.hpp"
#include "framework/conformance/check.hpp"
#include "framework/conformance/elf_file.hpp"

namespace altiplano::conformance {
namespace {

Finding check_symbols(const Subject& subject) {
  ALTIPLANO_ASSIGN(const auto names, exported_symbols(subject.info.path));
  if (names == std::vector<std::string>{ALTIPLANO_PLUGIN_QUERY_SYMBOL}) return "1 symbol";
  const std::vector<std::string> first(names.begin(), names.begin() + std::min<ptrdiff_t>(names.size(), 5));
  return broken("{} symbols are exported: {}{}; build it with altiplano_add_plugin", names.size(), join(first, ", "),
                names.size() > first.size() ? ", ..." : "");
}

Finding check_objects(const Subject& subject) {
  constexpr int kTimes = 3;
  std::vector<std::shared_ptr<void>> objects = {};
  for (int i = 0; i < kTimes; ++i) {
    const char* error = nullptr;
    void* object = subject.descriptor->create(&error);
    if (object == nullptr) return broken("object {} was not created: {}", i + 1, error ? error : "no reason given");
    if (object == subject.object) return broken("create() gave the same object twice");
    for (const auto& other : objects)
      if (object == other.get()) return broken("create() gave the same object twice");
    objects.emplace_back(object, subject.descriptor->destroy);
  }
  return fmt::format("{} made and destroyed", kTimes);
}

Finding check_texts(const Subject& subject) {
  if (trim(subject.info.help).empty()) return broken("the descriptor's help is empty; needed: one line");
  if (subject.info.help.find('\n') != std::string::npos) return broken("the descriptor's help has several lines");
  if (trim(subject.info.version).empty()) return broken("the descriptor's version is empty");
  return fmt::format("\"{}\"", subject.info.help);
}

}  // namespace

std::vector<Check> handshake_checks() {
  return {{"altiplano_plugin_query is the one symbol exported", check_symbols},
          {"it has a version and one line of help", check_texts},
          {"objects can be made and destroyed again and again", check_objects}};
}

}  // namespace altiplano::conformance
