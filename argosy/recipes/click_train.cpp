#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/exit_codes.h"
#include "argosy/base/log.h"
#include "argosy/base/result.h"
#include "argosy/base/text.h"
#include "argosy/events/progress_bar.h"
#include "argosy/fleet/fleet.h"
#include "argosy/os/fd.h"
#include "argosy/os/signal_flag.h"
#include "argosy/os/whole_file.h"
#include "argosy/recipes/click_records.h"
#include "argosy/recipes/clicks.h"
#include "argosy/recommend/click_feed.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

ps::UpdateMode mode_of(const std::string& word) {
  return word == "async"        ? ps::UpdateMode::kAsync
         : word == "half_async" ? ps::UpdateMode::kHalfAsync
                                : ps::UpdateMode::kSync;
}

/// Empty: nothing is written. All processes of a job come to the same one.
std::string run_folder_of(const TrainSettings& settings, const ps::Roles& roles) {
  if (settings.run_dir == "none") {
    return {};
  }
  ARGOSY_CHECK(
      settings.run_dir != "auto" || roles.own_server || env::get("ARGOSY_LOG_DIR"),
      "recipes.train",
      "--run_dir: no launcher of ours has named a folder that all processes know. Give one");
  const std::string folder =
      settings.run_dir == "auto" ? fleet::detail::choose_run_dir() : settings.run_dir;
  return std::filesystem::absolute(folder).lexically_normal().string();
}

/// The name of this job, which it keeps when a launcher of ours starts it again. Empty: none.
std::string job_name() {
  const std::string id = env::get("ARGOSY_RUN_ID").value_or("");
  return id.substr(0, id.find(".restart"));
}

std::string job_file(const std::string& run_dir) {
  return run_dir + "/job.txt";
}

/// True if this is a restart of the job that began in this folder. What another job has left there
/// stays until the first start sets it aside, and that start may have died before.
bool has_begun_here(const std::string& run_dir) {
  if (run_dir.empty() || job_name().empty() ||
      env::get("ARGOSY_RESTART_COUNT").value_or("0") == "0") {
    return false;
  }
  const Result<std::string> job = os::read_file(job_file(run_dir));
  return job.ok() && *job == job_name() + "\n";
}

/// Once what another job has left is set aside.
void note_job(const std::string& run_dir) {
  if (run_dir.empty() || job_name().empty()) {
    return;
  }
  const std::string path = job_file(run_dir);
  os::WholeFile file =
      os::WholeFile::create(path).or_throw<DataError>("recipes.train", DataPlace{path});
  file.write(job_name() + "\n");
  file.commit().or_throw<DataError>("recipes.train", DataPlace{path});
}

/// Where the log goes on.
recommend::ClickPlace place_of(const ps::ServedTraining& training) {
  const std::optional<recommend::ClickPlace> place = recommend::ClickPlace::parse(training.place());
  if (training.begun() > 0 && !place.has_value()) {
    throw CheckpointError(
        "recipes.resume",
        fmt::format(
            "the checkpoint of step {} does not say how much of the log it has seen: "
            "another program, or an older one, wrote it. Begin with it: --pretrained FOLDER "
            "and another --run_dir",
            training.begun()));
  }
  return place.value_or(recommend::ClickPlace());
}

/// While it lives, SIGTERM first calls `before`, on a thread of its own, and then ends the process
/// as if nobody had looked: a worker that waits for others cannot leave by itself.
class BeforeSigterm final {
 public:
  explicit BeforeSigterm(std::function<void()> before)
      : thread_([this, before = std::move(before)](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            if (flag_->received() != 0) {
              before();
              flag_.reset();
              (void)::kill(::getpid(), SIGTERM);
              return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          }
        }) {}

 private:
  std::optional<os::SignalFlag> flag_{std::in_place, std::initializer_list<int>{SIGTERM}};
  std::jthread thread_;
};

