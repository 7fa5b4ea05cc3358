#include "argosy/engine/autocast.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include "argosy/base/check.h"
#include "argosy/engine/version.h"

namespace argosy::engine {
namespace {

// 2.4 has one function for all devices, and what came before is deprecated.
#if ARGOSY_TORCH_AT_LEAST(2, 4)
bool enabled_on(at::DeviceType device) {
  return at::autocast::is_autocast_enabled(device);
}
void enable_on(at::DeviceType device, bool enabled) {
  at::autocast::set_autocast_enabled(device, enabled);
}
at::ScalarType dtype_on(at::DeviceType device) {
  return at::autocast::get_autocast_dtype(device);
}
void set_dtype_on(at::DeviceType device, at::ScalarType dtype) {
  at::autocast::set_autocast_dtype(device, dtype);
}
#else
bool enabled_on(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}
void enable_on(at::DeviceType device, bool enabled) {
  device == at::kCPU ? at::autocast::set_cpu_enabled(enabled) : at::autocast::set_enabled(enabled);
}
at::ScalarType dtype_on(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::get_autocast_cpu_dtype()
                            : at::autocast::get_autocast_gpu_dtype();
}
void set_dtype_on(at::DeviceType device, at::ScalarType dtype) {
  device == at::kCPU ? at::autocast::set_autocast_cpu_dtype(dtype)
                     : at::autocast::set_autocast_gpu_dtype(dtype);
}
#endif

at::DeviceType checked(at::DeviceType device) {
  ARGOSY_CHECK(device == at::kCPU || device == at::kCUDA,
               "engine.Autocast",
               "expected the device cpu or cuda, got {}",
               c10::DeviceTypeName(device, /*lower_case=*/true));
  return device;
}

void check_possible(at::DeviceType device, at::ScalarType dtype) {
  ARGOSY_CHECK(device == at::kCPU || at::globalContext().hasCUDA(),
               "engine.Autocast",
               "this machine, or this libtorch, has no CUDA device");
  ARGOSY_CHECK(can_autocast(device, dtype),
               "engine.Autocast",
               "the device {} cannot compute in {}: expected {}",
               c10::DeviceTypeName(device, /*lower_case=*/true),
               c10::toString(dtype),
               device == at::kCPU ? "BFloat16" : "Half or BFloat16");
}

}  // namespace

bool can_autocast(at::DeviceType device, at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? device == at::kCPU || device == at::kCUDA
                                : dtype == at::kHalf && device == at::kCUDA;
}

bool is_autocast_enabled(at::DeviceType device) {
  return enabled_on(checked(device));
}

at::ScalarType autocast_dtype(at::DeviceType device) {
  return dtype_on(checked(device));
}

Autocast::Autocast(const AutocastOptions& options)
    : device_(checked(options.device)),
      enabled_(enabled_on(device_)),
      dtype_(dtype_on(device_)),
      cache_(at::autocast::is_autocast_cache_enabled()) {
  const at::ScalarType dtype = options.enabled ? options.dtype.value_or(dtype_) : dtype_;
  if (options.enabled) {
    check_possible(device_, dtype);
  }
  enable_on(device_, options.enabled);
  set_dtype_on(device_, dtype);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_cache_enabled(options.cache.value_or(cache_));
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) {
    at::autocast::clear_cache();
  }
  enable_on(device_, enabled_);
  set_dtype_on(device_, dtype_);
  at::autocast::set_autocast_cache_enabled(cache_);
}

AutocastUncached::AutocastUncached() : cache_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}

AutocastUncached::~AutocastUncached() {
  at::autocast::set_autocast_cache_enabled(cache_);
}

AutocastState::AutocastState()
    : choices_{Choice{at::kCPU, enabled_on(at::kCPU), dtype_on(at::kCPU)},
               Choice{at::kCUDA, enabled_on(at::kCUDA), dtype_on(at::kCUDA)}} {}

void AutocastState::apply() const {
  for (const auto& [device, enabled, dtype] : choices_) {
    enable_on(device, enabled);
    set_dtype_on(device, dtype);
  }
}

AutocastStateGuard::AutocastStateGuard(const AutocastState& state) {
  state.apply();
}

AutocastStateGuard::~AutocastStateGuard() {
  before_.apply();
}

}  // namespace argosy::engine
