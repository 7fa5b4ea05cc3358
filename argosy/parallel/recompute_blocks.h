#pragma once

#include <string>
#include <vector>

#include "argosy/parallel/recompute.h"

namespace torch::nn {
class Module;
}

namespace argosy::parallel {

/// Lets backward compute blocks of a model again, by recompute(), without a change of the model.
///
///     parallel::recompute_blocks(*net, {"layers.*"});
///
/// Something can come between a model and its blocks in two places, and these are its blocks here:
/// - the children of a torch::nn::Sequential, if they take and return one tensor;
/// - the blocks of a module that is an engine::BlockCalls, such as text::Gpt.
/// What a forward of your own calls (members, a ModuleList) nothing can come between: write
/// `parallel::recompute(block, x)` there.
///
/// `names` are those of blocks as named_modules() has them; `*` stands for any characters. Empty:
/// the outermost blocks. Parameters keep their names. The model cannot be cloned afterwards.
/// Errors: UsageError for a model without blocks, and for a name that no block has.
void recompute_blocks(torch::nn::Module& module,
                      const std::vector<std::string>& names = {},
                      const RecomputeOptions& options = {});

}  // namespace argosy::parallel
