#include "argosy/data/concat.h"

#include <torch/types.h>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/data/rows.h"

namespace argosy::data::detail {

at::Tensor merge_rows(std::span<const at::Tensor> pieces,
                      std::span<const std::vector<int64_t>> to,
                      const BatchContext& context) {
  const at::Tensor& first = pieces.front();
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes.at(0) = 0;
  for (size_t k = 0; k < pieces.size(); ++k) {
    const at::Tensor& piece = pieces[k];
    if (piece.dim() != first.dim() || piece.scalar_type() != first.scalar_type() ||
        piece.sizes().slice(1) != first.sizes().slice(1)) {
      throw DataError("data.Concat",
                      fmt::format("expected samples of shape {} of {}, as in the first of the "
                                  "batch, got {} of {} from another set. Put a Map before it",
                                  text::shape(first.sizes().slice(1)),
                                  c10::toString(first.scalar_type()),
                                  text::shape(piece.sizes().slice(1)),
                                  c10::toString(piece.scalar_type())),
                      {.path = "", .index = context.indices[to[k].front()]});
    }
    sizes[0] += static_cast<int64_t>(to[k].size());
  }
  at::Tensor out = context.empty_batch(sizes, first.scalar_type());
  const RowWriter rows(out);
  for (size_t k = 0; k < pieces.size(); ++k) {
    rows.scatter(pieces[k], to[k]);
  }
  return out;
}

}  // namespace argosy::data::detail