ps::TrainingOptions training_options(const TrainSettings& resolved,
                                     const ps::Roles& roles,
                                     const std::string& run_dir) {
  // Where one worker evaluates, others may wait for its next step.
  const bool waits = !resolved.val.empty() && resolved.mode != "async";
  const auto patience = waits ? std::chrono::minutes(60) : std::chrono::minutes(5);
  return {.roles = roles,
          .mode = mode_of(resolved.mode),
          .staleness = static_cast<uint64_t>(resolved.staleness.value_or(0)),
          .timeout = patience,
          .checkpoints = run_dir.empty() ? "" : run_dir + "/checkpoints",
          .keep = {.keep_last = resolved.keep_last},
          .resume = resolved.resume != "never" || has_begun_here(run_dir),
          .initial = resolved.pretrained};
}

/// The training of one worker.
class ClickLoop final {
 public:
  ClickLoop(const TrainSettings& resolved,
            ps::ServedTraining& training,
            ClickParts& parts,
            const std::string& run_dir)
      : settings_(resolved),
        training_(training),
        parts_(parts),
        run_dir_(run_dir),
        place_(place_of(training)),
        records_(run_dir, training.roles(), resolved, training.steps()) {
    if (run_dir.empty()) {
      return;
    }
    if (training.begun() > 0) {
      saved_at_ = training.begun();
    }
    if (const ordered_json& earlier = records_.earlier_evaluation(); !earlier.is_null()) {
      evaluated_at_ = step();
      evaluation_ = {{"eval_loss", earlier["loss"]}, {"eval_auc", earlier["metrics"]["auc"]}};
    }
    if (training.roles().own_server) {
      signals_.emplace({SIGTERM, SIGUSR1, SIGINT});
    } else if (is_first()) {
      before_sigterm_.emplace([this] {
        records_.end(runs::RunState::kStopped, "SIGTERM came: nothing was saved", std::nullopt);
      });
    }
  }

  /// Errors: those of the log, the servers and the checkpoints, which the records name.
  ordered_json run() {
    try {
      announce();
      records_.write(about());
      learn();
      finish();
    } catch (const std::exception& error) {
      records_.fail(error.what(), about());
      throw;
    }
    return result();
  }

 private:
  [[nodiscard]] bool is_first() const { return training_.roles().index == 0; }
  [[nodiscard]] int64_t step() const { return training_.steps(); }
  [[nodiscard]] bool is_over() const {
    return settings_.num_iters.has_value() && step() >= *settings_.num_iters;
  }
  [[nodiscard]] bool is_asked_to_leave() const {
    return signals_.has_value() && signals_->received() != 0;
  }
  void announce() const;
  void learn();
  void make_step(const recommend::ClickInputs& inputs);
  [[nodiscard]] std::optional<recommend::ClickFeed::Item> next(recommend::ClickFeed& feed);
  void note_step(double loss);
  void begin_epoch(int64_t epoch);
  void end_epoch();
  void evaluate();
  void await_others();
  void save();
  /// Whether all workers' steps are this one's.
  [[nodiscard]] bool is_in_step() const {
    return settings_.mode == "sync" || training_.roles().workers == 1;
  }
  void finish();
  [[nodiscard]] ordered_json about() const;
  [[nodiscard]] ordered_json result() const;

  const TrainSettings& settings_;
  ps::ServedTraining& training_;
  ClickParts& parts_;
  const std::string run_dir_;
  const recommend::ClickPlace place_;  ///< where it begins
  ClickRecords records_;
  std::optional<os::SignalFlag> signals_{};
  std::optional<events::ProgressBar> bar_{};
  const Clock::time_point begun_ = Clock::now();
  int64_t epoch_ = -1;  ///< from 0
  int64_t rows_ = -1;   ///< of all tables; -1: not known
  ordered_json epochs_ = ordered_json::array();
  ordered_json figures_ = ordered_json::object();     ///< of the epoch that ends
  ordered_json evaluation_ = ordered_json::object();  ///< the last one
  int64_t evaluated_at_ = -1;
  int64_t saved_at_ = -1;
  int64_t lines_ = 0;  ///< that this worker has learned from
  double waited_ = 0;
  // Since the epoch began, and since the last record.
  double epoch_loss_ = 0;
  int64_t epoch_steps_ = 0;
  double loss_ = 0;
  int64_t steps_ = 0;
  double waited_before_ = 0;
  Clock::time_point noted_ = Clock::now();
  std::optional<BeforeSigterm> before_sigterm_{};  ///< ends before the rest
};

