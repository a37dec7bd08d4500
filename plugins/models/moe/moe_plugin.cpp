#include "framework/api/register.hpp"
#include "plugins/models/moe/moe_model.hpp"

ALTIPLANO_REGISTER_PLUGIN(altiplano::Model, altiplano::moe::MoeModel, "model/moe", ALTIPLANO_PLUGIN_VERSION, 0,
                          "decoder-only transformer with experts in every second block")
