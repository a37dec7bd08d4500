#pragma once
// KernelTable: which form a device makes each kernel shape in (framework/api/device.hpp). It is data: measured once,
// kept in the profile database (kernel_database.hpp), copied into the plan and so into every checkpoint, and replayed
// from there. Equal plan, table, instruction set and threads give equal bits.
#include <map>
#include <string>

namespace altiplano {

struct KernelTable {
  std::string machine;                       ///< what it was measured on; empty when the table is
  std::map<std::string, std::string> forms;  ///< by shape

  bool is_empty() const { return forms.empty(); }
  /// Empty: the table does not know the shape, and the device's first form is taken.
  std::string form_of(const std::string& shape) const;
  bool operator==(const KernelTable&) const = default;
};

}  // namespace altiplano
