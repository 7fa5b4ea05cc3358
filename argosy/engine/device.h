#pragma once

#include <optional>
#include <string_view>

#include <c10/core/Device.h>

namespace torch::nn {
class Module;
}

namespace argosy::engine {

/// Returns a module's device: that of the first parameter that it registers, else of its first
/// buffer, else the CPU. Cost: walks the whole module only if it has no parameters.
[[nodiscard]] c10::Device device_of(const torch::nn::Module& module);

/// Returns the number of devices of a type that this process sees. CUDA_VISIBLE_DEVICES,
/// HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES hide some.
[[nodiscard]] int device_count(c10::DeviceType type);
/// Returns the type of the accelerators that this process sees: CUDA, which is also libtorch's name
/// for AMD's, else another one. nullopt: there is none.
[[nodiscard]] std::optional<c10::DeviceType> accelerator();

/// Returns the device that a word means:
///
///     "cpu"                 the CPU
///     "cuda:1", "gpu:1"     a GPU by its number among those that this process sees
///     "cuda", "gpu"         the GPU of this process among those of the host: `local_rank`
///     "auto"                the accelerator of this process, or the CPU where there is none
///
/// and any other name that torch.device takes ("xpu:0"). The number of this process is
/// `local_rank`, modulo the number of devices; a warning says once if it is not below that. Where
/// Paddle's launcher, or nobody, numbers the processes of the host, FLAGS_selected_gpus comes
/// first: the `local_rank`th of its numbers. Of others' processes (LOCAL_RANK, Slurm, MPI) all
/// would have inherited the same.
///
/// Errors: UsageError for another word, a device that is not there, which says how many there are,
/// or a negative `local_rank` (not known) where there are several; ConfigError for
/// FLAGS_selected_gpus where it is read and is no list of numbers.
[[nodiscard]] c10::Device find_device(std::string_view word, int local_rank = 0);
/// Looks at the word only: the device need not be there. Errors: UsageError for another word.
void check_device_word(std::string_view word);

/// Makes a device the calling thread's current one, in which it allocates "cuda" tensors, and
/// returns it.
///
///     engine::set_device("gpu:1");    // Paddle's spelling; PyTorch's: "cuda:1"
///
/// Errors: as find_device().
c10::Device set_device(std::string_view word, int local_rank = 0);
/// The same. Nothing for the CPU.
void set_device(c10::Device device);

}  // namespace argosy::engine
