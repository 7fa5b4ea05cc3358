#include "argosy/rendezvous/job_token.h"

#include <fmt/format.h>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/fd.h"

namespace argosy::rendezvous {

std::string job_token(const std::function<std::optional<std::string>(const char*)>& lookup) {
  if (const std::optional<std::string> token = lookup("ARGOSY_TOKEN")) {
    return std::string(strings::trim(*token));  // a queue's secret often ends in a newline
  }
  const std::optional<std::string> path = lookup("ARGOSY_TOKEN_FILE");
  if (!path) {
    // 128 random bits that OpenMPI's mpirun gives to its ranks and to nobody else; one process
    // alone shares them with none.
    const std::optional<std::string> key = lookup("OMPI_MCA_orte_precondition_transports");
    return key && lookup("OMPI_COMM_WORLD_SIZE").value_or("1") != "1" ? "mpirun " + *key : "";
  }
  const Result<std::string> text = os::read_file(*path);
  std::string token =
      text.ok() ? std::string(strings::trim(text->substr(0, text->find('\n')))) : "";
  if (token.empty()) {
    throw ConfigError(
        "rendezvous.token",
        fmt::format("ARGOSY_TOKEN_FILE={}: {}. Expected the job's secret in its first line.",
                    *path,
                    text.ok() ? "its first line is empty" : text.failure().what));
  }
  return token;
}

}  // namespace argosy::rendezvous
