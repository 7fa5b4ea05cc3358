#include "argosy/launch/log_layout.h"

#include <fmt/format.h>

namespace argosy::launch {

int StreamChoice::of(int local_rank) const {
  const auto found = ranks.find(local_rank);
  return found == ranks.end() ? everyone : found->second;
}

RankFiles LogPlan::files(int rank, int local_rank, int restart) const {
  const int hidden = redirects.of(local_rank) & ~tee.of(local_rank);
  RankFiles files{.out_shown = (hidden & StreamChoice::kOut) == 0,
                  .err_shown = (hidden & StreamChoice::kErr) == 0};
  if (folder.empty()) {
    return files;
  }
  switch (layout) {
    case LogLayout::kArgosy:
      files.out = fmt::format(
          "{}/rank{}{}.log", folder, rank, restart == 0 ? "" : fmt::format(".restart{}", restart));
      files.err = files.out;
      break;
    case LogLayout::kTorchrun: {
      const int kept = redirects.of(local_rank) | tee.of(local_rank);
      const std::string place = fmt::format("{}/attempt_{}/{}/", folder, restart, local_rank);
      files.out = (kept & StreamChoice::kOut) != 0 ? place + "stdout.log" : "";
      files.err = (kept & StreamChoice::kErr) != 0 ? place + "stderr.log" : "";
      break;
    }
    case LogLayout::kPaddle:
      files.out = local_rank < servers
                      ? fmt::format("{}/serverlog.{}", folder, local_rank)
                      : fmt::format("{}/workerlog.{}", folder, local_rank - servers);
      files.err = files.out;
      files.start = overwrite && restart == 0 ? LogFile::Start::kEmpty : LogFile::Start::kAtTheEnd;
      break;
  }
  return files;
}

std::string LogPlan::error_file(int rank, int local_rank, int restart) const {
  if (folder.empty()) {
    return "";
  }
  switch (layout) {
    case LogLayout::kTorchrun:
      return fmt::format("{}/attempt_{}/{}/error.json", folder, restart, local_rank);
    case LogLayout::kPaddle:
      return fmt::format("{}/error.{}.json", folder, local_rank);
    default:
      return fmt::format("{}/rank{}{}.error.json",
                         folder,
                         rank,
                         restart == 0 ? "" : fmt::format(".restart{}", restart));
  }
}

std::string LogPlan::filtered(StandardStream stream, int node, int restart) const {
  if (folder.empty() || filters(stream).empty()) {
    return "";
  }
  const std::string place =
      layout == LogLayout::kTorchrun ? fmt::format("{}/attempt_{}", folder, restart) : folder;
  const bool named = node > 0;  // nodes may share the folder
  const std::string again =
      restart > 0 && layout != LogLayout::kTorchrun ? fmt::format(".restart{}", restart) : "";
  return fmt::format("{}/filtered_{}{}{}.log",
                     place,
                     stream == StandardStream::kOut ? "stdout" : "stderr",
                     named ? fmt::format(".node{}", node) : "",
                     again);
}

std::string LogPlan::endpoints() const {
  return folder.empty() || layout != LogLayout::kPaddle ? "" : folder + "/endpoints.log";
}

std::string LogPlan::combined(int node) const {
  if (folder.empty() || layout == LogLayout::kPaddle) {  // whose folder is shared by all runs
    return "";
  }
  return fmt::format("{}/all{}.log", folder, node == 0 ? "" : fmt::format(".node{}", node));
}

std::string LogPlan::pattern() const {
  if (folder.empty()) {
    return "none";
  }
  switch (layout) {
    case LogLayout::kTorchrun:
      return folder + "/attempt_<n>/<local rank>/";
    case LogLayout::kPaddle:
      return folder + "/workerlog.<local rank>";
    default:
      return folder + "/rank<k>.log";
  }
}

}  // namespace argosy::launch