void ClickLoop::announce() const {
  if (settings_.verbose == 0 || !is_first()) {
    return;
  }
  const ps::Roles& roles = training_.roles();
  int64_t parameters = 0;
  for (const at::Tensor& parameter : parts_.model->parameters()) {
    parameters += parameter.numel();
  }
  fleet::detail::print_line(
      fmt::format("{}, {} parameters beside the rows; {}{}\n",
                  settings_.model,
                  text::count(parameters),
                  settings_.data,
                  settings_.val.empty() ? "" : ", evaluated on " + settings_.val));
  const std::string where = roles.own_server ? "one process with the rows in it"
                                             : fmt::format("{} server{} and {} worker{}, {}",
                                                           roles.servers,
                                                           roles.servers == 1 ? "" : "s",
                                                           roles.workers,
                                                           roles.workers == 1 ? "" : "s",
                                                           settings_.mode);
  fleet::detail::print_line(fmt::format("{}: {} × {} = {} lines a step{}\n",
                                        where,
                                        roles.workers,
                                        settings_.batch_size,
                                        roles.workers * settings_.batch_size,
                                        run_dir_.empty() ? "" : "; " + run_dir_));
  if (step() > 0) {
    fleet::detail::print_line(fmt::format("Resuming after step {}: epoch {}, line {} of the log\n",
                                          step(),
                                          place_.epoch + 1,
                                          place_.lines));
  }
}

void ClickLoop::learn() {
  const ClickLogSpec log = click_log("--data", settings_.data);
  const ps::Roles& roles = training_.roles();
  recommend::ClickFeed feed({.path = log.path,
                             .batch_size = settings_.batch_size,
                             .workers = roles.workers,
                             .worker = roles.index,
                             .limit = log.limit,
                             .from = place_},
                            step() - training_.begun(),
                            settings_.epochs);
  for (std::optional<recommend::ClickFeed::Item> item = next(feed); item.has_value();) {
    begin_epoch(item->epoch);
    if (item->ends_epoch()) {
      end_epoch();
      item = next(feed);
      continue;
    }
    if (is_over() || is_asked_to_leave()) {
      return;
    }
    parts_.optimizer.zero_grad();
    const at::Tensor loss =
        at::binary_cross_entropy_with_logits(parts_.model(item->inputs.ids), item->inputs.clicked);
    lines_ += item->inputs.clicked.size(0);
    const std::string place = item->place.to_text();
    item = next(feed);
    if (item.has_value() && !item->ends_epoch()) {
      parts_.model->prefetch(item->inputs.ids);  // which does nothing in sync
    }
    loss.backward();
    training_.step();
    training_.set_place(place);
    note_step(loss.item<double>());
  }
}

std::optional<recommend::ClickFeed::Item> ClickLoop::next(recommend::ClickFeed& feed) {
  const Clock::time_point begun = Clock::now();
  std::optional<recommend::ClickFeed::Item> item = feed.next();
  waited_ += seconds_since(begun);
  return item;
}

void ClickLoop::note_step(double loss) {
  loss_ += loss;
  epoch_loss_ += loss;
  ++steps_;
  ++epoch_steps_;
  if (settings_.save_freq.has_value() && step() % *settings_.save_freq == 0) {
    save();
  }
  // Where workers make their steps at their own pace, this one speaks for itself alone.
  const int64_t lines = settings_.batch_size * (is_in_step() ? training_.roles().workers : 1);
  if (step() % settings_.log_freq == 0) {
    const double seconds = std::max(seconds_since(noted_), 1e-9);
    records_.add({{"step", step()},
                  {"epoch", epoch_ + 1},
                  {"split", "train"},
                  {"loss", loss_ / static_cast<double>(steps_)},
                  {"lr", parts_.optimizer.lr()},
                  {is_in_step() ? "lines_per_second" : "own_lines_per_second",
                   static_cast<double>(steps_ * lines) / seconds},
                  {"input_wait", std::min((waited_ - waited_before_) / seconds, 1.0)}});
    if (bar_.has_value()) {
      bar_->show("loss", loss_ / static_cast<double>(steps_));
    }
    loss_ = 0;
    steps_ = 0;
    waited_before_ = waited_;
    noted_ = Clock::now();
  }
  const auto ask = [&] {
    std::vector<ps::ServerStat> servers = training_.server_stats();
    rows_ = 0;
    for (const ps::ServerStat& server : servers) {
      for (const ps::TableStat& table : server.tables) {
        rows_ += static_cast<int64_t>(table.rows);
      }
    }
    return servers;
  };
  if (records_.write_now_and_then(
          step(), [&] { return about(); }, ask) &&
      bar_.has_value()) {
    bar_->show("rows", static_cast<double>(rows_));
  }
  if (bar_.has_value()) {
    bar_->advance(lines);
  }
}

