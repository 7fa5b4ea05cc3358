#include "argosy/launch/report_json.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "argosy/os/fd.h"
#include "argosy/os/signals.h"

#include <nlohmann/json.hpp>

namespace argosy::launch {
namespace {

using json = nlohmann::ordered_json;

json describe_end(const RankEnd& end) {
  json entry{{"rank", end.rank}, {"pid", end.pid}};
  if (!end.host.empty()) {
    entry["host"] = end.host;
  }
  entry["exit_code"] = end.exit.shell_code();
  if (end.exit.signal != 0) {
    entry["signal"] = os::signal_name(end.exit.signal);
  }
  entry["seconds"] = std::chrono::duration<double>(end.ran).count();
  entry["stopped_by_launcher"] = end.asked_to_stop;
  return entry;
}

json describe_failure(const FailureReport& failure) {
  json entry = describe_end(failure.first);
  entry["last_lines"] = failure.last_lines;
  entry["log"] = failure.log_path;
  json others = json::array();
  for (const RankEnd& other : failure.others) {
    json one = describe_end(other);
    one["after_first_ms"] =
        std::chrono::duration<double, std::milli>(other.at - failure.first.at).count();
    others.push_back(std::move(one));
  }
  entry["others"] = std::move(others);
  return entry;
}

}  // namespace

std::string to_json(const JobEnd& end) {
  json job{{"run_id", end.run_id},
           {"job_id", end.job_id},
           {"program", end.program},
           {"ranks", end.ranks},
           {"nodes", end.nodes},
           {"restarts", end.restarts},
           {"exit_code", end.exit_code},
           {"seconds", end.seconds}};
  if (end.interrupted_by) {
    job["interrupted_by"] = os::signal_name(*end.interrupted_by);
  }
  if (end.failure) {
    job["first_failure"] = describe_failure(*end.failure);
  }
  if (!end.lost.empty()) {
    job["lost_nodes"] = end.lost;
  }
  // What a rank printed need not be UTF-8.
  return job.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

namespace {

/// Something that is not to be replaced.
bool is_device(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

}  // namespace

Status prepare_json(const std::string& path) {
  if (is_device(path)) {
    return {};
  }
  Result<os::UniqueFd> file = os::open_file(path, O_WRONLY | O_CREAT);
  if (!file.ok()) {
    return std::move(file).failure();
  }
  ::unlink(path.c_str());
  return {};
}

Status write_json(const JobEnd& end, const std::string& path) {
  const bool device = is_device(path);
  const std::string target = device ? path : path + "." + std::to_string(::getpid());
  Result<os::UniqueFd> file = os::open_file(target, O_WRONLY | (device ? 0 : O_CREAT | O_TRUNC));
  if (!file.ok()) {
    return std::move(file).failure();
  }
  Status written = os::write_all(file->get(), to_json(end));
  if (device) {
    return written;
  }
  if (written.ok() && ::rename(target.c_str(), path.c_str()) != 0) {
    written = Failure::from_errno("rename " + target, errno);
  }
  if (!written.ok()) {
    ::unlink(target.c_str());
  }
  return written;
}

}  // namespace argosy::launch
