#pragma once
// The formulas of the pointwise ops in float, written so that a compiler can vectorize a loop around them: no branches,
// no calls.
#include <cmath>
#include <cstdint>

#include "framework/kernels/bfloat16.hpp"

namespace altiplano {

/// e^x to about 1 ulp: x = n ln2 + r, |r| <= ln2/2, Taylor polynomial of degree 7 in r (truncation 5e-9), then an exact
/// 2^n. 0 below -87, infinity above 88.72; NaN stays NaN.
ALTIPLANO_POINTWISE float fast_exp(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.42860682e-6f;  // n * high is exact
  const float clamped = x > 88.8f ? 88.8f : (x < -87.0f ? -87.0f : x);
  const float shifted = clamped * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // The low bits of `shifted` are n; 2^(n-1) and a doubling, since 2^128 has no float.
  const float half_scale = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 126u) << 23);
  const float y = (p * 2.0f) * half_scale;
  return x < -87.0f ? 0.0f : (x > 88.722839f ? HUGE_VALF : y);
}

/// tanh to 1e-7 absolute.
ALTIPLANO_POINTWISE float fast_tanh(float x) {
  return 1.0f - 2.0f / (fast_exp(2.0f * x) + 1.0f);
}

/// GELU, tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
struct GeluTanh {
  static constexpr float kA = 0.7978845608f, kB = 0.044715f;
  ALTIPLANO_POINTWISE static float value(float x) { return 0.5f * x * (1.0f + fast_tanh(kA * (x + kB * x * x * x))); }
  ALTIPLANO_POINTWISE static float derivative(float x) {
    const float t = fast_tanh(kA * (x + kB * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * kA * (1.0f + 3.0f * kB * x * x);
  }
};

/// GELU, exact form: x Phi(x).
struct GeluErf {
  ALTIPLANO_POINTWISE static float value(float x) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678f)); }
  ALTIPLANO_POINTWISE static float derivative(float x) {
    const float density = 0.39894228f * fast_exp(-0.5f * x * x);
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
