#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/random.h"

#include "tests/support/error_text.h"

// Helpers of the loader's tests.
namespace argosy::data::loader_test {

/// Gives the process several intra-op threads, so that a loader which let them in would show. The
/// default may be one.
class FourThreads final {
 public:
  FourThreads() { at::set_num_threads(4); }
  ~FourThreads() { at::set_num_threads(before_); }
  FourThreads(const FourThreads&) = delete;
  FourThreads& operator=(const FourThreads&) = delete;

 private:
  int before_ = at::get_num_threads();
};

/// Crops at random, adds noise, and reduces by an operator that could run on several threads.
struct Augmented {
  int64_t n = 53;
  int64_t size() const { return n; }
  std::tuple<at::Tensor, int64_t> get(int64_t index, Random& random) const {
    const at::Tensor base = torch::arange(100000, torch::kFloat) * static_cast<double>(index + 1);
    const int64_t top = random.integer(0, 1000);
    const at::Tensor crop = base.slice(0, top, top + 98000);
    return {torch::stack({crop.sum(), crop.std(), torch::tensor(random.normal(), torch::kFloat)}),
            index};
  }
};

using Epoch = std::vector<std::tuple<at::Tensor, at::Tensor>>;

template <typename Loader>
Epoch run_epoch(Loader& loader) {
  Epoch epoch;
  for (auto& [x, y] : loader) {
    epoch.emplace_back(x, y);  // kept, not copied: the pool must leave them alone
  }
  return epoch;
}

inline void expect_same(const Epoch& a, const Epoch& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::equal(std::get<0>(a[i]), std::get<0>(b[i]))) << "batch " << i;
    EXPECT_TRUE(at::equal(std::get<1>(a[i]), std::get<1>(b[i]))) << "batch " << i;
  }
}

template <typename F>
std::string usage_error_of(F f) {
  return argosy::test::error_text<UsageError>(f);
}

/// What a pass over all batches throws.
template <typename Loader>
std::string data_error_of(Loader&& loader) {
  return argosy::test::error_text<DataError>([&] {
    for ([[maybe_unused]] auto& batch : loader) {
    }
  });
}

}  // namespace argosy::data::loader_test
