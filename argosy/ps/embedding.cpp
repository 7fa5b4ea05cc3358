#include "argosy/ps/embedding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/comm/buffer.h"
#include "argosy/ps/embedding_rows.h"
#include "argosy/ps/id_deal.h"

namespace argosy::ps {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options) : options_(std::move(options)) {
  ARGOSY_CHECK(options_.dim > 0, "ps.embedding", "dim must be 1 or more, got {}", options_.dim);
}

void EmbeddingImpl::check(const at::Tensor& ids) const {
  ARGOSY_CHECK(
      rows_ != nullptr,
      "ps.embedding",
      "an Embedding was used before ps::ServedTraining has begun: its rows lie on servers");
  ARGOSY_CHECK(
      ids.scalar_type() == at::kLong && ids.is_cpu(),
      "ps.embedding",
      "expected ids of i64 on the CPU, got {} on {}: ids.to(torch::kInt64) is of that type",
      comm::dtype_name(ids),
      ids.device().str());
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) {
  check(ids);
  return rows_->pull(ids.contiguous(), options_.padding_idx);
}

at::Tensor EmbeddingImpl::look_up(const at::Tensor& ids, const ClickCounts& counts) {
  check(ids);
  for (const at::Tensor& one : {counts.shows, counts.clicks}) {
    ARGOSY_CHECK(
        !one.defined() ||
            (one.scalar_type() == at::kFloat && one.is_cpu() && one.sizes() == ids.sizes()),
        "ps.embedding",
        "shows and clicks: expected f32 on the CPU of shape [{}], as the ids, got {} on {} "
        "of [{}]",
        fmt::join(ids.sizes(), ", "),
        comm::dtype_name(one),
        one.device().str(),
        fmt::join(one.sizes(), ", "));
  }
  ARGOSY_CHECK(!counts.shows.defined() || (counts.shows > 0).all().item<bool>(),
               "ps.embedding",
               "shows: expected numbers above 0, by which gradients are divided, got {}",
               counts.shows.min().item<float>());
  ARGOSY_CHECK(!counts.clicks.defined() || (counts.clicks >= 0).all().item<bool>(),
               "ps.embedding",
               "clicks: expected 0 or more, got {}",
               counts.clicks.min().item<float>());
  return rows_->pull(ids.contiguous(), options_.padding_idx, counts);
}

void EmbeddingImpl::prefetch(const at::Tensor& ids) {
  check(ids);
  rows_->prefetch(ids.contiguous(), options_.padding_idx);
}

namespace {

/// Returns the numbers at some places, none of an undefined tensor.
std::vector<float> chosen(const at::Tensor& numbers, const std::vector<size_t>& places) {
  std::vector<float> all;
  if (numbers.defined()) {
    const at::Tensor whole = numbers.contiguous();
    for (const size_t place : places) {
      all.push_back(whole.data_ptr<float>()[place]);
    }
  }
  return all;
}

/// Appends to what batches before gave, `count` together, or nothing while nobody gave any.
void append_counts(std::vector<float>& to,
                   size_t count,
                   const std::vector<float>& more,
                   size_t more_count,
                   float not_given) {
  if (to.empty() && more.empty()) {
    return;
  }
  to.resize(count, not_given);
  to.insert(to.end(), more.begin(), more.end());
  to.resize(count + more_count, not_given);
}

}  // namespace

EmbeddingRows::EmbeddingRows(TableClient& client, uint32_t table, const Options& options)
    : client_(client),
      table_(table),
      options_(options),
      local_(options.local ? std::make_unique<LocalRows>(client, table) : nullptr) {}

EmbeddingRows::Batch EmbeddingRows::begin(const at::Tensor& ids, std::optional<int64_t> padding) {
  const std::span<const int64_t> all(ids.data_ptr<int64_t>(), static_cast<size_t>(ids.numel()));
  Batch batch{.ids = ids};
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != padding) {
      batch.wanted.push_back(static_cast<uint64_t>(all[i]));
      batch.places.push_back(i);
    }
  }
  batch.deal = std::make_unique<IdDeal>(client_.deal(batch.wanted));
  if (!batch.wanted.empty() && local_ == nullptr) {
    const TableClient::Rows read{.table = table_, .ids = *batch.deal};
    batch.reading = client_.begin_pull({&read, 1});
  }
  return batch;
}

