#include "argosy/events/tensorboard_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/strings.h"
#include "argosy/events/append_file.h"
#include "argosy/events/histogram.h"
#include "argosy/events/log_values.h"
#include "argosy/events/tfrecord.h"
#include "argosy/os/addresses.h"

#include "event_file.pb.h"

namespace argosy::events {
namespace {

constexpr int kStringType = 7;  // DT_STRING of TensorFlow's types.proto

double seconds_of(WallTime at) {
  const WallTime moment = at == WallTime{} ? std::chrono::system_clock::now() : at;
  return std::chrono::duration<double>(moment.time_since_epoch()).count();
}

constexpr std::string_view kFile = "events.out.tfevents.";
constexpr int64_t kLatest = 9'999'999'999;  // of ten digits

/// Now, in seconds; where files are to be read after those that are there, later than these, also
/// if they are of this second or the clock of the host that wrote them is ahead.
int64_t seconds_in_name(const std::string& folder, const TensorBoardOptions& options) {
  auto seconds = static_cast<int64_t>(seconds_of({}));
  std::error_code error;  // a folder that is not there has none
  for (std::filesystem::directory_iterator entry(folder, error), end;
       options.purge_step.has_value() && !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kFile)) {
      const std::string_view rest = std::string_view(name).substr(kFile.size());
      const int64_t theirs = strings::parse_int(rest.substr(0, rest.find('.'))).value_or(0);
      seconds = std::max(seconds, std::min(theirs, kLatest - 1) + 1);
    }
  }
  return seconds;
}

/// TensorBoard wants "tfevents" in it and reads a folder's files in the order of their names.
std::string file_name(const std::string& folder, const TensorBoardOptions& options) {
  static std::atomic<int> count{0};
  return fmt::format("{}{:010}.{}.{}.{}{}",
                     kFile,
                     seconds_in_name(folder, options),
                     os::host_name(),
                     ::getpid(),
                     count++,
                     options.filename_suffix);
}

TensorBoardOptions checked(TensorBoardOptions options) {
  ARGOSY_CHECK(options.purge_step.value_or(0) >= 0,
               "events.tensorboard",
               "purge_step must not be negative, got {}",
               *options.purge_step);
  return options;
}

tensorboard::Event event_at(int64_t step, WallTime at) {
  tensorboard::Event event;
  event.set_wall_time(seconds_of(at));
  event.set_step(step);
  return event;
}

tensorboard::Summary::Value& value_of(tensorboard::Event& event, std::string_view tag) {
  tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(valid_utf8(tag));
  return value;
}

tensorboard::Histogram proto_of(const Histogram& histogram) {
  tensorboard::Histogram proto;
  proto.set_min(histogram.min);
  proto.set_max(histogram.max);
  proto.set_num(histogram.num);
  proto.set_sum(histogram.sum);
  proto.set_sum_squares(histogram.sum_squares);
  proto.mutable_bucket_limit()->Add(histogram.limits.begin(), histogram.limits.end());
  proto.mutable_bucket()->Add(histogram.counts.begin(), histogram.counts.end());
  return proto;
}

}  // namespace

struct TensorBoardWriter::Impl {
  Impl(std::string folder_of_file, TensorBoardOptions writer_options)
      : folder(folder_of_file.empty() ? "." : std::move(folder_of_file)),
        options(std::move(writer_options)),
        file(folder + "/" + file_name(folder, options), "events.tensorboard", Existing::kRefuse) {
    tensorboard::Event version = event_at(0, {});
    version.set_file_version("brain.Event:2");
    write(version);
    if (options.purge_step.has_value()) {
      purge(*options.purge_step);
    }
  }

  /// Twice, for TensorBoard takes the first START that it meets in a folder for its beginning and
  /// purges at the others. PyTorch writes one, which does nothing after files without any.
  void purge(int64_t step) {
    tensorboard::Event start = event_at(step, {});
    start.mutable_session_log()->set_status(tensorboard::SessionLog::kStart);
    write(start);
    write(start);
  }

