#include "argosy/text/models/key_value_cache.h"

#include <ATen/Functions.h>

#include "argosy/base/check.h"

namespace argosy::text {
namespace {

constexpr const char* kCache = "text.KeyValueCache";

}  // namespace

KeyValueCache::KeyValueCache(const GptOptions& options, int64_t capacity)
    : layers_(static_cast<std::size_t>(options.layers)), capacity_(capacity) {
  ARGOSY_CHECK(capacity >= 1 && capacity <= options.context,
               kCache,
               "capacity must be 1 to the model's context of {} tokens, got {}",
               options.context,
               capacity);
}

std::pair<at::Tensor, at::Tensor> KeyValueCache::append(std::size_t layer,
                                                        const at::Tensor& keys,
                                                        const at::Tensor& values) {
  Layer& own = layers_.at(layer);
  const int64_t tokens = keys.size(2);
  ARGOSY_CHECK(length_ + tokens <= capacity_,
               kCache,
               "{} tokens more than the {} so far are beyond the capacity of {}",
               tokens,
               length_,
               capacity_);
  if (!own.keys.defined()) {
    const std::vector<int64_t> shape{keys.size(0), keys.size(1), capacity_, keys.size(3)};
    own.keys = at::empty(shape, keys.options());
    own.values = at::empty(shape, values.options());
  }
  ARGOSY_CHECK(own.keys.size(0) == keys.size(0),
               kCache,
               "expected {} sequences, as before, got {}",
               own.keys.size(0),
               keys.size(0));
  own.keys.narrow(2, length_, tokens).copy_(keys);
  own.values.narrow(2, length_, tokens).copy_(values);
  return {own.keys.narrow(2, 0, length_ + tokens), own.values.narrow(2, 0, length_ + tokens)};
}

}  // namespace argosy::text
