#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/random.h"
#include "argosy/image/image.h"
#include "argosy/vision/transforms/picture.h"

// Shared by the tests of the transforms.
namespace argosy::vision::test {

/// Returns a value of the golden files' picture (tests/golden/transforms/generate.py), where each
/// is different.
inline uint8_t value(int y, int x, int c) {
  return static_cast<uint8_t>((x * 9 + y * 5 + c * 40 + (x > 6 ? x * y * (c + 3) * 37 % 101 : 0)) %
                              256);
}

inline image::Image bytes(image::Size size = {11, 14}, image::Order order = image::Order::kRgb) {
  image::Image out(size, order);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < out.channels(); ++c) {
        out.row<uint8_t>(y)[x * out.channels() + c] = value(y, x, c);
      }
    }
  }
  return out;
}

/// Returns the same picture in f32, 0 to 1.
inline image::Image floats(image::Size size = {11, 14}, image::Order order = image::Order::kRgb) {
  const image::Image from = bytes(size, order);
  image::Image out(size, order, image::Type::kF32);
  for (size_t i = 0; i < from.total_bytes(); ++i) {
    out.row<float>(0)[i] = static_cast<float>(from.row<uint8_t>(0)[i]) / 255.0F;
  }
  return out;
}

inline bool equal(const image::Image& a, const image::Image& b) {
  return a.size() == b.size() && a.order() == b.order() && a.type() == b.type() &&
         std::memcmp(a.data(), b.data(), a.total_bytes()) == 0;
}

inline at::Tensor points(const std::vector<std::vector<float>>& xy) {
  at::Tensor out = torch::empty({static_cast<int64_t>(xy.size()), 2});
  for (size_t i = 0; i < xy.size(); ++i) {
    out[static_cast<int64_t>(i)][0] = xy[i].at(0);
    out[static_cast<int64_t>(i)][1] = xy[i].at(1);
  }
  return out;
}

inline data::Random stream(int64_t index = 0) {
  return {7, 0, index};
}

/// Returns the message of the UsageError that `f` throws. The test fails if it throws none.
template <typename F>
std::string complaint(const F& f) {
  try {
    static_cast<void>(f());
  } catch (const UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected a UsageError";
  return "";
}

}  // namespace argosy::vision::test
