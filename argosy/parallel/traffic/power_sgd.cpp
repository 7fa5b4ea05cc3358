#include "argosy/parallel/traffic/power_sgd.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/parallel/traffic/leaf_average.h"
#include "argosy/parallel/traffic/orthonormal.h"
#include "argosy/parallel/traffic/rank_state.h"

namespace argosy::parallel {
namespace {

constexpr const char* kPrefix = "powersgd.";

bool is_wide(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
}

}  // namespace

/// A gradient on its way. Without a matrix it travels as it is.
struct PowerSgd::Part {
  Matrix* matrix = nullptr;
  at::Tensor gradient{};             // the bucket's view, where the average goes
  std::vector<at::Tensor> values{};  // [rows, cols] of each virtual rank, with the last error
  int64_t offset = 0;                // in flat memory: Pᵀ, or the gradient
};

struct PowerSgd::Pass {
  std::vector<Part> parts{};
  int64_t elements = 0;  // of flat memory
  at::TensorOptions type{};
  comm::AllReduceOptions options{};
  at::Tensor average{};
};

PowerSgd::PowerSgd(const engine::NamedTensors& parameters,
                   const comm::Group& group,
                   const PowerSgdOptions& options)
    : options_(options),
      group_(group),
      deal_(traffic::one_each(group)),
      first_(parameters.front().first) {
  options_.validate();
  int64_t elements = 0, left = 0, sent = 0;  // of the model, of those sent whole, of the matrices
  for (const auto& [name, parameter] : parameters) {
    elements += parameter.numel();
    left += parameter.numel();
    if (parameter.dim() < 2 || parameter.numel() == 0 || !is_wide(parameter)) {
      continue;
    }
    Matrix matrix{.name = name,
                  .rows = parameter.size(0),
                  .number = matrices_.size(),
                  .type = parameter.options().requires_grad(false)};
    matrix.cols = parameter.numel() / matrix.rows;
    matrix.rank = std::min({options_.matrix_approximation_rank, matrix.rows, matrix.cols});
    const int64_t compressed = (matrix.rows + matrix.cols) * matrix.rank;
    if (static_cast<double>(compressed) * options_.min_compression_rate <
        static_cast<double>(parameter.numel())) {
      left -= parameter.numel();
      sent += compressed;
      places_.emplace(parameter.unsafeGetTensorImpl(), matrices_.size());
      matrices_.push_back(std::move(matrix));
    }
  }
  if (group_.rank() == 0) {
    log::info(
        "[parallel.power_sgd] from update {} on, {} of {} gradients are sent as matrices of rank "
        "{}: {} elements instead of {}",
        options_.start_power_sgd_iter + 1,
        matrices_.size(),
        parameters.size(),
        options_.matrix_approximation_rank,
        left + sent,
        elements);
  }
}

PowerSgd::Matrix* PowerSgd::find(const at::Tensor& parameter) {
  const auto found = places_.find(parameter.unsafeGetTensorImpl());
  return found == places_.end() ? nullptr : &matrices_[found->second];
}

void PowerSgd::deal_to(const std::shared_ptr<const comm::LeafDeal>& deal) {
  const auto remembers = [](const Matrix& matrix) { return matrix.error.defined(); };
  traffic::check_can_deal("power_sgd", *deal_, *deal, std::ranges::any_of(matrices_, remembers));
  deal_ = deal;
}

BucketWork PowerSgd::reduce(GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  if (steps_ < options_.start_power_sgd_iter || deal_->leaves() == 1) {
    return traffic::average_bucket(bucket, deal_);
  }
  const std::shared_ptr<Pass> pass = begin(bucket);
  std::vector<at::Tensor> leaves;
  for (size_t leaf = 0; leaf < bucket.leaves(); ++leaf) {
    leaves.push_back(begin_leaf(*pass, bucket, leaf));
  }
  traffic::LeafAverage all = traffic::average_leaves(
      std::move(leaves), at::empty({pass->elements}, pass->type), deal_, group_, pass->options);
  pass->average = all.result;
  return {std::move(all.work), [this, pass] { finish(*pass); }};
}

/// Where each gradient lies in flat memory.
std::shared_ptr<PowerSgd::Pass> PowerSgd::begin(const GradBucket& bucket) {
  auto pass = std::make_shared<Pass>();
  pass->type = bucket.buffer().options();
  pass->options = {.timeout = bucket.timeout(), .place = bucket.place()};
  const std::vector<at::Tensor> parameters = bucket.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& gradient = bucket.gradients()[i];
    Matrix* const matrix = find(parameters[i]);
    if (matrix != nullptr) {
      prepare_q(*matrix, pass->type);
    }
    pass->parts.push_back({.matrix = matrix, .gradient = gradient, .offset = pass->elements});
    pass->elements += matrix == nullptr ? gradient.numel() : matrix->rank * matrix->rows;
  }
  return pass;
}

