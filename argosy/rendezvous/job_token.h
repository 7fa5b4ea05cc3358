#pragma once

#include <functional>
#include <optional>
#include <string>

namespace argosy::rendezvous {

/// Returns the secret that every call to a job's store carries: ARGOSY_TOKEN, else the first line
/// of the file that ARGOSY_TOKEN_FILE names (a mounted secret, for example), else what OpenMPI 4's
/// mpirun gives only its ranks. Returns "" without any of them: Slurm and MPICH tell their tasks
/// nothing that others cannot know.
/// Errors: ConfigError when the file cannot be read or its first line is empty.
[[nodiscard]] std::string job_token(
    const std::function<std::optional<std::string>(const char*)>& lookup);

}  // namespace argosy::rendezvous