  void write(const tensorboard::Event& event) {
    ARGOSY_CHECK(!closed, "events.tensorboard", "{}: the writer is closed", file.path());
    file.append(tfrecord_frame(event.SerializeAsString()));
  }
  void add_picture(std::string_view tag, LogPicture picture, int64_t step, WallTime at) {
    tensorboard::Event event = event_at(step, at);
    tensorboard::Summary::Image& image = *value_of(event, tag).mutable_image();
    image.set_height(picture.height);
    image.set_width(picture.width);
    image.set_colorspace(picture.channels);
    image.set_encoded(picture.png.data(), picture.png.size());
    write(event);
  }
  TensorBoardWriter& part(const std::string& name) {
    const std::lock_guard lock(mutex);
    auto [found, added] = parts.try_emplace(name);
    if (added) {
      found->second = std::make_unique<TensorBoardWriter>(folder + "/" + name, options);
    }
    return *found->second;
  }

  std::string folder;
  TensorBoardOptions options;
  ForgivingFile file;
  std::atomic<bool> closed = false;
  mutable std::mutex mutex{};  // of the map
  std::map<std::string, std::unique_ptr<TensorBoardWriter>> parts{};
};

TensorBoardWriter::TensorBoardWriter(const std::string& folder, TensorBoardOptions options)
    : impl_(std::make_unique<Impl>(folder, checked(std::move(options)))) {}

TensorBoardWriter::~TensorBoardWriter() = default;
TensorBoardWriter::TensorBoardWriter(TensorBoardWriter&&) noexcept = default;

void TensorBoardWriter::add_scalar(std::string_view tag, double value, int64_t step, WallTime at) {
  tensorboard::Event event = event_at(step, at);
  value_of(event, tag).set_simple_value(static_cast<float>(value));
  impl_->write(event);
}

void TensorBoardWriter::add_scalars(std::string_view main_tag,
                                    const std::map<std::string, double>& values,
                                    int64_t step,
                                    WallTime at) {
  ARGOSY_CHECK(!impl_->closed, "events.tensorboard", "{}: the writer is closed", path());
  for (const auto& [name, value] : values) {
    std::string folder = fmt::format("{}_{}", main_tag, name);
    std::ranges::replace(folder, '/', '_');  // a tag is not to lead out of the folder
    impl_->part(folder).add_scalar(main_tag, value, step, at);
  }
}

void TensorBoardWriter::add_image(std::string_view tag,
                                  const image::Image& picture,
                                  int64_t step,
                                  WallTime at) {
  impl_->add_picture(tag, log_picture(picture), step, at);
}

void TensorBoardWriter::add_image(std::string_view tag,
                                  std::span<const uint8_t> png,
                                  int64_t step,
                                  WallTime at) {
  impl_->add_picture(tag, log_picture(png), step, at);
}

void TensorBoardWriter::add_histogram(std::string_view tag,
                                      std::span<const float> values,
                                      int64_t step,
                                      WallTime at) {
  tensorboard::Event event = event_at(step, at);
  *value_of(event, tag).mutable_histogram() = proto_of(tensorflow_histogram(values));
  impl_->write(event);
}

void TensorBoardWriter::add_text(std::string_view tag,
                                 std::string_view text,
                                 int64_t step,
                                 WallTime at) {
  tensorboard::Event event = event_at(step, at);
  tensorboard::Summary::Value& value = value_of(event, fmt::format("{}/text_summary", tag));
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  tensorboard::Tensor& tensor = *value.mutable_tensor();
  tensor.set_dtype(kStringType);
  tensor.mutable_shape()->add_dim()->set_size(1);
  tensor.add_string_value(valid_utf8(text));
  impl_->write(event);
}

void TensorBoardWriter::flush() {
  impl_->file.sync();
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [name, part] : impl_->parts) {
    part->flush();
  }
}

void TensorBoardWriter::close() {
  impl_->closed = true;
  impl_->file.close();
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [name, part] : impl_->parts) {
    part->close();
  }
}

const std::string& TensorBoardWriter::path() const {
  return impl_->file.path();
}

int64_t TensorBoardWriter::dropped() const {
  const std::lock_guard lock(impl_->mutex);
  int64_t all = impl_->file.dropped();
  for (const auto& [name, part] : impl_->parts) {
    all += part->dropped();
  }
  return all;
}

}  // namespace argosy::events