/// Orthonormal columns, from the last approximation or at random.
void PowerSgd::prepare_q(Matrix& matrix, const at::TensorOptions& type) const {
  at::Tensor& q = matrix.transposed_q;
  const uint64_t seed = static_cast<uint64_t>(options_.random_seed) ^ (matrix.number << 40U) ^
                        static_cast<uint64_t>(steps_);
  if (!q.defined() || !options_.warm_start) {
    q = at::empty({matrix.rank, matrix.cols}, type);
    traffic::fill_random(q, seed);
  }
  const std::vector<int64_t> empty = traffic::orthonormalize_rows(q);
  for (const int64_t row : empty) {  // a direction that no gradient had; try another one
    traffic::fill_random(q.select(0, row), seed ^ (static_cast<uint64_t>(row + 1) << 32U));
  }
  if (!empty.empty()) {
    traffic::orthonormalize_rows(q);
  }
}

/// What a virtual rank sends: Pᵀ = Qᵀ · Mᵀ of each matrix, and the other gradients. The products
/// are those that it makes in a process of its own.
at::Tensor PowerSgd::begin_leaf(Pass& pass, const GradBucket& bucket, size_t leaf) const {
  at::Tensor flat = at::empty({pass.elements}, pass.type);
  const std::vector<at::Tensor> gradients = bucket.gradients_of(leaf);
  for (size_t i = 0; i < gradients.size(); ++i) {
    Part& part = pass.parts[i];
    if (part.matrix == nullptr) {
      flat.narrow(0, part.offset, gradients[i].numel())
          .view(gradients[i].sizes())
          .copy_(gradients[i]);
      continue;
    }
    const Matrix& matrix = *part.matrix;
    const at::Tensor gradient = gradients[i].reshape({matrix.rows, matrix.cols});
    const bool adds_error = options_.use_error_feedback && matrix.error.defined();
    part.values.push_back(
        adds_error ? gradient + matrix.error.select(0, static_cast<int64_t>(leaf)).view_as(gradient)
                   : gradient.clone());
    flat.narrow(0, part.offset, matrix.rank * matrix.rows)
        .view({matrix.rank, matrix.rows})
        .copy_(at::mm(matrix.transposed_q, part.values.back().t()));
  }
  return flat;
}

void PowerSgd::finish(const Pass& pass) const {
  const at::NoGradGuard no_grad;
  for (const Part& part : pass.parts) {
    const Matrix* const matrix = part.matrix;
    const int64_t size = matrix == nullptr ? part.gradient.numel() : matrix->rank * matrix->rows;
    const at::Tensor average = pass.average.narrow(0, part.offset, size);
    if (matrix == nullptr) {
      part.gradient.copy_(average.view(part.gradient.sizes()));
    } else {
      traffic::orthonormalize_rows(average.view({matrix->rank, matrix->rows}));
    }
  }
  average_q(pass);
}

