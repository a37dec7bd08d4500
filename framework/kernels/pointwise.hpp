#pragma once
// The formulas of the pointwise ops in float, written so that a compiler can vectorize a loop around them: no branches,
// no calls. std::fma is written where it is wanted: the compiler fuses nothing by itself here (-ffp-contract=off), so
// every machine and every loop around a formula gives the same bits.
#include <cmath>
#include <cstdint>

#include "framework/kernels/bfloat16.hpp"

namespace altiplano {

/// e^x to about 1 ulp for -87 <= x <= 87: x = n ln2 + r, |r| <= ln2/2, Taylor polynomial of degree 7 in r (truncation
/// 5e-9), then an exact 2^n. NaN stays NaN; anything else gives garbage.
ALTIPLANO_POINTWISE float exp_within(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.42860682e-6f;  // n * high is exact
  const float shifted = std::fma(x, 1.44269504f, kRound);
  const float n = shifted - kRound;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  float p = 1.0f / 5040.0f;
  p = std::fma(p, r, 1.0f / 720.0f);
  p = std::fma(p, r, 1.0f / 120.0f);
  p = std::fma(p, r, 1.0f / 24.0f);
  p = std::fma(p, r, 1.0f / 6.0f);
  p = std::fma(p, r, 0.5f);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  // The low bits of `shifted` are n; 2^(n-1) and a doubling, since 2^128 has no float.
  return (p * 2.0f) * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 126u) << 23);
}

/// e^x for x of at most 87, as in probabilities; what lies below -87 counts as -87 (1.6e-38). NaN stays NaN.
ALTIPLANO_POINTWISE float exp_at_most_one(float x) {
  return exp_within(-87.0f > x ? -87.0f : x);
}

/// 1 / y to 1e-7 for y in [1, 1e37], without the division, which a vector unit does at a sixteenth of its speed: a
/// guess from the exponent, to 12 %, and three steps of Newton's, each of which squares the error.
ALTIPLANO_POINTWISE float fast_reciprocal(float y) {
  float r = std::bit_cast<float>(0x7EF311C7u - std::bit_cast<uint32_t>(y));
  r = r * std::fma(-y, r, 2.0f);
  r = r * std::fma(-y, r, 2.0f);
  return r * std::fma(-y, r, 2.0f);
}

/// GELU, tanh form: 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), as x s with s = 1 / (1 + e^(-2u)).
struct GeluTanh {
  static constexpr float kA = 0.7978845608f, kB = 0.044715f;
  ALTIPLANO_POINTWISE static float sigmoid(float x) {
    const float exponent = x * std::fma(-2.0f * kA * kB, x * x, -2.0f * kA);
    // Beyond 80 nothing changes. The bound as one of whole numbers, which vector units have; that NaN is lost here does
    // not matter, for every use multiplies by x.
    const uint32_t bits = std::bit_cast<uint32_t>(exponent), sign = bits & 0x80000000u, most = 0x42A00000u;
    const uint32_t magnitude = bits ^ sign, bounded = magnitude < most ? magnitude : most;
    return fast_reciprocal(1.0f + exp_within(std::bit_cast<float>(bounded | sign)));
  }
  ALTIPLANO_POINTWISE static float value(float x) { return x * sigmoid(x); }
  ALTIPLANO_POINTWISE static float derivative(float x) {
    const float s = sigmoid(x);
    return std::fma(x * std::fma(-s, s, s), std::fma(6.0f * kA * kB, x * x, 2.0f * kA), s);
  }
};

/// GELU, exact form: x Phi(x).
struct GeluErf {
  ALTIPLANO_POINTWISE static float value(float x) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678f)); }
  ALTIPLANO_POINTWISE static float derivative(float x) {
    const float density = 0.39894228f * exp_at_most_one(-0.5f * x * x);
    return 0.5f * (1.0f + std::erf(x * 0.70710678f)) + x * density;
  }
};

/// One AdamW element (Loshchilov and Hutter, "Decoupled weight decay regularization", algorithm 2; the decay uses the
/// old weight).
struct AdamW {
  float gradient_scale, beta1, beta2, epsilon, weight_decay, learning_rate;
  float complement1, complement2;  ///< 1 - beta, rounded once
  float correction1, correction2;  ///< 1 / (1 - beta^t)
  ALTIPLANO_POINTWISE void update(float& w, float gradient, float& m, float& v) const {
    const float g = gradient * gradient_scale;
    m = beta1 * m + complement1 * g;
    v = beta2 * v + complement2 * (g * g);
    const float step = (m * correction1) / (std::sqrt(v * correction2) + epsilon);
    w -= learning_rate * (step + weight_decay * w);
  }
};

/// One SGD element with momentum; the decay is part of the gradient.
struct Sgd {
  float gradient_scale, momentum, weight_decay, learning_rate;
  ALTIPLANO_POINTWISE void update(float& w, float gradient, float& m) const {
    m = momentum * m + (gradient * gradient_scale + weight_decay * w);
    w -= learning_rate * m;
  }
};

}  // namespace altiplano