at::Tensor EmbeddingRows::finish(Batch& batch) {
  const auto dim = client_.tables().sparse[table_].dim;
  std::vector<int64_t> shape = batch.ids.sizes().vec();
  shape.push_back(static_cast<int64_t>(dim));
  at::Tensor rows = at::zeros(shape, at::kFloat);
  const bool has_padding = std::ssize(batch.places) < batch.ids.numel();
  std::vector<float> padded(has_padding ? batch.wanted.size() * dim : 0);
  const std::span<float> whole(rows.data_ptr<float>(), static_cast<size_t>(rows.numel()));
  const TableClient::Rows read{
      .table = table_, .ids = *batch.deal, .out = has_padding ? std::span<float>(padded) : whole};
  if (local_ != nullptr) {
    local_->read(*batch.deal, read.out);
  } else if (!batch.wanted.empty()) {
    batch.seen = client_.finish(batch.reading, {&read, 1});
  }
  for (size_t i = 0; i < (has_padding ? batch.places.size() : 0); ++i) {
    std::copy_n(&padded[i * dim], dim, &whole[batch.places[i] * dim]);
  }
  return rows;
}

void EmbeddingRows::prefetch(const at::Tensor& ids, std::optional<int64_t> padding) {
  if (options_.ahead) {
    ahead_ = begin(ids.clone(), padding);  // the caller may change them
  }
}

at::Tensor EmbeddingRows::pull(const at::Tensor& ids,
                               std::optional<int64_t> padding,
                               const ClickCounts& counts) {
  ARGOSY_CHECK(
      local_ == nullptr || !(counts.shows.defined() || counts.clicks.defined()),
      "ps.embedding",
      "in kGeo workers send differences of rows, without shows and clicks: call forward(), "
      "or take another mode");
  std::optional<Batch> batch = std::exchange(ahead_, std::nullopt);
  if (!batch || !at::equal(batch->ids, ids)) {
    batch = begin(ids, padding);
  }
  batch->shows = chosen(counts.shows, batch->places);
  batch->clicks = chosen(counts.clicks, batch->places);
  if (counts.clicks.defined() && !counts.shows.defined()) {
    batch->shows.assign(batch->wanted.size(), 1.0F);  // each place was shown
  }
  at::Tensor rows = finish(*batch);
  if (c10::GradMode::is_enabled()) {
    if (options_.keeps_read) {
      batch->rows = rows.detach();  // the same memory, without a cycle through the hook
    }
    rows.requires_grad_();
    rows.register_hook(
        [self = shared_from_this(), read = std::make_shared<Batch>(std::move(*batch))](
            const at::Tensor& gradient) { self->keep(*read, gradient); });
  }
  return rows;
}

void EmbeddingRows::keep(const Batch& batch, const at::Tensor& gradient) {
  if (batch.wanted.empty()) {
    return;  // it has seen nothing
  }
  const at::Tensor whole = gradient.contiguous();
  const auto dim = static_cast<size_t>(whole.size(-1));
  const auto append = [&](std::vector<float>& to, const at::Tensor& all) {
    const float* const data = all.data_ptr<float>();
    for (const size_t place : batch.places) {
      to.insert(to.end(), data + place * dim, data + (place + 1) * dim);
    }
  };
  const std::lock_guard lock(mutex_);
  const size_t before = pending_.ids.size();
  append_counts(pending_.shows, before, batch.shows, batch.wanted.size(), 1);
  append_counts(pending_.clicks, before, batch.clicks, batch.wanted.size(), 0);
  pending_.ids.insert(pending_.ids.end(), batch.wanted.begin(), batch.wanted.end());
  append(pending_.gradients, whole);
  if (batch.rows.defined()) {
    append(pending_.read, batch.rows);
  }
  pending_.seen.resize(batch.seen.size(), kSawAll);
  std::ranges::transform(
      pending_.seen, batch.seen, pending_.seen.begin(), [](uint64_t a, uint64_t b) {
        return std::min(a, b);
      });
}

EmbeddingRows::Pending EmbeddingRows::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(pending_, {});
}

}  // namespace argosy::ps
