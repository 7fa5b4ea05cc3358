#include "argosy/launch/report_json.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

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

Status write_json(const JobEnd& end, const std::string& path) {
  const std::string beside = path + ".part";
  Result<os::UniqueFd> file = os::open_file(beside, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) {
    return std::move(file).failure();
  }
  Status written = os::write_all(file->get(), to_json(end));
  if (written.ok() && ::rename(beside.c_str(), path.c_str()) != 0) {
    written = Failure::from_errno("rename " + beside, errno);
  }
  if (!written.ok()) {
    ::unlink(beside.c_str());
  }
  return written;
}

}  // namespace argosy::launch
