#include "argosy/metrics/mean_error.h"

#include <cmath>
#include <limits>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/metrics/reduce_counts.h"

namespace argosy::metrics {
namespace {

constexpr const char* where(ErrorKind kind) {
  return kind == ErrorKind::kSquared ? "metrics.MeanSquaredError" : "metrics.MeanAbsoluteError";
}

at::Tensor doubles(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, at::kDouble).contiguous();
}

}  // namespace

template <ErrorKind K>
void MeanError<K>::update(const at::Tensor& output, const at::Tensor& target) {
  ARGOSY_CHECK(output.defined() && target.defined() && output.sizes() == target.sizes(),
               where(K),
               "expected output and target of one shape, got {} and {}. A target [N] for an "
               "output [N, 1]: target.unsqueeze(1)",
               text::shape(output),
               text::shape(target));
  const at::Tensor outputs = doubles(output);
  const at::Tensor targets = doubles(target);
  const auto* y = outputs.data_ptr<double>();
  const auto* t = targets.data_ptr<double>();
  for (int64_t i = 0; i < outputs.numel(); ++i) {
    const double error = y[i] - t[i];
    sum_.add(K == ErrorKind::kSquared ? error * error : std::abs(error));
  }
  count_ += outputs.numel();
}

template <ErrorKind K>
double MeanError<K>::compute(const comm::Group& group) const {
  const double sum = sum_.all_reduced(group).value();
  const int64_t elements = count(group);
  return elements == 0 ? std::numeric_limits<double>::quiet_NaN()
                       : sum / static_cast<double>(elements);
}

template <ErrorKind K>
int64_t MeanError<K>::count(const comm::Group& group) const {
  return all_reduced({count_}, group)[0];
}

template <ErrorKind K>
std::vector<std::string> MeanError<K>::names() const {
  return {K == ErrorKind::kSquared ? "mse" : "mae"};
}

template <ErrorKind K>
State MeanError<K>::state() const {
  State state = sum_.state();
  state.push_back(count_);
  return state;
}

template <ErrorKind K>
void MeanError<K>::load_state(const State& state) {
  StateReader reader(where(K), state);
  MeanError loaded;
  loaded.sum_.load_state(reader.take(static_cast<int64_t>(sum_.state().size())));
  loaded.count_ = reader.next_count();
  reader.end();
  *this = loaded;
}

template <ErrorKind K>
void MeanError<K>::merge_state(const State& other) {
  MeanError more;
  more.load_state(other);
  MeanError both = *this;
  merge_counts(where(K), {&both.count_, 1}, {&more.count_, 1});
  both.sum_.merge_state(more.sum_.state());
  *this = both;
}

template class MeanError<ErrorKind::kSquared>;
template class MeanError<ErrorKind::kAbsolute>;

}  // namespace argosy::metrics
