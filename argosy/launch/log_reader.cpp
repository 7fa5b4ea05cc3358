#include "argosy/launch/log_reader.h"

#include <fmt/format.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/launch/combined_log.h"

namespace argosy::launch {
namespace {

namespace fs = std::filesystem;

// A log is made when its first line comes.
constexpr std::string_view kWhyShort =
    ": the job writes to it just now, or its disk was full; rank<k>.log beside it may have more";

/// One file, at its next line.
struct Source {
  std::ifstream file{};
  std::string path{};
  std::string line{};
  bool torn = false;  ///< the last line has no end

  /// Opens it at its first line. "" or what is wrong with it.
  std::string open(std::string where) {
    path = std::move(where);
    file.open(path);
    if (!file) {
      return fmt::format("{} cannot be read: {}", path, errno_message(errno));
    }
    return next() ? "" : fmt::format("{} is empty{}", path, kWhyShort);
  }
  bool next() {
    const bool got = static_cast<bool>(std::getline(file, line));
    torn = torn || (got && file.eof());
    return got;
  }
  /// What is wrong with the end of a torn one.
  [[nodiscard]] std::string end() const {
    return fmt::format("{} ends in the middle of a line{}", path, kWhyShort);
  }
  [[nodiscard]] std::string_view time() const {
    return std::string_view(line).substr(0, CombinedLog::kTimeLength);
  }
};

class Expression final {
 public:
  explicit Expression(const std::string& pattern) {
    const int error = ::regcomp(&compiled_, pattern.c_str(), REG_EXTENDED | REG_NOSUB);
    if (error != 0) {
      std::array<char, 256> why{};
      ::regerror(error, &compiled_, why.data(), why.size());
      throw ConfigError("launch.logs", fmt::format("--grep \"{}\": {}", pattern, why.data()));
    }
  }
  ~Expression() { ::regfree(&compiled_); }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  Expression(Expression&&) = delete;
  Expression& operator=(Expression&&) = delete;

  [[nodiscard]] bool matches(const std::string& text) const {
    return ::regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_{};
};

/// Names of runs begin with their time, to the second; within one the log written to last counts.
std::string newest_run() {
  constexpr size_t kTime = std::string_view("20261120-053000").size();
  std::string newest;
  std::pair<std::string, fs::file_time_type> newest_time;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("runs", error)) {
    const fs::path log = entry.path() / "all.log";  // not TensorBoard's, for instance
    const fs::file_time_type written = fs::last_write_time(log, error);
    if (error) {
      continue;
    }
    std::pair time(entry.path().filename().string().substr(0, kTime), written);
    if (newest.empty() || time > newest_time) {
      newest = entry.path().string();
      newest_time = std::move(time);
    }
  }
  if (newest.empty()) {
    throw ConfigError("launch.logs",
                      "there is no folder of a run in runs/. Name one: argosy logs DIR");
  }
  fmt::print(stderr, "[logs] {}, the newest run that printed something\n", newest);
  return newest;
}

/// `troubles`: of those that are left out.
std::vector<std::unique_ptr<Source>> open_sources(const std::string& folder,
                                                  std::vector<std::string>& troubles) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("all.") && name.ends_with(".log")) {
      paths.push_back(entry.path().string());
    }
  }
  if (error || paths.empty()) {
    throw ConfigError(
        "launch.logs",
        fmt::format(
            "{}: {}. Expected the folder of a run (LOG_DIR/<run>), with an all.log",
            folder,
            error ? error.message() : "no combined log there; it is made with the first line"));
  }
  std::ranges::sort(paths);
  std::vector<std::unique_ptr<Source>> sources;
  for (const std::string& path : paths) {
    auto source = std::make_unique<Source>();
    std::string trouble = source->open(path);
    if (trouble.empty()) {
      sources.push_back(std::move(source));
    } else {
      troubles.push_back(std::move(trouble));
    }
  }
  return sources;
}

/// "rank 3 out| text" after the time, taken apart; nullopt: not of our form.
struct Parts {
  int rank = -1;
  bool error = false;
  std::string text{};
};
std::optional<Parts> take_apart(const std::string& line) {
  constexpr std::string_view kRank = " rank ";
  const std::string_view all = line;
  if (all.size() < CombinedLog::kTimeLength ||
      !all.substr(CombinedLog::kTimeLength).starts_with(kRank)) {
    return std::nullopt;
  }
  const std::string_view rest = all.substr(CombinedLog::kTimeLength + kRank.size());
  const size_t blank = rest.find(' ');
  const auto rank = strings::parse_int(rest.substr(0, blank));
  if (!rank || blank == std::string_view::npos || rest.size() < blank + 6) {
    return std::nullopt;
  }
  return Parts{.rank = static_cast<int>(*rank),
               .error = rest.substr(blank + 1, 4) == "err|",
               .text = std::string(rest.substr(blank + 6))};
}

/// Names the ranks that were asked for and are nowhere in the logs. Returns false if there is none.
/// `whole`: the logs have all that was printed.
bool tell_of_unknown(const std::vector<int>& asked, const std::set<int>& seen, bool whole) {
  bool told = false;
  for (const int rank : asked) {
    if (!seen.contains(rank)) {
      told = true;
      fmt::print(stderr,
                 "[logs] rank {} {}; ranks that {}: {}\n",
                 rank,
                 whole ? "printed nothing here" : "is not in what there is of the log",
                 whole ? "did" : "are",
                 seen.empty() ? "none" : strings::ranges({seen.begin(), seen.end()}));
    }
  }
  return told;
}

}  // namespace

int64_t print_logs(const LogQuery& query, std::FILE* out) {
  std::optional<Expression> expression;
  if (!query.pattern.empty()) {
    expression.emplace(query.pattern);
  }
  std::vector<std::string> troubles;
  std::vector<std::unique_ptr<Source>> sources =
      open_sources(query.folder.empty() ? newest_run() : query.folder, troubles);
  int64_t printed = 0;
  std::set<int> seen;
  while (!sources.empty()) {
    const auto first = std::ranges::min_element(
        sources, {}, [](const std::unique_ptr<Source>& source) { return source->time(); });
    const std::string line = (*first)->line;
    if (!(*first)->next()) {
      if ((*first)->torn) {
        troubles.push_back((*first)->end());
      }
      sources.erase(first);
    }
    const std::optional<Parts> parts = take_apart(line);
    if (parts) {
      seen.insert(parts->rank);
    }
    const bool wanted =
        parts && (query.ranks.empty() || std::ranges::count(query.ranks, parts->rank) > 0) &&
        (!query.errors_only || parts->error) && (!expression || expression->matches(parts->text));
    if (wanted) {
      fmt::print(out, "{}\n", line);
      ++printed;
    }
  }
  for (const std::string& trouble : troubles) {
    fmt::print(stderr, "[logs] {}\n", trouble);
  }
  if (!tell_of_unknown(query.ranks, seen, troubles.empty()) && printed == 0) {
    fmt::print(stderr, "[logs] no line {}matches\n", troubles.empty() ? "of this run " : "there ");
  }
  return printed;
}

}  // namespace argosy::launch
