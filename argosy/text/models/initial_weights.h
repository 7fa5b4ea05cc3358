#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "argosy/text/models/gpt_options.h"

namespace argosy::text {

/// Fills `values` with the initial values of the elements `first`, `first` + 1, … of a parameter of
/// a Gpt, in row-major order.
///
///     text::draw_initial(options, seed, "blocks.3.mlp.up.weight", row * width, my_rows);
///
/// They are GPT-2's: biases 0, weights of norms 1, all others normal with a standard deviation of
/// 0.02, which is divided by √(2·layers) for the two projections that end a branch. An element
/// depends on the seed, the name and its number only: a rank that holds a part of a parameter draws
/// that part alone, with the bits of the whole. See engine::draw_normal().
/// Source: Radford et al. 2019, section 2.3; transformers' GPT2PreTrainedModel.
void draw_initial(const GptOptions& options,
                  uint64_t seed,
                  std::string_view name,
                  int64_t first,
                  std::span<float> values);

}  // namespace argosy::text