/// Qᵀ = Pᵀ · M.
void PowerSgd::average_q(const Pass& pass) const {
  const auto p_of = [&](const Part& part) {
    return pass.average.narrow(0, part.offset, part.matrix->rank * part.matrix->rows)
        .view({part.matrix->rank, part.matrix->rows});
  };
  const auto q_in = [](const at::Tensor& flat, int64_t& offset, const Matrix& matrix) {
    const int64_t begin = std::exchange(offset, offset + matrix.rank * matrix.cols);
    return flat.narrow(0, begin, offset - begin).view({matrix.rank, matrix.cols});
  };
  int64_t elements = 0;
  for (const Part& part : pass.parts) {
    elements += part.matrix == nullptr ? 0 : part.matrix->rank * part.matrix->cols;
  }
  if (elements == 0) {
    return;
  }
  const at::Tensor like = at::empty({elements}, pass.type);
  std::vector<at::Tensor> leaves;
  const int64_t count = traffic::leaves_of(*deal_, group_.rank()).size();
  for (size_t leaf = 0; leaf < static_cast<size_t>(count); ++leaf) {
    leaves.push_back(at::empty_like(like));
    int64_t offset = 0;
    for (const Part& part : pass.parts) {
      if (part.matrix != nullptr) {
        q_in(leaves.back(), offset, *part.matrix).copy_(at::mm(p_of(part), part.values[leaf]));
      }
    }
  }
  const traffic::LeafAverage all =
      traffic::average_leaves(std::move(leaves), like, deal_, group_, pass.options);
  all.work.wait();
  int64_t offset = 0;
  for (const Part& part : pass.parts) {
    if (part.matrix != nullptr) {
      finish(part, p_of(part), q_in(all.result, offset, *part.matrix));
    }
  }
}

/// The product is the average, and what it lacks of a virtual rank's values is its error.
void PowerSgd::finish(const Part& part, const at::Tensor& p, const at::Tensor& q) const {
  Matrix& matrix = *part.matrix;
  matrix.transposed_q = q.clone();
  const at::Tensor product = at::mm(p.t(), q);
  part.gradient.copy_(product.view(part.gradient.sizes()));
  if (!options_.use_error_feedback) {
    return;
  }
  if (!matrix.error.defined()) {
    matrix.error = at::empty({std::ssize(part.values), matrix.rows * matrix.cols}, matrix.type);
  }
  for (size_t leaf = 0; leaf < part.values.size(); ++leaf) {
    at::Tensor error = matrix.error.select(0, static_cast<int64_t>(leaf)).view_as(product);
    at::sub_out(error, part.values[leaf], product);
  }
}

void PowerSgd::step(optim::OptimizerImpl& inner) {
  inner.step();
  ++steps_;
}

void PowerSgd::add_state(optim::OptimizerState& state) const {
  const auto named = [](const char* name) { return std::string(kPrefix) + name; };
  traffic::entries_of(state, first_).set(named("steps"), traffic::count_tensor(steps_));
  for (const Matrix& matrix : matrices_) {
    if (!matrix.transposed_q.defined()) {
      continue;
    }
    engine::StateDict& entries = traffic::entries_of(state, matrix.name);
    entries.set(named("q"), matrix.transposed_q);
    if (matrix.error.defined()) {
      entries.set(named("error"), traffic::rows_of_ranks(matrix.error, deal_, group_));
    }
  }
}

void PowerSgd::take_state(optim::OptimizerState& state) {
  const auto taken = traffic::taken_out(state, kPrefix);
  steps_ = 0;
  for (Matrix& matrix : matrices_) {
    matrix.error = matrix.transposed_q = at::Tensor();
  }
  if (const auto found = taken.find(first_); found != taken.end()) {
    steps_ = traffic::count_in(found->second, "steps");
  }
  for (Matrix& matrix : matrices_) {
    const auto found = taken.find(matrix.name);
    if (found == taken.end() || !found->second.contains("q")) {
      continue;
    }
    const at::Tensor& q = found->second.at("q");
    matrix.transposed_q = at::empty({matrix.rank, matrix.cols}, matrix.type);
    traffic::take_whole(matrix.transposed_q, q, matrix.name + "/powersgd.q");
    if (const at::Tensor* error = found->second.find("error")) {
      const int64_t leaves = traffic::leaves_of(*deal_, group_.rank()).size();
      matrix.error = at::empty({leaves, matrix.rows * matrix.cols}, matrix.type);
      traffic::take_rows(matrix.error, *error, deal_, group_, matrix.name + "/powersgd.error");
    }
  }
}

}  // namespace argosy::parallel
