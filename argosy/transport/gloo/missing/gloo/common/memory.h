#pragma once

// Debian's libgloo-dev leaves this header out, but its tcp/pair.h and tcp/context.h include it.
// What they need to know is how large these are: Gloo's own hold nothing but this.
#include <memory>

namespace gloo {

template <typename T>
class NonOwningPtr;

template <typename T>
class WeakNonOwningPtr final {
  std::weak_ptr<T> held_{};
};

}  // namespace gloo
