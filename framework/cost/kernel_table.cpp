#include "framework/cost/kernel_table.hpp"

namespace altiplano {

std::string KernelTable::form_of(const std::string& shape) const {
  const auto found = forms.find(shape);
  return found == forms.end() ? std::string() : found->second;
}

}  // namespace altiplano
