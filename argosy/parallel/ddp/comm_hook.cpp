#include "argosy/parallel/ddp/comm_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/buckets.h"

namespace argosy::parallel {
namespace {

comm::Work start_average(const at::Tensor& tensor, const GradBucket& bucket) {
  return comm::all_reduce_async(
      tensor,
      bucket.group(),
      {.op = comm::ReduceOp::kAvg, .timeout = bucket.timeout(), .place = bucket.place()});
}

}  // namespace

BucketWork ddp::Compress::operator()(GradBucket& bucket) const {
  const at::Tensor& buffer = bucket.buffer();
  if (buffer.scalar_type() != at::kFloat && buffer.scalar_type() != at::kDouble) {
    return start_average(buffer, bucket);
  }
  at::Tensor& packed = bucket.scratch();
  if (!packed.defined()) {
    packed = at::empty({buffer.numel()}, buffer.options().dtype(type));
  }
  packed.copy_(buffer);
  return {start_average(packed, bucket), [packed, buffer] { buffer.copy_(packed); }};
}

const at::Tensor& GradBucket::buffer() const {
  return bucket_->flat;
}
const std::vector<at::Tensor>& GradBucket::gradients() const {
  return bucket_->views;
}
std::vector<at::Tensor> GradBucket::gradients_of(size_t leaf) const {
  const at::Tensor& flat = leaves_[leaf];
  const int64_t begin = buffer().storage_offset();
  std::vector<at::Tensor> out;
  for (const at::Tensor& view : gradients()) {
    out.push_back(flat.as_strided(
        view.sizes(), view.strides(), flat.storage_offset() + view.storage_offset() - begin));
  }
  return out;
}
at::Tensor& GradBucket::scratch() const {
  return bucket_->scratch;
}

std::vector<at::Tensor> GradBucket::parameters() const {
  std::vector<at::Tensor> out;
  out.reserve(bucket_->parameters.size());
  for (size_t index : bucket_->parameters) {
    out.push_back(parameters_[index]);
  }
  return out;
}

CommHook average() {
  return [](GradBucket& bucket) { return start_average(bucket.buffer(), bucket); };
}
CommHook fp16_compress() {
  return ddp::Compress{at::kHalf};
}
CommHook bf16_compress() {
  return ddp::Compress{at::kBFloat16};
}

}  // namespace argosy::parallel
