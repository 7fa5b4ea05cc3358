#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argosy/engine/state_dict.h"
#include "argosy/formats/safetensors.h"

namespace argosy::checkpoint {

/// Texts that a safetensors file holds beside its tensors.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// Returns the tensors of a safetensors file, on the CPU, in the order of its header.
///
///     engine::load_state_dict(net, read_safetensors("model.safetensors"));
///
/// Types: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL. `metadata`, if given, receives the file's
/// metadata.
/// Errors: CheckpointError with the path: no such file; damaged or truncated; a type that is not
/// read, with the entry. The format has no checksums, so changed bytes of tensors go unseen.
/// Cost: reads the file once; one copy of the weights.
[[nodiscard]] engine::StateDict read_safetensors(const std::string& path,
                                                 SafetensorsMetadata* metadata = nullptr);

/// Writes a file that Python reads with `safetensors.torch.load_file(path)`.
///
/// The file appears whole or not at all, as with save_weights(). Tensors become contiguous. Tied
/// weights become copies, because the format has no ties.
/// Errors: CheckpointError with the system's message, or for an entry that is undefined, sparse or
/// complex.
void write_safetensors(const std::string& path,
                       const engine::StateDict& dict,
                       const SafetensorsMetadata& metadata = {{"format", "pt"}});

/// Errors: CheckpointError naming a tensor whose values ranks divide, so that this one has not all
/// of them (parallel::fully_shard()).
void check_is_here(const std::string& name, const at::Tensor& tensor);

/// Returns a tensor's entry in the header, before it has a place in the file.
/// Errors: CheckpointError naming an entry that is undefined, sparse or complex.
[[nodiscard]] formats::SafetensorEntry describe_safetensor(const std::string& name,
                                                           const at::Tensor& tensor);

}  // namespace argosy::checkpoint
