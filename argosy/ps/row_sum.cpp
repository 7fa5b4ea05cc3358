#include "argosy/ps/row_sum.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace argosy::ps {
namespace {

/// Returns the sum of the leaves, or nullptr when none is there. `scratch` has room for as many
/// vectors as the tree is deep.
const float* tree_sum(std::span<const float* const> leaves, size_t size, float* scratch) {
  if (leaves.size() == 1) {
    return leaves[0];
  }
  const size_t left = std::bit_floor(leaves.size() - 1);
  const float* const a = tree_sum(leaves.first(left), size, scratch);
  // The right side may not write where the sum of the left one lies.
  const float* const b =
      tree_sum(leaves.subspan(left), size, a == scratch ? scratch + size : scratch);
  if (a == nullptr || b == nullptr) {
    return a == nullptr ? b : a;
  }
  for (size_t i = 0; i < size; ++i) {
    scratch[i] = a[i] + b[i];
  }
  return scratch;
}

size_t depth_of(size_t leaves) {
  return static_cast<size_t>(std::bit_width(leaves)) + 1;
}

void average(std::span<const float* const> of_workers,
             std::span<float> out,
             std::vector<float>& scratch) {
  scratch.resize(depth_of(of_workers.size()) * out.size());
  const float* const sum = tree_sum(of_workers, out.size(), scratch.data());
  const auto divisor = static_cast<float>(of_workers.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = sum == nullptr ? 0.0F : sum[i] / divisor;
  }
}

/// Where one worker's gradient of one row lies.
struct Part {
  uint64_t id;
  size_t worker;
  size_t place;
};

}  // namespace

void average_of(std::span<const float* const> of_workers, std::span<float> out) {
  std::vector<float> scratch;
  average(of_workers, out, scratch);
}

RowSum::RowSum(std::span<const RowsPushed* const> of_workers, size_t shard, size_t dim) {
  std::vector<Part> parts;
  for (size_t w = 0; w < of_workers.size(); ++w) {
    const RowsPushed* const rows = of_workers[w];
    if (rows == nullptr) {
      continue;
    }
    push_.lr = rows->lr;
    const size_t begin = std::accumulate(
        rows->counts.begin(), rows->counts.begin() + static_cast<ptrdiff_t>(shard), size_t{0});
    const size_t count = rows->counts[shard];
    const std::span<const uint64_t> ids = rows->ids.as<uint64_t>();
    if (of_workers.size() == 1) {
      push_.ids = ids.subspan(begin, count);
      push_.gradients = rows->gradients.as<float>().subspan(begin * dim, count * dim);
      push_.shows =
          rows->shows.size() == 0 ? push_.shows : rows->shows.as<float>().subspan(begin, count);
      push_.clicks =
          rows->clicks.size() == 0 ? push_.clicks : rows->clicks.as<float>().subspan(begin, count);
      return;
    }
    for (size_t i = begin; i < begin + count; ++i) {
      parts.push_back({ids[i], w, i});
    }
  }
  std::ranges::sort(parts, [](const Part& a, const Part& b) {
    return a.id != b.id ? a.id < b.id : a.worker < b.worker;
  });
  std::vector<float> scratch;
  std::vector<const float*> leaves(of_workers.size());
  for (size_t i = 0; i < parts.size();) {
    ids_.push_back(parts[i].id);
    std::ranges::fill(leaves, nullptr);
    shows_.push_back(0);
    clicks_.push_back(0);
    for (const uint64_t id = parts[i].id; i < parts.size() && parts[i].id == id; ++i) {
      const RowsPushed& rows = *of_workers[parts[i].worker];
      const size_t place = parts[i].place;
      leaves[parts[i].worker] = rows.gradients.as<float>().data() + place * dim;
      shows_.back() += rows.shows.size() == 0 ? 1.0F : rows.shows.as<float>()[place];
      clicks_.back() += rows.clicks.size() == 0 ? 0.0F : rows.clicks.as<float>()[place];
    }
    gradients_.resize(gradients_.size() + dim);
    average(leaves, std::span(gradients_).last(dim), scratch);
  }
  push_.ids = ids_;
  push_.gradients = gradients_;
  push_.shows = shows_;
  push_.clicks = clicks_;
}

}  // namespace argosy::ps
