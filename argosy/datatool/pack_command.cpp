#include <fmt/format.h>

#include "argosy/base/error.h"
#include "argosy/datatool/arguments.h"
#include "argosy/datatool/command.h"
#include "argosy/datatool/print_json.h"
#include "argosy/datatool/source_argument.h"
#include "argosy/events/progress_bar.h"
#include "argosy/samples/pack.h"

#include <nlohmann/json.hpp>

namespace argosy::datatool {
namespace {

constexpr const char* kWhere = "datatool.pack";

void check_whole(const samples::Description& description, bool skip_missing) {
  if (description.missing > 0 && !skip_missing) {
    throw DataError(kWhere,
                    fmt::format("{} samples of the index are not there. To pack the others: "
                                "--skip_missing",
                                events::with_commas(description.missing)),
                    {description.path});
  }
}

}  // namespace

int run_pack(const std::vector<std::string>& args) {
  CLI::App app(
      "Write a data set into one record file with checksums, which reads back faster.\n"
      "Pictures stay as they are: JPEGs remain JPEGs, pixels remain pixels.\n");
  app.name("argosy data pack");
  app.footer(
      "\nExample, after argosy data fetch cifar10:\n"
      "  argosy data pack cifar10 train.rec --split train");
  std::vector<std::string> words;
  samples::PackOptions options;
  bool skip_missing = false;
  bool json = false;
  app.add_option("NAME|PATH [PATH] OUT",
                 words,
                 "A set's name, where it lies (default: where fetch brings it), and the\n"
                 "record file")
      ->required()
      ->expected(2, 3);
  app.add_option("--split", options.split, "Only this one. Default: all, one after the other")
      ->type_name("NAME");
  app.add_flag("--skip_missing", skip_missing, "Pack what is there of a set that is not whole");
  app.add_flag("--json", json, "For programs");
  if (parse_or_help(app, args)) {
    return 0;
  }
  const std::string& out = words.back();
  check_output(kWhere, out, "ARGOREC\n", "a record file, the last word");
  const auto source = open_argument(words.front(), words.size() == 3 ? words[1] : "");
  check_whole(source->description(), skip_missing);
  events::ProgressBar bar({.label = "pack",
                           .total = samples::find_split(*source, options.split).count,
                           .unit = "samples",
                           .out = stderr});
  options.on_sample = [&](int64_t) { bar.advance(1); };
  const samples::Packed packed = samples::pack(*source, out, options);
  bar.finish();
  if (json) {
    print_json({{"path", out}, {"samples", packed.samples}, {"bytes", packed.bytes}});
  } else {
    fmt::print("{}: {} samples, {} kB\n",
               out,
               events::with_commas(packed.samples),
               events::with_commas(packed.bytes / 1000));
  }
  return 0;
}

}  // namespace argosy::datatool
