#include "argosy/runs/run_config.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <time.h>

#include <array>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/secrets.h"
#include "argosy/base/text.h"
#include "argosy/os/addresses.h"
#include "argosy/runs/files.h"
#include "argosy/runs/process_start.h"
#include "argosy/runs/this_process.h"

namespace argosy::runs {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::system_clock;

constexpr int kFormat = 1;
constexpr std::array kStates{RunState::kRunning,
                             RunState::kFinished,
                             RunState::kStopped,
                             RunState::kFailed,
                             RunState::kKilled};

Clock::time_point parse_time(const std::string& text) {
  tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) {
    throw std::invalid_argument(fmt::format("expected a time, got \"{}\"", text));
  }
  int ms = 0;
  if (*rest == '.' && std::sscanf(rest, ".%3dZ", &ms) != 1) {
    throw std::invalid_argument(fmt::format("expected a time, got \"{}\"", text));
  }
  return Clock::from_time_t(::timegm(&parts)) + std::chrono::milliseconds(ms);
}

template <typename T>
void take(const ordered_json& json, const char* key, T& field) {
  if (const auto found = json.find(key); found != json.end() && !found->is_null()) {
    try {
      field = found->template get<T>();
    } catch (const nlohmann::json::exception& error) {
      throw std::invalid_argument(fmt::format("\"{}\": {}", key, error.what()));
    }
  }
}

ordered_json object_in(const ordered_json& json, const char* key) {
  ordered_json object = json.value(key, ordered_json::object());
  if (!object.is_object()) {
    throw std::invalid_argument(fmt::format("\"{}\": expected an object", key));
  }
  return object;
}

RunState state_of(const std::string& word) {
  for (const RunState state : kStates) {
    if (word == to_string(state)) {
      return state;
    }
  }
  throw std::invalid_argument(fmt::format("\"state\": unknown state \"{}\"", word));
}

ordered_json host_json(const RunHost& host) {
  return {{"name", host.name},
          {"system", host.system},
          {"cpu", host.cpu},
          {"cores", host.cores},
          {"physical_cores", host.physical_cores},
          {"memory_bytes", host.memory_bytes},
          {"pid", host.pid},
          {"pid_start", host.pid_start}};
}

RunHost host_of(const ordered_json& json) {
  RunHost host;
  take(json, "name", host.name);
  take(json, "system", host.system);
  take(json, "cpu", host.cpu);
  take(json, "cores", host.cores);
  take(json, "physical_cores", host.physical_cores);
  take(json, "memory_bytes", host.memory_bytes);
  take(json, "pid", host.pid);
  take(json, "pid_start", host.pid_start);
  return host;
}

RunSources sources_of(const ordered_json& json) {
  RunSources sources;
  take(json, "commit", sources.commit);
  take(json, "branch", sources.branch);
  take(json, "dirty", sources.dirty);
  return sources;
}

ordered_json interruptions_json(const std::vector<RunInterruption>& interruptions) {
  ordered_json all = ordered_json::array();
  for (const RunInterruption& each : interruptions) {
    all.push_back({{"state", to_string(each.state)},
                   {"message", each.message},
                   {"step", each.step},
                   {"resumed", text::utc(each.resumed)}});
  }
  return all;
}

std::vector<RunInterruption> interruptions_of(const ordered_json& json) {
  std::vector<RunInterruption> all;
  for (const ordered_json& each : json.value("interruptions", ordered_json::array())) {
    RunInterruption interruption;
    std::string state = "killed";
    std::string resumed;
    take(each, "state", state);
    take(each, "message", interruption.message);
    take(each, "step", interruption.step);
    take(each, "resumed", resumed);
    interruption.state = state_of(state);
    interruption.resumed = resumed.empty() ? Clock::time_point{} : parse_time(resumed);
    all.push_back(std::move(interruption));
  }
  return all;
}

/// Errors: std::invalid_argument, which says what is wrong with which field.
RunConfig parsed(const ordered_json& json) {
  if (!json.is_object()) {
    throw std::invalid_argument("expected a JSON object");
  }
  int format = kFormat;
  take(json, "format", format);
  if (format > kFormat) {
    throw std::invalid_argument(
        fmt::format("format {} of a newer Argosy: expected {} at most", format, kFormat));
  }
  RunConfig config;
  take(json, "name", config.name);
  std::string text = "running";
  take(json, "state", text);
  config.state = state_of(text);
  take(json, "message", config.message);
  if (const auto code = json.find("exit_code"); code != json.end() && !code->is_null()) {
    take(json, "exit_code", config.exit_code.emplace());
  }
  text.clear();
  take(json, "started", text);
  config.started = text.empty() ? Clock::time_point{} : parse_time(text);
  text.clear();
  take(json, "ended", text);
  if (!text.empty()) {
    config.ended = parse_time(text);
  }
  config.interruptions = interruptions_of(json);
  take(json, "command", config.command);
  take(json, "folder", config.folder);
  if (const auto seed = json.find("seed"); seed != json.end() && !seed->is_null()) {
    take(json, "seed", config.seed.emplace());
  }
  take(json, "ranks", config.ranks);
  take(json, "options", config.options);
  take(json, "versions", config.versions);
  take(json, "environment", config.environment);
  config.host = host_of(object_in(json, "host"));
  config.sources = sources_of(object_in(json, "git"));
  if (!config.options.is_object()) {
    throw std::invalid_argument("\"options\": expected an object");
  }
  return config;
}

}  // namespace

