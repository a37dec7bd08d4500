#pragma once
// Texts of Slurm's environment variables (slurm.schedmd.com, man sbatch, "OUTPUT ENVIRONMENT VARIABLES"). Pure
// functions; refusals quote the text and the column, from 1.
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano::slurm {

/// More hosts or counts than any cluster has; a longer list is a mistake in the text.
constexpr size_t kMostEntries = 1 << 17;

/// "n[1-3,07-09]-ib,login" -> n1-ib n2-ib n3-ib n07-ib n08-ib n09-ib login. A leading zero of a range's first number
/// sets the width of all its numbers. Several brackets in one name: all combinations, the last bracket fastest. Refuses
/// empty names and ranges, brackets that do not close or nest, ranges that fall.
/// `what`: of the text, for messages: the variable that holds it.
Result<std::vector<std::string>> expand_nodelist(std::string_view text, const char* what = "node list");

/// "4(x2),3" -> 4 4 3. Refuses what is no positive number.
Result<std::vector<int>> expand_counts(std::string_view text, const char* what = "counts");

}  // namespace altiplano::slurm
