#include "argosy/parallel/ddp/buckets.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/optim/sharded_step.h"
#include "argosy/parallel/sharded/memory_pool.h"

namespace argosy::parallel::ddp {
namespace {

constexpr int64_t kBucketLine = 64;  // as aligned_bytes()

struct OpenBucket {
  std::vector<size_t> members;
  int64_t bytes = 0;
  size_t last_position = 0;  // in `order`
  bool closed_one = false;   // the first bucket of this kind is done
};

std::vector<int64_t> view_strides(const at::Tensor& parameter) {
  if (parameter.is_non_overlapping_and_dense()) {
    return parameter.strides().vec();
  }
  std::vector<int64_t> strides(static_cast<size_t>(parameter.dim()));
  int64_t stride = 1;
  for (int64_t i = parameter.dim() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= std::max<int64_t>(1, parameter.size(i));
  }
  return strides;
}

Bucket make_bucket(const std::vector<size_t>& members,
                   std::span<const at::Tensor> parameters,
                   const Allocate& allocate,
                   int parts) {
  Bucket bucket;
  bucket.parameters = members;
  const auto options = parameters[members.front()].options().requires_grad(false);
  const int64_t line = kBucketLine / static_cast<int64_t>(options.dtype().itemsize());
  const int64_t unit = parts > 1 ? optim::ShardedStep::kUnit : line;
  const auto rounded_up = [](int64_t count, int64_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
  };
  std::vector<int64_t> offsets;
  int64_t total = 0;
  for (size_t index : members) {
    offsets.push_back(total);
    total += rounded_up(parameters[index].numel(), unit);
  }
  bucket.flat = allocate(rounded_up(total, parts * unit), options);
  bucket.memory = sharded::ShardedMemory::of(bucket.flat);
  bucket.parts = bucket.flat.chunk(parts);
  for (size_t k = 0; k < members.size(); ++k) {
    bucket.views.push_back(view_in(bucket.flat, offsets[k], parameters[members[k]]));
  }
  return bucket;
}

}  // namespace

at::Tensor view_in(const at::Tensor& flat, int64_t offset, const at::Tensor& like) {
  return at::empty({0}, flat.options())
      .set_(flat.storage(), flat.storage_offset() + offset, like.sizes(), view_strides(like));
}

BucketPlan plan_buckets(std::span<const at::Tensor> parameters,
                        std::span<const size_t> order,
                        const BucketLimits& limits) {
  ARGOSY_INVARIANT(order.size() == parameters.size(), "parallel.plan_buckets");
  std::vector<std::pair<size_t, std::vector<size_t>>> done;  // position of the last member first
  std::map<std::pair<c10::ScalarType, std::string>, OpenBucket> open;
  for (size_t position = 0; position < order.size(); ++position) {
    const at::Tensor& parameter = parameters[order[position]];
    OpenBucket& bucket = open[{parameter.scalar_type(), parameter.device().str()}];
    bucket.members.push_back(order[position]);
    bucket.bytes += static_cast<int64_t>(parameter.nbytes());
    bucket.last_position = position;
    if (bucket.bytes >= (bucket.closed_one ? limits.bytes : limits.first_bytes)) {
      done.emplace_back(position, std::move(bucket.members));
      bucket = OpenBucket{.members = {}, .closed_one = true};
    }
  }
  for (auto& [kind, bucket] : open) {
    if (!bucket.members.empty()) {
      done.emplace_back(bucket.last_position, std::move(bucket.members));
    }
  }
  std::sort(done.begin(), done.end());
  BucketPlan plan;
  for (auto& [position, members] : done) {
    plan.push_back(std::move(members));
  }
  return plan;
}

std::vector<Bucket> make_buckets(const BucketPlan& plan,
                                 std::span<const at::Tensor> parameters,
                                 const Allocate& allocate,
                                 int parts) {
  std::vector<Bucket> buckets;
  buckets.reserve(plan.size());
  for (const auto& members : plan) {
    buckets.push_back(make_bucket(members, parameters, allocate, parts));
  }
  return buckets;
}

void follow_layout(Bucket& bucket, std::span<const at::Tensor> parameters) {
  for (size_t k = 0; k < bucket.views.size(); ++k) {
    at::Tensor& view = bucket.views[k];
    const at::Tensor values = view.clone();
    const int64_t offset = view.storage_offset() - bucket.flat.storage_offset();
    view = view_in(bucket.flat, offset, parameters[bucket.parameters[k]]);
    view.copy_(values);
  }
}

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  if (a.unsafeGetTensorImpl() == b.unsafeGetTensorImpl()) {
    return true;
  }
  if (!a.defined() || !b.defined() || a.layout() != at::kStrided || b.layout() != at::kStrided ||
      a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || a.strides() != b.strides()) {
    return false;
  }
  if (a.storage().data() == nullptr || b.storage().data() == nullptr) {  // not there for now
    return a.is_alias_of(b) && a.storage_offset() == b.storage_offset();
  }
  return a.data_ptr() == b.data_ptr();
}

}  // namespace argosy::parallel::ddp
