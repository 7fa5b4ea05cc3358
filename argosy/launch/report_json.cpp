#include "argosy/launch/report_json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "argosy/base/deadline.h"
#include "argosy/base/secrets.h"
#include "argosy/os/fd.h"
#include "argosy/os/signals.h"
#include "argosy/os/whole_file.h"

#include <nlohmann/json.hpp>

namespace argosy::launch {
namespace {

using nlohmann::ordered_json;

ordered_json describe_end(const RankEnd& end) {
  ordered_json entry{{"rank", end.rank}, {"pid", end.pid}};
  if (!end.host.empty()) {
    entry["host"] = end.host;
  }
  entry["exit_code"] = end.exit.shell_code();
  if (end.exit.signal != 0) {
    entry["signal"] = os::signal_name(end.exit.signal);
  }
  if (!end.threw.empty()) {
    entry["threw"] = end.threw;
  }
  if (!end.stopped.empty()) {
    entry["stopped"] = end.stopped;
  }
  if (!end.hung.empty()) {
    entry["stood_still"] = end.hung;
  }
  if (end.at_us != 0) {
    entry["at"] = time_text(end.at_us);
    entry["at_us"] = end.at_us;
  }
  if (end.out_of_memory) {
    entry["oom_kills_meanwhile"] = *end.out_of_memory;  // of the whole machine
  }
  entry["seconds"] = std::chrono::duration<double>(end.ran).count();
  entry["stopped_by_launcher"] = end.asked_to_stop;
  return entry;
}

ordered_json describe_failure(const FailureReport& failure) {
  ordered_json entry = describe_end(failure.first);
  if (!failure.host.empty()) {
    entry["host"] = failure.host;
  }
  if (!failure.first.program.empty()) {
    entry["program"] = secrets::hidden(failure.first.program);  // nodes may run different ones
  }
  entry["last_lines"] = failure.first.last_lines;
  entry["log"] = failure.first.log_path;
  if (failure.first.error) {
    entry["error"] = {{"message", failure.first.error->message},
                      {"stack", failure.first.error->stack},
                      {"file", failure.first.error->path}};
  }
  ordered_json others = ordered_json::array();
  for (const RankEnd& other : failure.others) {
    ordered_json one = describe_end(other);
    one["after_first_ms"] = static_cast<double>(other.at_us - failure.first.at_us) / 1000;
    others.push_back(std::move(one));
  }
  entry["others"] = std::move(others);
  return entry;
}

}  // namespace

std::string to_json(const JobEnd& end) {
  ordered_json job{{"run_id", end.run_id},
                   {"job_id", end.job_id},
                   {"program", secrets::hidden(end.program)},
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
  if (!end.left_behind.empty()) {
    job["left_behind"] = end.left_behind;
  }
  // What a rank printed need not be UTF-8.
  return job.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

namespace {

namespace fs = std::filesystem;

/// Something that is not to be replaced.
bool is_device(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  // Links to what this process has open, be it a regular file.
  const bool stream =
      path.starts_with("/dev/std") || path.starts_with("/dev/fd/") || path.starts_with("/proc/");
  return stream || (fs::exists(status) && !fs::is_regular_file(status));
}

/// Where `path` leads, if it is a link, be there a file or not.
std::string file_of(const std::string& path) {
  constexpr int kMostLinks = 40;
  fs::path file = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(file, error); ++i) {
    file = file.parent_path() / fs::read_symlink(file, error);  // an absolute one replaces all
  }
  return file.string();
}

}  // namespace

Status check_json(const std::string& path) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  const fs::path parent = fs::absolute(path, error).parent_path();
  if (folder || !fs::is_directory(parent, error)) {
    return Failure{fmt::format("{} is {}. Expected the name of a file",
                               path,
                               folder ? "a folder" : "in no folder that is there"),
                   0};
  }
  if (!is_device(path) && ::access(parent.c_str(), W_OK) != 0) {
    return Failure::from_errno("write to the folder of " + path, errno);
  }
  return {};
}

Status prepare_json(const std::string& path) {
  Status status = check_json(path);
  if (!status.ok() || is_device(path)) {
    return status;
  }
  const std::string file = file_of(path);
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
    return Failure::from_errno("remove the former " + file, errno);
  }
  return {};
}

Status write_json(const JobEnd& end, const std::string& path) {
  if (!is_device(path)) {
    const std::string file = file_of(path);
    Status written =
        os::write_whole(file, to_json(end), {.disk = os::WholeFileOptions::Disk::kNot});
    return written.ok()
               ? written
               : Failure{file + ": " + written.failure().what, written.failure().error_number};
  }
  // A pipe that nobody reads would be waited for.
  const Result<os::UniqueFd> out = os::open_file(path, O_WRONLY | O_APPEND | O_NONBLOCK);
  return out.ok()
             ? os::write_all(out->get(), to_json(end), Deadline::after(std::chrono::seconds(10)))
             : Status(out.failure());
}

}  // namespace argosy::launch
