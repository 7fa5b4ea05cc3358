#include "argosy/optim/finite.h"

#include <limits>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace argosy::optim {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(FirstNonfinite, FindsItInEachTypeAtEachPlace) {
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const int64_t size : {1, 2, 63, 64, 65, 200, 1025}) {
      at::Tensor data = torch::full({size}, 3.0, type);
      EXPECT_FALSE(first_nonfinite(data).has_value()) << type << ' ' << size;
      for (const double odd : {kInf, -kInf, std::nan("")}) {
        for (const int64_t at : {int64_t{0}, size / 2, size - 1}) {
          at::Tensor one = data.clone();
          one[at] = odd;
          one[size - 1] = odd;
          EXPECT_EQ(first_nonfinite(one), at) << type << ' ' << size << ' ' << odd;
        }
      }
    }
  }
}

TEST(FirstNonfinite, LargeAndSmallNumbersAreFinite) {
  const at::Tensor data = torch::tensor({std::numeric_limits<float>::max(),
                                         std::numeric_limits<float>::lowest(),
                                         std::numeric_limits<float>::denorm_min(),
                                         -0.0F});
  EXPECT_FALSE(first_nonfinite(data.repeat({50})).has_value());
}

TEST(FirstNonfinite, CountsInTheOrderOfMemory) {
  at::Tensor image = torch::zeros({1, 2, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  image[0][1][0][0] = kInf;
  EXPECT_EQ(first_nonfinite(image), 1);
}

TEST(FirstNonfinite, PassesByWhatItCannotRead) {
  EXPECT_FALSE(first_nonfinite(torch::ones({3}, torch::kLong)).has_value());
  EXPECT_FALSE(first_nonfinite(torch::full({4, 4}, kInf).slice(1, 0, 2)).has_value());
}

}  // namespace
}  // namespace argosy::optim
