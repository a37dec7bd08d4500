// The adapter: the keys of the job file's `model:` section and the way from them to the graph.
#include <exception>

#include "@name@_graph.hpp"
#include "framework/api/register.hpp"

namespace {

using namespace altiplano;

OptionRecord count(std::string key, int64_t default_value, std::string help) {
  OptionRecord record;
  record.key = std::move(key);
  record.type = OptionType::kInt;
  record.default_value = default_value;
  record.help = std::move(help);
  record.minimum = 1;
  return record;
}

class @Name@Plugin final : public Model {
 public:
  std::vector<OptionRecord> option_records() const override {
    const @name@_plugin::Config config;
    return {count("num_hidden_layers", config.layers, "Number of blocks."),
            count("hidden_size", config.hidden, "Width of the residual stream."),
            count("vocab_size", config.vocabulary, "Rows of the token table.")};
  }

  Result<ModelGraph> build(const Options& options, const ModelRequest& request) const noexcept override {
    try {
      return @name@_plugin::build_graph({options.get_int("num_hidden_layers"), options.get_int("hidden_size"),
                                  options.get_int("vocab_size")},
                                 request);
    } catch (const std::exception& e) {
      return runtime_failure("model/@name@: {}", e.what());
    }
  }
};

}  // namespace

ALTIPLANO_REGISTER_PLUGIN(altiplano::Model, @Name@Plugin, ALTIPLANO_PLUGIN_NAME, ALTIPLANO_PLUGIN_VERSION, 0,
                          "a stack of feed-forward blocks over tokens, each position by itself")
