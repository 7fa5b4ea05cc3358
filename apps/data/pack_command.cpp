#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/datasets/damage.h"
#include "argosy/datasets/pack.h"
#include "argosy/events/progress_bar.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"

#include "apps/data/arguments.h"
#include "apps/data/command.h"
#include "apps/data/source_argument.h"
#include <nlohmann/json.hpp>

namespace argosy::datatool {
namespace {

void check_whole(const datasets::About& about, bool skip_missing) {
  if (about.missing > 0 && !skip_missing) {
    throw DataError("datatool.pack",
                    fmt::format("{} samples of the index are not there. To pack the others: "
                                "--skip_missing",
                                text::count(about.missing)),
                    {about.path});
  }
}

struct Options {
  std::vector<std::string> words{};
  std::string split{};
  bool skip_missing = false;
  bool skip_damaged = false;
  bool no_check = false;
  bool json = false;
};

/// The damaged samples of what is to be packed, told; to be left out if that was asked for.
std::vector<int64_t> checked(const datasets::Source& source,
                             const datasets::SplitRange& split,
                             const Options& options) {
  if (options.no_check) {
    return {};
  }
  events::ProgressBar bar(
      {.label = "check", .total = split.count, .unit = "samples", .out = stderr});
  const std::vector<datasets::Damage> damage = datasets::find_damage(
      source, split, {.on_samples = [&](int64_t done) { bar.advance(done - bar.done()); }});
  bar.finish();
  constexpr size_t kMostTold = 10;
  for (const datasets::Damage& one : std::span(damage).first(std::min(kMostTold, damage.size()))) {
    fmt::print(stderr, "damaged  {}\n", one.reason);
  }
  if (damage.size() > kMostTold) {
    fmt::print(stderr, "and {} more\n", damage.size() - kMostTold);
  }
  if (!damage.empty() && !options.skip_damaged) {
    throw DataError("datatool.pack",
                    fmt::format("{} of {} samples are damaged, nothing was written. To pack the "
                                "others: --skip_damaged",
                                text::count(std::ssize(damage)),
                                text::count(split.count)),
                    {source.about().path});
  }
  std::vector<int64_t> indices;
  std::ranges::transform(damage, std::back_inserter(indices), &datasets::Damage::index);
  return indices;
}

}  // namespace

int run_pack(const std::vector<std::string>& args) {
  Options options;
  if (program::parse_or_help(
          {.what = "Write a data set into one record file with checksums, which reads back faster. "
                   "Pictures stay as "
                   "they are: JPEGs remain JPEGs, pixels remain pixels. All are decoded first, so "
                   "that a damaged "
                   "one is told now and not by a training.",
           .name = "argosy data pack",
           .end = "Example, after argosy data fetch cifar10:\n"
                  "  argosy data pack cifar10 train.rec --split train",
           .usage = "[options] NAME|PATH [PATH] OUT"},
          {{"NAME|PATH [PATH] OUT",
            "",
            "A set's name, where it lies (default: where fetch brings it), and the record file to "
            "write",
            &options.words,
            {.required = true}},
           {"--split",
            "NAME",
            "Pack this split only. Default: all, one after the other",
            &options.split},
           {"--skip_missing",
            "",
            "Pack what is there of a set that is not whole",
            &options.skip_missing},
           {"--skip_damaged", "", "Leave out samples that cannot be read", &options.skip_damaged},
           {"--no_check", "", "Skip decoding the pictures first", &options.no_check},
           program::json_option(&options.json)},
          args)) {
    return 0;
  }
  if (options.words.size() < 2 || options.words.size() > 3) {
    throw UsageError(
        "program.arguments",
        fmt::format(
            "expected NAME OUT or NAME PATH OUT, got {} words. See: argosy data pack --help",
            options.words.size()));
  }
  const std::string& out = options.words.back();
  check_output("datatool.pack", out, "ARGOREC\n", "a record file, the last word");
  const auto source =
      open_argument(options.words.front(), options.words.size() == 3 ? options.words[1] : "");
  check_whole(source->about(), options.skip_missing);
  const datasets::SplitRange split = datasets::find_split(*source, options.split);
  datasets::PackOptions packing{.split = options.split,
                                .leave_out = checked(*source, split, options)};
  const int64_t left_out = std::ssize(packing.leave_out);
  events::ProgressBar bar(
      {.label = "pack", .total = split.count - left_out, .unit = "samples", .out = stderr});
  packing.on_sample = [&](int64_t) { bar.advance(1); };
  const datasets::Packed packed = datasets::pack(*source, out, packing);
  bar.finish();
  if (options.json) {
    program::print_json({{"path", out},
                         {"samples", packed.samples},
                         {"left_out", left_out},
                         {"bytes", packed.bytes}});
  } else {
    fmt::print("{}: {} sample{}, {}{}\n",
               out,
               text::count(packed.samples),
               packed.samples == 1 ? "" : "s",
               text::bytes(packed.bytes),
               left_out == 0 ? "" : fmt::format("; {} damaged left out", left_out));
  }
  return 0;
}

}  // namespace argosy::datatool