void ClickLoop::begin_epoch(int64_t epoch) {
  if (epoch == epoch_) {
    return;
  }
  epoch_ = epoch;
  epoch_loss_ = 0;
  epoch_steps_ = 0;
  loss_ = 0;
  steps_ = 0;
  waited_before_ = waited_;
  noted_ = Clock::now();
  if (settings_.verbose > 0 && is_first()) {
    bar_.emplace(events::ProgressBarOptions{
        .label = fmt::format("epoch {}/{}", epoch + 1, settings_.epochs),
        .unit = "lines",
        .style =
            settings_.verbose == 1 ? events::ProgressStyle::kAuto : events::ProgressStyle::kLines});
  }
}

void ClickLoop::end_epoch() {
  if (bar_.has_value()) {
    bar_->finish();
    bar_.reset();
  }
  figures_ = ordered_json::object();
  if (epoch_steps_ > 0) {  // none, where a resume began here
    figures_["loss"] = epoch_loss_ / static_cast<double>(epoch_steps_);
  }
  if (epoch_ + 1 == settings_.epochs) {
    return;  // finish() does the rest, when all workers are here
  }
  save();
  if ((epoch_ + 1) % settings_.eval_freq == 0) {
    evaluate();
  }
  epochs_.push_back(figures_);
}

/// Where nobody waits at each step, others may still push: what is evaluated and saved last has
/// their steps too. One that is gone never comes.
void ClickLoop::await_others() {
  if (is_in_step()) {
    return;
  }
  try {
    training_.barrier();
  } catch (const TimeoutError& error) {
    log::warn(
        "[recipes.train] {} The last evaluation and the last checkpoint may lack steps of that "
        "worker",
        error.what());
  }
}

/// What is there is not written again. In other modes others may have made steps since.
void ClickLoop::save() {
  if (run_dir_.empty() || (is_in_step() && saved_at_ == step())) {
    return;
  }
  training_.save();
  saved_at_ = step();
}

/// On the first worker; in sync the others wait for its next step.
void ClickLoop::evaluate() {
  if (settings_.val.empty() || !is_first()) {
    return;
  }
  if (evaluated_at_ == step()) {
    figures_.update(evaluation_);
    return;
  }
  evaluated_at_ = step();
  const ClickLogSpec log = click_log("--val", settings_.val);
  const recommend::ClickScores scores =
      recommend::scores_on(*parts_.model,
                           {.path = log.path,
                            .batch_size = settings_.eval_batch_size.value_or(kClickBatch),
                            .limit = log.limit});
  const double auc = scores.auc();
  evaluation_ = {{"eval_loss", scores.log_loss()}, {"eval_auc", auc}};
  figures_.update(evaluation_);
  records_.add({{"step", step()},
                {"epoch", epoch_ + 1},
                {"split", "eval"},
                {"loss", scores.log_loss()},
                {"metrics", {{"auc", auc}}}});
  if (settings_.verbose > 0) {
    fleet::detail::print_line(
        fmt::format("after step {}: log loss {:.4f}, AUC {:.4f} on {} lines\n",
                    step(),
                    scores.log_loss(),
                    auc,
                    text::count(scores.lines())));
  }
}

