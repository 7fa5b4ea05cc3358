#pragma once

#include <string>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/parallel/ddp/options.h"

namespace torch::nn {
class Module;
}

namespace argosy::parallel::ddp {

/// The values that must be equal on all ranks, one line each: options, parameters, buffers.
///
///     fc.weight f32 [10, 512]
///     decoder.weight = encoder.weight
struct Signature {
  struct Line {
    std::string name{};   ///< "fc.weight"
    std::string value{};  ///< "f32 [10, 512]"
  };
  std::vector<Line> lines{};
};

[[nodiscard]] Signature describe(const torch::nn::Module& module, const DdpOptions& options);

/// The words by which an error names the compared values.
struct Subject {
  std::string where = "parallel.ddp";
  std::string what = "the model differs";
  std::string advice = "Build the same model, with the same options, on every rank.";
};

/// Compares all ranks' signatures with rank 0's. Collective.
/// Errors: UsageError, on all ranks alike, naming ranks and parameters:
///   "ranks 2-3: fc.weight f32 [10, 512], rank 0: f32 [10, 256]".
/// Cost: 16 bytes per rank if all are equal.
void verify_equal(const Signature& mine,
                  const comm::Group& group,
                  std::chrono::milliseconds timeout,
                  const Subject& subject = {});

/// Returns the differences between rank 0's signature and another's; empty if they are equal.
[[nodiscard]] std::vector<std::string> differences(const Signature& first, const Signature& other);

}  // namespace argosy::parallel::ddp
