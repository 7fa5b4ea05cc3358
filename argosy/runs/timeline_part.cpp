#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "argosy/runs/files.h"
#include "argosy/runs/page_parts.h"

namespace argosy::runs {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostFiles = 16;
constexpr size_t kHead = size_t{64} << 10;   // where the lanes are named
constexpr size_t kTail = size_t{256} << 10;  // the latest events
constexpr size_t kMostSpans = 4000;          // on the page
constexpr size_t kMostLanes = 32;            // of a rank
constexpr size_t kMostNames = 64;

struct SpanOfTime {
  double begin = 0;
  double length = 0;
  int64_t lane = 0;
  std::string name{};
};

/// The latest of a rank's timeline.
struct RankTimeline {
  int64_t rank = 0;
  std::map<int64_t, std::string> lanes{};
  std::vector<SpanOfTime> spans{};
};

std::string text_or(const ordered_json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_or(const ordered_json& json, const char* key, double otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
}

void take_event(const ordered_json& event, RankTimeline& timeline) {
  timeline.rank = static_cast<int64_t>(number_or(event, "pid", 0));
  const auto lane = static_cast<int64_t>(number_or(event, "tid", 0));
  const std::string phase = text_or(event, "ph");
  if (phase == "M" && text_or(event, "name") == "thread_name") {
    timeline.lanes[lane] = text_or(event.value("args", ordered_json::object()), "name");
  } else if (phase == "X") {
    timeline.spans.push_back({.begin = number_or(event, "ts", 0),
                              .length = std::max(0.0, number_or(event, "dur", 0)),
                              .lane = lane,
                              .name = text_or(event, "name")});
  }
}

/// events::Timeline writes one event on a line: a piece of a file is whole lines and two torn ones.
void take_lines(const std::string& text, RankTimeline& timeline) {
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    if (line.ends_with(',')) {
      line.remove_suffix(1);
    }
    if (!line.starts_with('{')) {
      continue;
    }
    const ordered_json event = ordered_json::parse(line, nullptr, false);
    if (event.is_object()) {
      take_event(event, timeline);
    }
  }
}

RankTimeline read_timeline(const std::string& path) {
  RankTimeline timeline;
  const int64_t size = file_size(path);
  const int64_t tail = std::max<int64_t>(0, size - static_cast<int64_t>(kTail));
  take_lines(read_piece(path, 0, static_cast<size_t>(std::min<int64_t>(tail, kHead))), timeline);
  timeline.spans.clear();  // old ones, of which the rest is not shown
  take_lines(read_piece(path, tail, kTail), timeline);
  return timeline;
}

std::vector<RankTimeline> read_timelines(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("timeline") && name.ends_with(".json")) {
      paths.push_back(at->path());
    }
  }
  std::ranges::sort(paths);
  std::vector<RankTimeline> all;
  for (const std::filesystem::path& path : paths) {
    if (all.size() < kMostFiles) {
      all.push_back(read_timeline(path.string()));
    }
  }
  std::erase_if(all, [](const RankTimeline& timeline) { return timeline.spans.empty(); });
  std::ranges::sort(all, {}, &RankTimeline::rank);
  return all;
}

/// The moment from which on there are few enough spans: the same for all ranks.
double window_begin(const std::vector<RankTimeline>& ranks) {
  std::vector<double> begins;
  double common = 0;  // before it, some rank has nothing any more
  for (const RankTimeline& rank : ranks) {
    double first = rank.spans.front().begin;
    for (const SpanOfTime& span : rank.spans) {
      begins.push_back(span.begin);
      first = std::min(first, span.begin);
    }
    common = std::max(common, first);
  }
  const bool together = std::ranges::count_if(begins, [&](double b) { return b >= common; }) > 0;
  double begin = together && ranks.size() > 1 ? common : *std::ranges::min_element(begins);
  if (begins.size() > kMostSpans) {
    std::ranges::nth_element(begins, begins.end() - kMostSpans);
    begin = std::max(begin, *(begins.end() - kMostSpans));
  }
  return begin;
}

/// The names that are most often there, each with its number.
std::vector<std::string> usual_names(const std::vector<RankTimeline>& ranks) {
  std::map<std::string, int64_t> counts;
  std::vector<std::string> names;
  for (const RankTimeline& rank : ranks) {
    for (const SpanOfTime& span : rank.spans) {
      if (counts[span.name]++ == 0 && names.size() < 100 * kMostNames) {
        names.push_back(span.name);
      }
    }
  }
  if (names.size() >= kMostNames) {
    std::ranges::stable_sort(names, std::greater<>(), [&](const auto& n) { return counts[n]; });
    names.resize(kMostNames - 1);
    names.emplace_back("others");
  }
  return names;
}

}  // namespace

ordered_json timeline_json(const std::string& folder) {
  const std::vector<RankTimeline> ranks = read_timelines(folder);
  if (ranks.empty()) {
    return nullptr;
  }
  const std::vector<std::string> names = usual_names(ranks);
  const double begin = window_begin(ranks);
  double end = begin + 1;
  ordered_json shown = ordered_json::array();
  for (const RankTimeline& rank : ranks) {
    std::map<int64_t, ordered_json> lanes;
    for (const SpanOfTime& span : rank.spans) {
      const bool room = lanes.size() < kMostLanes || lanes.contains(span.lane);
      if (span.begin < begin || !room) {
        continue;
      }
      const auto place = std::ranges::find(names, span.name);
      const auto name = std::min(place - names.begin(), std::ssize(names) - 1);
      auto lane = lanes.try_emplace(span.lane, ordered_json::array()).first;
      lane->second.push_back({span.begin - begin, span.length, name});
      end = std::max(end, span.begin + span.length);
    }
    ordered_json rows = ordered_json::array();
    for (auto& [number, spans] : lanes) {
      const auto named = rank.lanes.find(number);
      rows.push_back({{"name", named == rank.lanes.end() ? std::to_string(number) : named->second},
                      {"spans", std::move(spans)}});
    }
    shown.push_back({{"rank", rank.rank}, {"lanes", std::move(rows)}});
  }
  return {{"length", end - begin}, {"names", names}, {"ranks", std::move(shown)}};
}

std::string timeline_part(const ordered_json& timeline) {
  return timeline.is_null()
             ? ""
             : "<div class=\"bar\"><h2>Timeline</h2><label>drag to move, Ctrl and the "
               "wheel to zoom, double click for all</label></div>\n<div class=\"card timeline\" "
               "id=\"timeline\">"
               "</div>\n";
}

}  // namespace argosy::runs
