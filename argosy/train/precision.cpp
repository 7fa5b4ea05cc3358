#include "argosy/train/precision.h"

#include <bit>
#include <cmath>
#include <limits>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/checkpoint/states.h"
#include "argosy/engine/autocast.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {
namespace {

std::optional<optim::GradScalerOptions> scaler_of(const AmpOptions& options) {
  if (options.scaler.has_value() || options.dtype == at::kBFloat16) {
    return options.scaler;
  }
  return optim::GradScalerOptions{};
}

}  // namespace

Precision::Precision(const AmpOptions& options, at::DeviceType device)
    : dtype_(options.dtype), device_(device) {
  ARGOSY_CHECK(engine::can_autocast(device, options.dtype),
               "train.prepare",
               "amp.dtype {}: the device {} cannot compute in it, expected {}",
               c10::toString(options.dtype),
               c10::DeviceTypeName(device, /*lower_case=*/true),
               device == at::kCPU ? "BFloat16" : "Half or BFloat16");
  if (const auto scaler = scaler_of(options)) {
    scaler_.emplace(*scaler);
  }
}

Tensors Precision::run(const std::function<Tensors(const Tensors&)>& forward,
                       const Tensors& inputs) const {
  if (!dtype_.has_value()) {
    return forward(inputs);
  }
  Tensors outputs;
  {
    const engine::Autocast autocast({.device = device_, .dtype = dtype_});
    outputs = forward(inputs);
  }
  for (at::Tensor& output : outputs) {
    if (output.defined() && output.scalar_type() == *dtype_) {
      output = output.to(at::kFloat);
    }
  }
  return outputs;
}

void Precision::backward(const at::Tensor& loss) {
  (scales() ? scaler_->scale(loss) : loss).backward();
}

void Precision::begin_update(const optim::Optimizer& optimizer) {
  if (!scales()) {
    return;
  }
  if (amid_update_) {  // an exception ended the update before
    scaler_->update(scaler_->get_scale());
  }
  scaler_->unscale_(optimizer);
  amid_update_ = true;
  skipped_ = *scaler_->found_inf(optimizer);
}

void Precision::update(optim::Optimizer& optimizer) {
  if (!scales()) {
    optimizer.step();
    return;
  }
  scaler_->step(optimizer);
  scaler_->update();
  amid_update_ = false;
}

void Precision::report(int64_t step, bool first_rank) {
  if (!skipped_) {
    skipped_in_a_row_ = 0;
    return;
  }
  ++skipped_in_a_row_;
  const double scale = scaler_->get_scale();
  if (scale < std::numeric_limits<float>::min()) {
    throw DataError("train.fit",
                    fmt::format("the gradients of {} updates in a row were not finite, up to step "
                                "{}, and a smaller scale of the loss does not help. Look for the "
                                "cause without amp.scaler: train::GradientMonitor names the layer, "
                                "train::LayerInspector the first one in forward.",
                                skipped_in_a_row_,
                                step));
  }
  if (first_rank && std::has_single_bit(static_cast<uint64_t>(skipped_in_a_row_))) {
    log::warn(
        "[train.fit] step {} is skipped{}: its gradients have NaN or infinities. The loss is "
        "scaled by {} from here on",
        step,
        skipped_in_a_row_ == 1 ? "" : fmt::format(", the {}th in a row", skipped_in_a_row_),
        scale);
  }
}

void Precision::add_to(Logs& logs) const {
  if (scales()) {
    logs.set("loss_scale", scaler_->get_scale());
  }
}

std::string Precision::name() const {
  if (!dtype_.has_value()) {
    return {};
  }
  return *dtype_ == at::kBFloat16 ? "bfloat16" : "float16";
}

nlohmann::ordered_json Precision::state() const {
  if (!scales()) {
    return nullptr;
  }
  optim::GradScaler scaler = *scaler_;
  if (amid_update_) {
    scaler.update(scaler.get_scale());
  }
  return checkpoint::to_json(scaler.state_dict());
}

void Precision::load_state(const nlohmann::ordered_json& state) {
  scaler_->load_state_dict(checkpoint::scaler_state(state));
}

}  // namespace argosy::train::detail
