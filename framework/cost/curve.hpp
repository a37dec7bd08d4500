#pragma once
// Reading curves (framework/cluster/curves.hpp): seconds between, below and above the points. Between points the
// logarithm of the time follows a line in the logarithm of the size, so that a curve that never falls is read as one.
#include "framework/cluster/curves.hpp"
#include "framework/graph/dtype.hpp"

namespace altiplano {

/// Of a curve of rates: below the first point and above the last at their rates. 0 for nothing to do.
double seconds_by_rate(const Curve& rates, double amount);

/// Of a curve of times: below the first point its time (what a call takes however small), above the last in proportion.
double seconds_by_time(const Curve& times, double size);

/// Of a matrix product of these FLOPs by the curves of its type: between two curves by its smallest dimension, beyond
/// the outer ones by them. Nothing when none is of the type.
std::optional<double> seconds_of_product(const std::vector<ProductCurve>& curves, DType type, double flops,
                                         int64_t smallest_dim);

/// How many times longer work takes when `devices` of a node are at it, by a curve through (1, 1): on lines between
/// the points, above the last on the last line; 1 for no curve.
double slowdown(const Curve& factors, double devices);

}  // namespace altiplano
