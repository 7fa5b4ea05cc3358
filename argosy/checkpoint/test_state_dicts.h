#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "argosy/engine/state_dict.h"

namespace argosy::checkpoint::testing {

inline std::vector<std::string> names_of(const engine::StateDict& dict) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : dict) {
    names.push_back(name);
  }
  return names;
}

/// True for the same names in the same order with the same types and bits.
inline void expect_equal(const engine::StateDict& a, const engine::StateDict& b) {
  ASSERT_EQ(names_of(a), names_of(b));
  for (const auto& [name, tensor] : a) {
    EXPECT_EQ(tensor.scalar_type(), b.at(name).scalar_type()) << name;
    EXPECT_TRUE(torch::equal(tensor, b.at(name))) << name;
  }
}

}  // namespace argosy::checkpoint::testing
