#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy::bench {

/// Time of libtorch's operators while it lives, in all threads, without that of operators inside
/// them. One at a time.
class OpProfile {
 public:
  struct Row {
    std::string name{};  ///< "aten::mkldnn_convolution", "MkldnnConvolutionBackward0"
    double ms = 0;
    int64_t calls = 0;
  };

  OpProfile();
  ~OpProfile();
  OpProfile(const OpProfile&) = delete;
  OpProfile& operator=(const OpProfile&) = delete;
  OpProfile(OpProfile&&) = delete;
  OpProfile& operator=(OpProfile&&) = delete;

  /// The most expensive first.
  [[nodiscard]] static std::vector<Row> rows();

 private:
  uint64_t handle_;
};

}  // namespace argosy::bench
