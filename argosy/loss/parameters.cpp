#include "argosy/loss/parameters.h"

#include <fmt/ranges.h>

#include "argosy/base/text.h"

namespace argosy::loss {

std::string in_words(std::string_view name, const at::Tensor& factors) {
  if (!factors.defined()) {
    return "";
  }
  constexpr int64_t kShown = 16;
  if (factors.numel() > kShown) {
    return fmt::format("{}={} numbers", name, text::shape(factors));
  }
  const at::Tensor flat = factors.detach().to(at::kCPU, at::kFloat).reshape({-1}).contiguous();
  return fmt::format(
      "{}=[{}]",
      name,
      fmt::join(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel(), ", "));
}

std::string in_words(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMean:
      break;
    case Reduction::kSum:
      return "reduction=sum";
    case Reduction::kNone:
      return "reduction=none";
  }
  return "";
}

std::string joined(const std::vector<std::string>& options) {
  std::string all;
  for (const std::string& option : options) {
    all += all.empty() || option.empty() ? option : ", " + option;
  }
  return all;
}

}  // namespace argosy::loss
