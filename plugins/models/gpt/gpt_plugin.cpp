#include "framework/api/register.hpp"
#include "plugins/models/gpt/gpt_model.hpp"

ALTIPLANO_REGISTER_PLUGIN(altiplano::Model, altiplano::gpt::GptModel, "model/gpt", ALTIPLANO_PLUGIN_VERSION, 0,
                          "GPT-2: decoder-only transformer")
