#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy::engine {

/// What a part of a model holds at a moment of its forward or backward, beside parameters and the
/// gradients that are complete.
struct StepMoment {
  /// Bytes, with those that the part keeps for its backward, as far as they are there.
  int64_t bytes = 0;
  /// Bytes of gradients of the part's parameters that are complete by now.
  int64_t gradients = 0;
};

/// What a part of a model, such as a block, computes with in a step.
struct PartMemory {
  std::string name{};
  /// The parameters that its forward uses: names, or beginnings of names that end in a point; ""
  /// is all.
  std::vector<std::string> parameters{};
  /// Those whose values its backward uses, too, and those whose gradients it completes.
  std::vector<std::string> used_again{}, learning{};
  int64_t kept = 0;  ///< bytes that are kept from its forward to its backward
  std::vector<StepMoment> forward{}, backward{};
};

/// The parts of a model, in the order of forward. See text::step_memory() and
/// parallel::estimate_memory().
using StepMemory = std::vector<PartMemory>;

}  // namespace argosy::engine
