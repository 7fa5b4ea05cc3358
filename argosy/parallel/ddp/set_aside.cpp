#include "argosy/parallel/ddp/set_aside.h"

#include <cstddef>
#include <cstring>
#include <optional>

namespace argosy::parallel::ddp {
bool is_known_to_be_zero(const at::Tensor& tensor) {
  const size_t bytes = tensor.nbytes();
  if (!tensor.is_cpu() || !tensor.is_non_overlapping_and_dense() || bytes == 0) {
    return bytes == 0;
  }
  const auto* data = static_cast<const std::byte*>(tensor.data_ptr());
  return data[0] == std::byte{0} && std::memcmp(data, data + 1, bytes - 1) == 0;
}

void SetAside::take(const ParameterTable& table, BucketSet& buckets, bool leave_zeros) {
  drop();
  for (size_t b = 0; b < buckets.size(); ++b) {
    std::optional<bool> zero;  // not known yet
    for (const size_t parameter : buckets[b].parameters) {
      at::Tensor& grad = table.tensors()[parameter].mutable_grad();
      if (!grad.defined()) {
        continue;
      }
      const bool in_bucket = same_memory(grad, buckets.view_of(parameter));
      if (in_bucket && !zero.has_value()) {
        zero = leave_zeros && !buckets.is_cut() && is_known_to_be_zero(buckets[b].flat);
      }
      if (!in_bucket || !*zero) {
        taken_.push_back(
            {parameter, in_bucket ? buckets.kept_part(parameter).clone() : grad, in_bucket});
        grad = at::Tensor();
      }
    }
  }
}

void SetAside::give_back(const ParameterTable& table, const BucketSet& buckets) {
  for (const Taken& each : taken_) {
    const at::Tensor kept = buckets.kept_part(each.parameter);
    at::Tensor& grad = table.tensors()[each.parameter].mutable_grad();
    if (grad.defined()) {
      kept.add_(each.in_bucket ? each.gradient
                               : buckets.kept_part_of(each.parameter, each.gradient));
    } else if (each.in_bucket) {
      kept.copy_(each.gradient);
      grad = buckets.view_of(each.parameter);
    } else {
      grad = each.gradient;
    }
  }
  drop();
}

}  // namespace argosy::parallel::ddp
