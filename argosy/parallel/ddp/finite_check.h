#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/parallel/ddp/options.h"

namespace argosy::parallel::ddp {

/// Whose gradients they are.
struct Whose {
  uint32_t update = 0;
  int64_t leaf = 0;  ///< the virtual rank
  int rank = 0;      ///< of the group
};

/// Finds the first gradient of this process that is not finite, before it is averaged. It looks at
/// a device's gradients only where it is to stop, for it waits for each of them.
class FiniteCheck final {
 public:
  explicit FiniteCheck(NonfiniteGradient wanted) : wanted_(wanted) {}

  /// True if there is still something to look for.
  [[nodiscard]] bool looks() const {
    return wanted_ != NonfiniteGradient::kIgnore && !told_ && found_.empty();
  }
  [[nodiscard]] bool stops() const { return wanted_ == NonfiniteGradient::kStop; }
  [[nodiscard]] bool told() const { return told_; }
  /// Looks at the gradient of the parameter of this name. While a scaler of the loss is at work,
  /// which skips such updates, it says nothing. Else tell() says it, at the end of the pass.
  /// Errors: DataError for a gradient that is not finite under NonfiniteGradient::kStop.
  void look(const std::string& name, const at::Tensor& gradient, const Whose& whose);
  /// Writes a line to the log if a gradient was found, unless another rank has told one in an
  /// earlier pass: all weights depend on that.
  void tell(bool told_elsewhere);

 private:
  NonfiniteGradient wanted_;
  std::string found_{};
  bool told_ = false;
};

}  // namespace argosy::parallel::ddp
