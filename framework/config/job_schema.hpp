#pragma once
// JSON schema (draft 7) of job files, for editors: made from the option records, so that what an editor offers and
// marks is what the reader takes. It is a little more generous than the reader: rules across keys, numbers in texts and
// the models' own bounds against each other are the reader's.
#include <map>
#include <string>
#include <vector>

#include "framework/config/foreign_keys.hpp"
#include "framework/config/yaml_reader.hpp"
#include "framework/options/option.hpp"

namespace altiplano {

/// `records`: of the job; `models`: name to the model's own records, as in reference_page. Keys may be nested, or
/// dotted at the top of the file. Ends with a newline.
std::string job_schema(const std::vector<OptionRecord>& records,
                       const std::map<std::string, std::vector<OptionRecord>>& models,
                       const std::vector<Shorthand>& shorthands, const std::vector<ForeignKey>& foreign);

}  // namespace altiplano