void ClickLoop::finish() {
  bar_.reset();
  const int signal = signals_.has_value() ? signals_->received() : 0;
  if (signal == 0) {
    if (epoch_steps_ > 0) {
      figures_["loss"] = epoch_loss_ / static_cast<double>(epoch_steps_);
    }
    await_others();
    evaluate();
    epochs_.push_back(figures_);
  }
  save();
  if (is_first() && step() > training_.begun()) {
    records_.add_servers(step(), training_.server_stats());
  }
  training_.stop();
  const bool leaves = signal != 0;
  records_.end(leaves ? runs::RunState::kStopped : runs::RunState::kFinished,
               leaves ? "a signal came: saved" : "",
               !leaves            ? 0
               : signal == SIGINT ? 128 + SIGINT
                                  : kResumeExitCode);
  records_.write(about());
}

ordered_json ClickLoop::about() const {
  const double seconds = std::max(seconds_since(begun_), 1e-9);
  return {{"rank", training_.roles().index},
          {"host", this_host()},
          {"threads", at::get_num_threads()},
          {"step", step()},
          {"lines_per_second", static_cast<double>(lines_) / seconds},
          {"input_wait", std::min(waited_ / seconds, 1.0)}};
}

ordered_json ClickLoop::result() const {
  const ps::Roles& roles = training_.roles();
  const int signal = signals_.has_value() ? signals_->received() : 0;
  ordered_json json{{"command", "train"},
                    {"ended", signal != 0 ? "preempted" : "finished"},
                    {"steps", step()},
                    {"processes", roles.workers},
                    {"servers", roles.own_server ? 0 : roles.servers},
                    {"seconds", seconds_since(begun_)},
                    {"result", figures_},
                    {"epochs", epochs_},
                    {"run_dir", run_dir_.empty() ? ordered_json(nullptr) : ordered_json(run_dir_)}};
  if (signal != 0) {
    json["exit_code"] = signal == SIGINT ? 128 + SIGINT : kResumeExitCode;
  }
  if (!run_dir_.empty()) {
    json["weights"] = newest_checkpoint(run_dir_);
  }
  return json;
}

}  // namespace

ordered_json train_clicks(const TrainSettings& settings) {
  const TrainSettings resolved = resolve_clicks(settings);
  const ps::Roles roles = click_roles(resolved);
  const std::string run_dir = run_folder_of(resolved, roles);
  ClickParts parts = click_parts(resolved);
  const bool is_first = !roles.is_server && roles.index == 0;
  if (!roles.is_server) {
    check_click_log("--data", resolved.data);
  }
  if (is_first && !resolved.val.empty()) {
    check_click_log("--val", resolved.val);
  }
  ps::ServedTraining training(
      *parts.model, parts.optimizer, training_options(resolved, roles, run_dir));
  if (training.is_server()) {
    training.serve();
    return {};
  }
  if (resolved.resume == "must" && training.steps() == 0) {
    throw CheckpointError("recipes.resume",
                          "there is no whole checkpoint to resume from",
                          {run_dir + "/checkpoints"});
  }
  if (is_first) {
    note_job(run_dir);
  }
  ordered_json result = ClickLoop(resolved, training, parts, run_dir).run();
  return is_first ? result : ordered_json();
}

Plan plan_clicks(const TrainSettings& settings) {
  const TrainSettings resolved = resolve_clicks(settings);
  const ps::Roles roles = click_roles(resolved);
  const ClickParts parts = click_parts(resolved);
  int64_t parameters = 0;
  for (const at::Tensor& parameter : parts.model->parameters()) {
    parameters += parameter.numel();
  }
  check_click_log("--data", resolved.data);
  if (!resolved.val.empty()) {
    check_click_log("--val", resolved.val);
  }
  return {.options = to_json(resolved),
          .data = {{"trained_on", resolved.data},
                   {"evaluated_on",
                    resolved.val.empty() ? ordered_json(nullptr) : ordered_json(resolved.val)}},
          .model = {{"name", resolved.model},
                    {"columns", recommend::kClickColumns},
                    {"parameters", parameters}},
          .training = {{"processes", roles.workers},
                       {"servers", roles.own_server ? 0 : roles.servers},
                       {"mode", resolved.mode},
                       {"samples_per_update", resolved.batch_size * roles.workers}}};
}

}  // namespace argosy::recipes
