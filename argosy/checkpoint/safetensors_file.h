#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argosy/engine/state_dict.h"
#include "argosy/formats/safetensors.h"

namespace argosy::checkpoint {

/// Words that a file of safetensors carries beside its tensors.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// The tensors of a file of safetensors, on the CPU, in the order in which the header names them.
///
///     engine::load_state_dict(net, read_safetensors("model.safetensors"));
///
/// Types: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL. `metadata`, where given, gets the file's.
/// Errors: CheckpointError with the path: no such file; damaged or truncated; a type that is not
///   read, with the entry. The format has no checksums: bytes of tensors that changed go unseen.
/// Cost: reads the file once; one copy of the weights.
[[nodiscard]] engine::StateDict read_safetensors(const std::string& path,
                                                 SafetensorsMetadata* metadata = nullptr);

/// Writes what Python reads with `safetensors.torch.load_file(path)`.
///
/// The file appears whole or not at all, as save_weights() promises. Tensors become contiguous;
/// tied weights become copies, for the format knows no others. Errors: CheckpointError: the
/// system's words; an entry that is undefined, sparse or complex.
void write_safetensors(const std::string& path,
                       const engine::StateDict& dict,
                       const SafetensorsMetadata& metadata = {{"format", "pt"}});

/// What a file says of a tensor before it has a place there.
/// Errors: CheckpointError that names the entry: undefined, sparse, complex.
[[nodiscard]] formats::SafetensorEntry describe_safetensor(const std::string& name,
                                                           const at::Tensor& tensor);

}  // namespace argosy::checkpoint
