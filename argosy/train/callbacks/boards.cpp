#include "argosy/train/callbacks/boards.h"

#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/train/callbacks/description.h"
#include "argosy/train/model.h"

namespace argosy::train {
namespace {

template <typename Writer>
constexpr bool kIsTensorBoard = std::is_same_v<Writer, events::TensorBoardWriter>;

template <typename Writer>
constexpr const char* kWhere = kIsTensorBoard<Writer> ? "train.TensorBoard" : "train.VisualDL";

template <typename Writer>
constexpr const char* kFolder = kIsTensorBoard<Writer> ? "/tensorboard" : "/visualdl";

/// What stands in the folder of later updates is of a run that was killed, or of another training:
/// TensorBoard shows it no more. VisualDL shows the newest file of a folder only.
template <typename Writer>
std::shared_ptr<Writer> writer_in(const std::string& folder, int64_t step) {
  if constexpr (kIsTensorBoard<Writer>) {
    const events::TensorBoardOptions options{.purge_step = step == 0 ? 0 : step + 1};
    return std::make_shared<Writer>(folder, options);
  } else {
    return std::make_shared<Writer>(folder);
  }
}

template <typename Writer>
void add_histogram(Writer& writer, const std::string& tag, const at::Tensor& values, int64_t step) {
  const at::Tensor floats = values.detach().to(at::kCPU, at::kFloat).contiguous();
  writer.add_histogram(
      tag,
      std::span(floats.template data_ptr<float>(), static_cast<std::size_t>(floats.numel())),
      step);
}

}  // namespace

template <typename Writer>
Board<Writer>::Board(std::string folder, const BoardOptions& options)
    : folder_(std::move(folder)), options_(options) {
  ARGOSY_CHECK(options.log_freq >= 0 && options.histogram_freq >= 0,
               kWhere<Writer>,
               "log_freq and histogram_freq must not be negative, got {} and {}",
               options.log_freq,
               options.histogram_freq);
}

template <typename Writer>
void Board<Writer>::on_train_begin(const Training& training) {
  ARGOSY_CHECK(!folder_.empty() || !training.run_dir.empty(),
               kWhere<Writer>,
               "no folder, and fit() has no run_dir either: give it one of them");
  window_ = detail::TrainWindow(options_.log_freq > 0 ? options_.log_freq : training.log_freq);
  samples_.set_class_names(training.class_names);
  if (training.model.is_first_worker()) {
    const std::string folder = folder_.empty() ? training.run_dir + kFolder<Writer> : folder_;
    writer_ = writer_in<Writer>(folder, training.step);
    writer_->add_text("training", detail::description_table(training), training.step);
  }
}

template <typename Writer>
void Board<Writer>::on_epoch_begin(const Epoch& /*epoch*/) {
  window_.begin_epoch();
}

template <typename Writer>
void Board<Writer>::on_phase(const Phase& phase) {
  window_.add(phase);
}

template <typename Writer>
void Board<Writer>::on_before_update(const Step& step) {
  if (writer_ == nullptr || options_.histogram_freq == 0 ||
      step.step % options_.histogram_freq != 0) {
    return;
  }
  const bool whole = step.model.optimizer().impl()->sharded() == nullptr;
  for (const auto& [name, parameter] : step.model.parameters()) {
    add_histogram(*writer_, "weights/" + name, parameter, step.step);
    if (whole && parameter.grad().defined()) {
      add_histogram(*writer_, "gradients/" + name, parameter.grad(), step.step);
    }
  }
}

template <typename Writer>
void Board<Writer>::on_train_batch_end(const Step& step) {
  if (writer_ == nullptr) {
    return;
  }
  if (const auto figures = window_.add(step)) {
    const auto add = [&](std::string_view name, double value) {
      writer_->add_scalar("train/" + std::string(name), value, figures->step);
    };
    add("loss", figures->loss);
    add("lr", figures->lr);
    add(figures->counted.rate_name(), figures->rate());
    add("input_wait", figures->input_wait);
    for (const auto& [name, value] : figures->metrics) {
      add(name, value);
    }
  }
}

template <typename Writer>
void Board<Writer>::on_eval_begin(const Evaluation& /*evaluation*/) {
  samples_.clear();
}

template <typename Writer>
void Board<Writer>::on_eval_batch_end(const EvalStep& step) {
  if (writer_ != nullptr && options_.samples) {
    samples_.add(step);
  }
}

template <typename Writer>
void Board<Writer>::on_epoch_end(const Epoch& epoch) {
  if (writer_ == nullptr) {
    return;
  }
  for (const auto& [name, value] : detail::evaluation_in(epoch.logs)) {
    writer_->add_scalar("eval/" + name, value, epoch.epoch + 1);
  }
  if (!samples_.empty()) {
    writer_->add_image("eval/samples", samples_.grid(), epoch.epoch + 1);
    writer_->add_text("eval/captions", samples_.table(), epoch.epoch + 1);
    samples_.clear();
  }
}

template <typename Writer>
void Board<Writer>::on_train_end(const Training& /*training*/) {
  close();
}

template <typename Writer>
void Board<Writer>::on_exception(const Training& /*training*/, const std::string& /*what*/) {
  close();
}

template <typename Writer>
void Board<Writer>::close() {
  if (writer_ != nullptr) {
    writer_->flush();
    writer_->close();
    writer_.reset();
  }
}

template class Board<events::TensorBoardWriter>;
template class Board<events::VisualDLWriter>;

}  // namespace argosy::train
