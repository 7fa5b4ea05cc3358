#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/events/progress_bar.h"
#include "argosy/formats/click_truth.h"
#include "argosy/metrics/roc.h"
#include "argosy/os/whole_file.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"

#include "apps/data/command.h"
#include <nlohmann/json.hpp>

namespace argosy::datatool {
namespace {

struct ClickOptions {
  std::string out{};
  int64_t lines = 0;
  uint64_t seed = 1;
  bool json = false;
};

/// How well the drawn odds themselves tell clicks from the rest.
struct TrueScores {
  std::vector<double> clicked{};
  std::vector<double> others{};
  double loss_sum = 0;

  void add(double odds, bool click) {
    (click ? clicked : others).push_back(odds);
    loss_sum += std::log1p(std::exp(odds)) - (click ? odds : 0);
  }
};

void check_new(const std::string& path) {
  std::error_code error;
  ARGOSY_CHECK(!path.ends_with(".gz"),
               "datatool.criteo",
               "--out {}: it writes plain lines. Pack them afterwards: gzip FILE",
               path);
  ARGOSY_CHECK(!std::filesystem::exists(path, error),
               "datatool.criteo",
               "--out {}: that is there already. Remove it, or name another file",
               path);
}

/// What is told of a log.
struct ClickFigures {
  int64_t clicks = 0;
  double auc = 0;
  double log_loss = 0;
};

ClickFigures figures_of(TrueScores scores) {
  ClickFigures figures{.clicks = static_cast<int64_t>(scores.clicked.size())};
  const size_t lines = scores.clicked.size() + scores.others.size();
  figures.log_loss = scores.loss_sum / static_cast<double>(lines);
  figures.auc = metrics::roc_area(std::move(scores.clicked), std::move(scores.others));
  return figures;
}

ClickFigures write_clicks(const ClickOptions& options) {
  constexpr size_t kAtOnce = 1024;
  os::WholeFile file =
      os::WholeFile::create(options.out, {.disk = os::WholeFileOptions::Disk::kNot})
          .or_throw<DataError>("datatool.criteo", DataPlace{options.out});
  formats::ClickTruth truth(options.seed);
  events::ProgressBar bar(
      {.label = "draw", .total = options.lines, .unit = "lines", .out = stderr});
  TrueScores scores;
  formats::ClickBatch batch;
  std::string text;
  for (int64_t line = 0; line < options.lines && file.status().ok();) {
    batch.clear();
    text.clear();
    for (; batch.size() < kAtOnce && line < options.lines; ++line) {
      truth.draw(batch);
      const size_t row = batch.size() - 1;
      formats::append_criteo_line(batch, row, text);
      scores.add(formats::ClickTruth::log_odds(batch, row), batch.clicked[row] > 0);
    }
    file.write(text);
    bar.advance(static_cast<int64_t>(batch.size()));
  }
  const ClickFigures figures = figures_of(std::move(scores));  // before the file is there
  file.commit().or_throw<DataError>("datatool.criteo", DataPlace{options.out});
  bar.finish();
  return figures;
}

}  // namespace

int run_criteo(const std::vector<std::string>& args) {
  ClickOptions options;
  if (program::parse_or_help(
          {.what =
               "Draw a log of clicks in the form of Criteo's data sets. Its truth is known: the "
               "odds with which each click was drawn. It prints how well these odds tell clicks "
               "from the rest, which no model can do better.",
           .name = "argosy data criteo",
           .end = "Example:\n"
                  "  argosy data criteo --lines 1000000 --out clicks.tsv\n"
                  "  argosy train --model deepfm --data criteo:clicks.tsv"},
          {{"--lines", "N", "Lines to draw", &options.lines, {.least = 1, .required = true}},
           {"--out", "FILE", "Where to write them", &options.out, {.required = true}},
           {"--seed", "N", "The same seed draws the same lines", &options.seed},
           program::json_option(&options.json)},
          args)) {
    return 0;
  }
  check_new(options.out);
  const auto [clicks, auc, loss] = write_clicks(options);
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(options.out));
  if (options.json) {
    program::print_json({{"path", options.out},
                         {"lines", options.lines},
                         {"bytes", bytes},
                         {"clicks", clicks},
                         {"auc_of_truth", auc},
                         {"log_loss_of_truth", loss}});
  } else {
    fmt::print("{}: {} lines, {}, {} clicks. The truth itself has AUC {:.4f} and log loss {:.4f}\n",
               options.out,
               text::count(options.lines),
               text::bytes(static_cast<double>(bytes)),
               text::count(clicks),
               auc,
               loss);
  }
  return 0;
}

}  // namespace argosy::datatool