const char* to_string(RunState state) {
  constexpr std::array kWords{"running", "finished", "stopped", "failed", "killed"};
  return kWords.at(static_cast<size_t>(state));
}

std::string to_string(const RunInterruption& interruption) {
  return fmt::format("{}{}, resumed at step {} on {}",
                     to_string(interruption.state),
                     interruption.message.empty() ? "" : fmt::format(" ({})", interruption.message),
                     interruption.step,
                     text::utc_date(interruption.resumed));
}

RunConfig RunConfig::capture(CaptureOptions options) {
  std::error_code ignored;
  RunConfig config;
  config.name = std::move(options.name);
  config.started = std::chrono::system_clock::now();
  config.command =
      secrets::hidden(options.command.empty() ? own_command() : std::move(options.command));
  config.folder = std::filesystem::current_path(ignored).string();
  config.ranks = options.ranks;
  config.versions["argosy"] = ARGOSY_VERSION;
  config.versions["compiler"] = fmt::format("GCC-compatible {}", __VERSION__);
  config.environment = environment_that_matters();
  config.host = this_host();
  config.sources = git_state();
  return config;
}

void RunConfig::resume(const RunConfig& earlier, int64_t step) {
  started = earlier.started;
  interruptions = earlier.interruptions;
  if (earlier.state != RunState::kFinished) {
    const bool cut_off = earlier.state == RunState::kRunning;  // nobody could write how it ended
    interruptions.push_back({.state = cut_off ? RunState::kKilled : earlier.state,
                             .message = earlier.message,
                             .step = step,
                             .resumed = Clock::now()});
  }
}

void RunConfig::end(RunState how, std::string why, std::optional<int> code) {
  state = how;
  message = std::move(why);
  exit_code = code;
  ended = Clock::now();
}

std::chrono::duration<double> RunConfig::duration() const {
  return ended.value_or(Clock::now()) - started;
}

RunState RunConfig::observed_state() const {
  const bool here = host.pid > 0 && host.name == os::host_name();
  if (state != RunState::kRunning || !here) {
    return state;
  }
  const std::optional<int64_t> start = process_start(host.pid);
  return start == host.pid_start ? RunState::kRunning : RunState::kKilled;
}

ordered_json to_json(const RunConfig& config) {
  ordered_json json{{"format", kFormat},
                    {"name", config.name},
                    {"state", to_string(config.state)},
                    {"message", config.message},
                    {"exit_code", nullptr},
                    {"started", text::utc(config.started)},
                    {"ended", nullptr},
                    {"interruptions", interruptions_json(config.interruptions)},
                    {"command", config.command},
                    {"folder", config.folder},
                    {"seed", nullptr},
                    {"ranks", config.ranks},
                    {"options", config.options},
                    {"versions", config.versions},
                    {"environment", config.environment},
                    {"host", host_json(config.host)},
                    {"git",
                     {{"commit", config.sources.commit},
                      {"branch", config.sources.branch},
                      {"dirty", config.sources.dirty}}}};
  if (config.exit_code) {
    json["exit_code"] = *config.exit_code;
  }
  if (config.ended) {
    json["ended"] = text::utc(*config.ended);
  }
  if (config.seed) {
    json["seed"] = *config.seed;
  }
  return json;
}

RunConfig run_config_from_json(const ordered_json& json, const std::string& path) {
  try {
    return parsed(json);
  } catch (const std::invalid_argument& error) {
    throw DataError("runs.config", error.what(), {path});
  } catch (const nlohmann::json::exception& error) {
    throw DataError("runs.config", error.what(), {path});
  }
}

void write_run_config(const std::string& folder, const RunConfig& config) {
  make_folder(folder);
  replace_file(
      folder + "/run.json",
      to_json(config).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

RunConfig read_run_config(const std::string& folder) {
  const std::string path = folder + "/run.json";
  const std::optional<std::string> text = read_small_file(path, size_t{16} << 20);
  if (!text) {
    throw DataError("runs.config", "cannot be read: no file, or more than 16 MiB", {path});
  }
  const ordered_json json = ordered_json::parse(*text, nullptr, false);
  if (json.is_discarded()) {
    throw DataError("runs.config", "not JSON: torn or edited", {path});
  }
  return run_config_from_json(json, path);
}

}  // namespace argosy::runs
