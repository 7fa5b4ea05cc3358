#include "argosy/text/models/initial_weights.h"

#include <algorithm>
#include <cmath>

#include "argosy/engine/named_draw.h"

namespace argosy::text {
namespace {

/// Whether the parameter belongs to a norm: "norm.weight", "blocks.0.norm1.bias".
bool is_of_norm(std::string_view name) {
  const std::size_t begin = name.rfind("norm");
  return begin != std::string_view::npos && (begin == 0 || name[begin - 1] == '.');
}

}  // namespace

void draw_initial(const GptOptions& options,
                  uint64_t seed,
                  std::string_view name,
                  int64_t first,
                  std::span<float> values) {
  if (name.ends_with(".bias") || is_of_norm(name)) {
    std::fill(values.begin(), values.end(), name.ends_with(".bias") ? 0.0F : 1.0F);
    return;
  }
  const bool ends_a_branch =
      name.ends_with(".attention.out.weight") || name.ends_with(".mlp.down.weight");
  const double divisor = ends_a_branch ? std::sqrt(2 * static_cast<double>(options.layers)) : 1;
  engine::draw_normal(
      {.seed = seed, .name = name, .standard_deviation = 0.02 / divisor}, first, values);
}

}  // namespace argosy::text
