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
#include "argosy/comm/collectives.h"
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
  at::Tensor gradient{};      // the bucket's view, where the average goes
  at::Tensor values{};        // [rows, cols], with the error of the last update
  at::Tensor transposed_p{};  // [rank, rows] in the flat memory; or the gradient's copy there
};

struct PowerSgd::Pass {
  std::vector<Part> parts{};
  at::TensorOptions type{};
  comm::AllReduceOptions options{};
};

PowerSgd::PowerSgd(const engine::NamedTensors& parameters,
                   const comm::Group& group,
                   const PowerSgdOptions& options)
    : options_(options), group_(group), first_(parameters.front().first) {
  options_.validate();
  for (const auto& [name, parameter] : parameters) {
    if (parameter.dim() < 2 || parameter.numel() == 0 || !is_wide(parameter)) {
      continue;
    }
    Matrix matrix{.name = name,
                  .rows = parameter.size(0),
                  .number = matrices_.size(),
                  .type = parameter.options().requires_grad(false)};
    matrix.cols = parameter.numel() / matrix.rows;
    matrix.rank = std::min({options_.matrix_approximation_rank, matrix.rows, matrix.cols});
    const auto compressed = static_cast<double>((matrix.rows + matrix.cols) * matrix.rank);
    if (compressed * options_.min_compression_rate < static_cast<double>(parameter.numel())) {
      places_.emplace(parameter.unsafeGetTensorImpl(), matrices_.size());
      matrices_.push_back(std::move(matrix));
    }
  }
}

PowerSgd::Matrix* PowerSgd::find(const at::Tensor& parameter) {
  const auto found = places_.find(parameter.unsafeGetTensorImpl());
  return found == places_.end() ? nullptr : &matrices_[found->second];
}

BucketWork PowerSgd::reduce(GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  if (steps_ < options_.start_power_sgd_iter) {
    return average()(bucket);
  }
  const auto pass = std::make_shared<Pass>();
  pass->type = bucket.buffer().options();
  pass->options = {
      .op = comm::ReduceOp::kAvg, .timeout = bucket.timeout(), .place = bucket.place()};
  const std::vector<at::Tensor> parameters = bucket.parameters();
  int64_t elements = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& gradient = bucket.gradients()[i];
    Matrix* const matrix = find(parameters[i]);
    pass->parts.push_back({.matrix = matrix, .gradient = gradient});
    elements += matrix == nullptr ? gradient.numel() : matrix->rank * matrix->rows;
  }
  const at::Tensor flat = at::empty({elements}, pass->type);
  int64_t offset = 0;
  for (Part& part : pass->parts) {
    Matrix* const matrix = part.matrix;
    if (matrix == nullptr) {
      part.transposed_p = flat.narrow(0, offset, part.gradient.numel()).view(part.gradient.sizes());
      part.transposed_p.copy_(part.gradient);
      offset += part.gradient.numel();
      continue;
    }
    part.transposed_p =
        flat.narrow(0, offset, matrix->rank * matrix->rows).view({matrix->rank, matrix->rows});
    offset += part.transposed_p.numel();
    begin(*matrix, part);
  }
  return {comm::all_reduce_async(flat, group_, pass->options), [this, pass] { finish(*pass); }};
}

/// Pᵀ = Qᵀ · Mᵀ.
void PowerSgd::begin(Matrix& matrix, Part& part) const {
  const at::Tensor gradient = part.gradient.reshape({matrix.rows, matrix.cols});
  part.values = options_.use_error_feedback && matrix.error.defined() ? gradient + matrix.error
                                                                      : gradient.clone();
  at::Tensor& q = matrix.transposed_q;
  const uint64_t seed = static_cast<uint64_t>(options_.random_seed) ^ (matrix.number << 40U) ^
                        static_cast<uint64_t>(steps_);
  if (!q.defined() || !options_.warm_start) {
    q = at::empty({matrix.rank, matrix.cols}, gradient.options());
    traffic::fill_random(q, seed);
  }
  const std::vector<int64_t> empty = traffic::orthonormalize_rows(q);
  for (const int64_t row : empty) {  // a direction that no gradient had; try another one
    traffic::fill_random(q.select(0, row), seed ^ (static_cast<uint64_t>(row + 1) << 32U));
  }
  if (!empty.empty()) {
    traffic::orthonormalize_rows(q);
  }
  part.transposed_p.copy_(at::mm(q, part.values.t()));
}

/// Qᵀ = Pᵀ · M, and what the two leave out.
void PowerSgd::finish(const Pass& pass) const {
  const at::NoGradGuard no_grad;
  int64_t elements = 0;
  for (const Part& part : pass.parts) {
    elements += part.matrix == nullptr ? 0 : part.matrix->rank * part.matrix->cols;
  }
  const at::Tensor flat = at::empty({elements}, pass.type);
  int64_t offset = 0;
  std::vector<at::Tensor> all_q;
  for (const Part& part : pass.parts) {
    if (part.matrix == nullptr) {
      part.gradient.copy_(part.transposed_p);
      continue;
    }
    traffic::orthonormalize_rows(part.transposed_p);
    const int64_t size = part.matrix->rank * part.matrix->cols;
    all_q.push_back(flat.narrow(0, offset, size).view({part.matrix->rank, part.matrix->cols}));
    all_q.back().copy_(at::mm(part.transposed_p, part.values));
    offset += size;
  }
  if (elements > 0) {
    comm::all_reduce(flat, group_, pass.options);
  }
  auto q = all_q.begin();
  for (const Part& part : pass.parts) {
    if (part.matrix == nullptr) {
      continue;
    }
    part.matrix->transposed_q = q->clone();
    const at::Tensor product = at::mm(part.transposed_p.t(), *q++);
    part.gradient.copy_(product.view(part.gradient.sizes()));
    if (options_.use_error_feedback) {
      part.matrix->error = part.values.sub_(product);
    }
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
      entries.set(named("error"), traffic::rows_of_ranks(matrix.error, group_));
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
      matrix.error = at::empty({matrix.rows, matrix.cols}, matrix.type);
      traffic::take_row(matrix.error, *error, group_, matrix.name + "/powersgd.error");
    }
  }
}

}  // namespace argosy::parallel
