#pragma once
// Kernels by op kind. A kernel is made once for fixed shapes and run many times; it allocates nothing while running.
#include "framework/api/device.hpp"

namespace @name@_plugin {

/// A kernel in f32, or a refusal that names the kind and the type.
altiplano::Result<std::unique_ptr<altiplano::Kernel>> make_kernel(const altiplano::KernelRequest& request);

/// Copies or adds a box of f32, f64, i32 or i64 between buffers that hold other boxes; refuses a part outside of them.
altiplano::Status copy_box(const altiplano::BoxCopy& boxes, altiplano::DType dtype, const void* source,
                           void* destination, bool add);

}  // namespace @name@_plugin
