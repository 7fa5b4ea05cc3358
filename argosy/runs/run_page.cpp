#include "argosy/runs/run_page.h"

#include <filesystem>
#include <utility>

#include "argosy/base/log.h"
#include "argosy/runs/chart_data.h"
#include "argosy/runs/files.h"
#include "argosy/runs/metrics_log.h"
#include "argosy/runs/page_parts.h"
#include "argosy/runs/run_config.h"
#include "argosy/runs/run_folder.h"

namespace argosy::runs {

struct RunPage::Impl {
  explicit Impl(std::string run_folder)
      : folder(std::move(run_folder)),
        log(folder + "/metrics.jsonl"),
        servers(folder + "/" + kServerFigures) {}

  std::string folder;
  MetricsLog log;
  MetricsLog servers;
  std::string told;  // of what was left out
};

RunPage::RunPage(std::string folder) : impl_(std::make_unique<Impl>(std::move(folder))) {}
RunPage::~RunPage() = default;
RunPage::RunPage(RunPage&&) noexcept = default;
RunPage& RunPage::operator=(RunPage&&) noexcept = default;

std::string RunPage::html() {
  const std::string& folder = impl_->folder;
  const RunConfig config = read_run_config(folder);
  impl_->log.read();
  impl_->servers.read();
  const std::string name =
      config.name.empty() ? std::filesystem::path(folder).filename().string() : config.name;
  const std::vector<ChartRun> runs{{.label = name, .log = &impl_->log}};
  const std::vector<ChartRun> servers{{.label = name, .log = &impl_->servers}};
  const nlohmann::ordered_json timeline = timeline_json(folder);
  const SamplesPart samples = samples_part(folder);
  if (!samples.left_out.empty() && impl_->told != samples.left_out) {
    log::warn("[runs.page] {}: samples {}", folder, samples.left_out);
    impl_->told = samples.left_out;
  }
  return page_document({
      .title = name + " – run",
      .body = header_part(config, name) + tiles_part(impl_->log) + charts_part(impl_->log) +
              samples.html + timeline_part(timeline) +
              servers_part(impl_->servers, read_servers_file(folder)) +
              each_part("Ranks", read_rank_files(folder)) + config_part(config),
      .data = {{"charts", charts_json(runs)},
               {"server_charts", charts_json(servers)},
               {"timeline", timeline}},
      .running = config.observed_state() == RunState::kRunning,
  });
}

void RunPage::write() {
  replace_file(impl_->folder + "/index.html", html());
}

void write_run_page(const std::string& folder) {
  RunPage(folder).write();
}

}  // namespace argosy::runs
