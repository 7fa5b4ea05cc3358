#include "argosy/recipes/examples.h"

#include <utility>

#include "argosy/base/check.h"

namespace argosy::recipes {

Examples::Examples(std::shared_ptr<const ExampleSource> source, std::vector<int64_t> indices)
    : source_(std::move(source)),
      indices_(std::make_shared<const std::vector<int64_t>>(std::move(indices))) {}

int64_t Examples::in_whole(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               "recipes.examples",
               "index {} is outside the {} samples",
               index,
               size());
  return (*indices_)[static_cast<std::size_t>(index)];
}

std::tuple<at::Tensor, at::Tensor> Examples::get_batch(std::span<const int64_t> indices,
                                                       const data::BatchContext& context) const {
  std::vector<int64_t> inner;
  inner.reserve(indices.size());
  for (const int64_t index : indices) {
    inner.push_back(in_whole(index));
  }
  data::BatchContext translated = context;
  translated.indices = inner;
  return source_->batch(inner, translated);
}

}  // namespace argosy::recipes
