#include "framework/api/register.hpp"
#include "plugins/models/wide_resnet/wide_resnet_model.hpp"

ALTIPLANO_REGISTER_PLUGIN(altiplano::Model, altiplano::wide_resnet::WideResnetModel, "model/wide_resnet",
                          ALTIPLANO_PLUGIN_VERSION, 0, "Wide-ResNet: bottleneck blocks of convolutions")
