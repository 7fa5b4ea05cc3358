#include "argosy/ps/embedding.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/ps/embedding_rows.h"
#include "argosy/ps/id_deal.h"

namespace argosy::ps {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options) : options_(std::move(options)) {
  ARGOSY_CHECK(options_.dim > 0, "ps.embedding", "dim must be 1 or more, got {}", options_.dim);
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) {
  ARGOSY_CHECK(
      rows_ != nullptr,
      "ps.embedding",
      "an Embedding was used before ps::ServedTraining has begun: its rows lie on servers");
  ARGOSY_CHECK(ids.scalar_type() == at::kLong && ids.is_cpu(),
               "ps.embedding",
               "expected ids of i64 on the CPU, got {} on {}",
               c10::toString(ids.scalar_type()),
               ids.device().str());
  return rows_->pull(ids.contiguous(), options_.padding_idx);
}

at::Tensor EmbeddingRows::pull(const at::Tensor& ids, std::optional<int64_t> padding) {
  const std::span<const int64_t> all(ids.data_ptr<int64_t>(), static_cast<size_t>(ids.numel()));
  std::vector<uint64_t> wanted;
  std::vector<size_t> places;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != padding) {
      wanted.push_back(static_cast<uint64_t>(all[i]));
      places.push_back(i);
    }
  }
  const auto dim = client_.tables().sparse[table_].dim;
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.push_back(static_cast<int64_t>(dim));
  at::Tensor rows = at::zeros(shape, at::kFloat);
  const IdDeal deal(wanted);
  std::vector<float> padded(places.size() < all.size() ? wanted.size() * dim : 0);
  const std::span<float> whole(rows.data_ptr<float>(), static_cast<size_t>(rows.numel()));
  const TableClient::Rows read{
      .table = table_, .ids = deal, .out = padded.empty() ? whole : std::span<float>(padded)};
  if (!wanted.empty()) {
    client_.pull({&read, 1});
  }
  for (size_t i = 0; i < (padded.empty() ? 0 : places.size()); ++i) {
    std::copy_n(&padded[i * dim], dim, &whole[places[i] * dim]);
  }
  if (c10::GradMode::is_enabled()) {
    rows.requires_grad_();
    rows.register_hook(
        [self = shared_from_this(), wanted = std::move(wanted), places = std::move(places)](
            const at::Tensor& gradient) { self->keep(wanted, places, gradient); });
  }
  return rows;
}

void EmbeddingRows::keep(std::span<const uint64_t> ids,
                         std::span<const size_t> places,
                         const at::Tensor& gradient) {
  const at::Tensor whole = gradient.contiguous();
  const auto dim = static_cast<size_t>(whole.size(-1));
  const float* const data = whole.data_ptr<float>();
  const std::lock_guard lock(mutex_);
  pending_.ids.insert(pending_.ids.end(), ids.begin(), ids.end());
  for (const size_t place : places) {
    pending_.gradients.insert(
        pending_.gradients.end(), data + place * dim, data + (place + 1) * dim);
  }
}

EmbeddingRows::Pending EmbeddingRows::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(pending_, {});
}

}  // namespace argosy::ps
