#include "tests/support/rank_result.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace altiplano::test {

namespace {

using Json = nlohmann::json;
using Bytes8 = std::vector<uint8_t>;

double element(DType dtype, const void* data, size_t i) {
  if (dtype == DType::kF64) return static_cast<const double*>(data)[i];
  if (dtype == DType::kF32) return static_cast<double>(static_cast<const float*>(data)[i]);
  uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value);
}

/// `value` came out of element(): every conversion is exact.
void set_element(DType dtype, void* data, size_t i, double value) {
  if (dtype == DType::kF64) static_cast<double*>(data)[i] = value;
  if (dtype == DType::kF32) static_cast<float*>(data)[i] = static_cast<float>(value);
  auto single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  if (dtype == DType::kBF16) static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits >> 16);
}

template <typename Visit>
void for_each_global(const Shape& global, const Box& box, Visit visit) {
  std::vector<int64_t> at(box.extents.size(), 0);
  for (int64_t local = 0; local < box.num_elements(); ++local) {
    int64_t index = 0;
    for (size_t d = 0; d < at.size(); ++d) index = index * global[d] + box.origin[d] + at[d];
    visit(static_cast<size_t>(local), static_cast<size_t>(index));
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < box.extents[d]) break;
      at[d] = 0;
    }
  }
}

bool is_state(const PersistentTensor& tensor) {
  return tensor.role != TensorRole::kGradient && tensor.role != TensorRole::kTotals;
}

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

Json to_json(const std::vector<double>& values) {
  Bytes8 bytes(values.size() * sizeof(double));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Json::binary(std::move(bytes));
}

std::vector<double> doubles(const Json& json) {
  const auto& bytes = json.get_binary();
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Json to_json(const std::vector<TensorPiece>& pieces) {
  Json list = Json::array();
  for (const TensorPiece& piece : pieces)
    list.push_back({piece.name, piece.global, piece.box.origin, piece.box.extents, to_json(piece.values)});
  return list;
}

std::vector<TensorPiece> pieces(const Json& json) {
  std::vector<TensorPiece> list;
  for (const Json& item : json)
    list.push_back({item[0].get<std::string>(),
                    item[1].get<Shape>(),
                    {item[2].get<Shape>(), item[3].get<Shape>()},
                    doubles(item[4])});
  return list;
}

void merge_pieces(const std::vector<TensorPiece>& pieces, std::map<std::string, std::vector<double>>& whole,
                  std::string& differ) {
  for (const TensorPiece& piece : pieces) {
    auto& values = whole[piece.name];
    values.resize(static_cast<size_t>(num_elements(piece.global)), std::numeric_limits<double>::quiet_NaN());
    for_each_global(piece.global, piece.box, [&](size_t local, size_t global) {
      if (!std::isnan(values[global]) && !same_bits(values[global], piece.values[local])) differ = piece.name;
      values[global] = piece.values[local];
    });
  }
}

/// NaN counts as equal to itself: both ranks saw the same poisoned step.
bool agree(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_bits(a[i], b[i]) && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  return true;
}

}  // namespace

std::vector<TensorPiece> take_state(Executor& executor) {
  std::vector<TensorPiece> pieces;
  for (const PersistentTensor& tensor : executor.program().tensors) {
    if (!is_state(tensor)) continue;
    DType dtype = executor.program().buffer(tensor.buffer).dtype;
    TensorPiece piece{tensor.name, tensor.global, tensor.box, {}};
    piece.values.resize(static_cast<size_t>(tensor.box.num_elements()));
    for (size_t i = 0; i < piece.values.size(); ++i) piece.values[i] = element(dtype, executor.data(tensor), i);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

void restore_state(Executor& executor, const std::map<std::string, std::vector<double>>& start) {
  for (const PersistentTensor& tensor : executor.program().tensors) {
    if (!is_state(tensor)) continue;
    DType dtype = executor.program().buffer(tensor.buffer).dtype;
    const auto& whole = start.at(tensor.name);
    for_each_global(tensor.global, tensor.box, [&](size_t local, size_t global) {
      set_element(dtype, executor.data(tensor), local, whole.at(global));
    });
  }
}

std::string serialize(const RankResult& result) {
  Json json = {{"losses", to_json(result.losses)},
               {"norms", to_json(result.norms)},
               {"validation", to_json(result.validation)},
               {"logits", result.logits},
               {"applied", result.applied},
               {"initial", to_json(result.initial)},
               {"final", to_json(result.final)},
               {"predicted", result.predicted_bytes},
               {"peak", result.peak_bytes}};
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

RankResult deserialize(const std::string& bytes) {
  Json json = Json::from_cbor(bytes);
  return {doubles(json.at("losses")),
          doubles(json.at("norms")),
          doubles(json.at("validation")),
          json.at("logits").get<std::vector<float>>(),
          json.at("applied").get<std::vector<int64_t>>(),
          pieces(json.at("initial")),
          pieces(json.at("final")),
          json.at("predicted").get<int64_t>(),
          json.at("peak").get<int64_t>()};
}

TrainResult merge(const std::vector<RankResult>& ranks) {
  TrainResult result;
  for (const RankResult& rank : ranks) {
    merge_pieces(rank.initial, result.initial, result.replicas_differ);
    merge_pieces(rank.final, result.tensors, result.replicas_differ);
    result.predicted_bytes.push_back(rank.predicted_bytes);
    result.peak_bytes.push_back(rank.peak_bytes);
    if (!rank.logits.empty()) result.logits = rank.logits;
    const RankResult& first = ranks.front();
    if (!agree(rank.losses, first.losses)) result.replicas_differ = "loss";
    if (!agree(rank.norms, first.norms)) result.replicas_differ = "gradient norm";
    if (!agree(rank.validation, first.validation)) result.replicas_differ = "validation loss";
    if (rank.applied != first.applied) result.replicas_differ = "decision to apply";
  }
  result.losses = ranks.front().losses;
  result.norms = ranks.front().norms;
  result.applied.assign(ranks.front().applied.begin(), ranks.front().applied.end());
  if (!ranks.front().validation.empty()) result.validation_loss = ranks.front().validation[0];
  return result;
}

}  // namespace altiplano::test
