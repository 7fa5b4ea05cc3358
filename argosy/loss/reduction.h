#pragma once

namespace argosy::loss {

/// How the losses of the elements are combined.
enum class Reduction {
  kMean,  ///< their mean, over what count() says
  kSum,   ///< their sum; count() is then 1
  kNone,  ///< nothing: a tensor of them
};

}  // namespace argosy::loss
