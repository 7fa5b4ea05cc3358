#include "argosy/events/visualdl_writer.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/events/append_file.h"
#include "argosy/events/histogram.h"
#include "argosy/events/log_values.h"
#include "argosy/events/tfrecord.h"

#include "visualdl_record.pb.h"

namespace argosy::events {
namespace {

int64_t milliseconds_of(WallTime at) {
  const WallTime moment = at == WallTime{} ? std::chrono::system_clock::now() : at;
  return std::chrono::round<std::chrono::milliseconds>(moment.time_since_epoch()).count();
}

/// A name that no file has: LogWriter's own is the second alone, and two writers that start in one
/// would write over each other.
std::string free_path(const std::string& folder, const std::string& suffix) {
  const std::string start = fmt::format("{}/vdlrecords.{:010}.log{}",
                                        folder.empty() ? "." : folder,
                                        milliseconds_of({}) / 1000,
                                        suffix);
  std::string path = start;
  std::error_code ignored;
  for (int i = 1; std::filesystem::exists(path, ignored); ++i) {
    path = fmt::format("{}.{}", start, i);
  }
  return path;
}

visualdl::Record record_of(std::string_view tag, int64_t step, WallTime at) {
  ARGOSY_CHECK(tag.find('%') == std::string_view::npos,
               "events.visualdl",
               "\"{}\": VisualDL knows no tag with a % in it",
               tag);
  visualdl::Record record;
  visualdl::Record::Value& value = *record.add_values();
  value.set_step(step);
  value.set_tag(valid_utf8(tag));
  value.set_timestamp(milliseconds_of(at));
  return record;
}

}  // namespace

struct VisualDLWriter::Impl {
  Impl(const std::string& folder, const VisualDLOptions& options)
      : file(free_path(folder, options.filename_suffix), "events.visualdl", Existing::kRefuse) {
    visualdl::Record meta = record_of("meta_data_tag", 0, {});
    meta.mutable_values(0)->mutable_meta_data()->set_display_name(valid_utf8(options.display_name));
    write(meta);
  }

  /// The frame is the length alone; readers check nothing.
  void write(const visualdl::Record& record) {
    ARGOSY_CHECK(!closed, "events.visualdl", "{}: the writer is closed", file.path());
    const std::string data = record.SerializeAsString();
    file.append(little_endian(data.size(), 8) + data);
  }
  void add_picture(std::string_view tag, const LogPicture& picture, int64_t step, WallTime at) {
    visualdl::Record record = record_of(tag, step, at);
    record.mutable_values(0)->mutable_image()->set_encoded(picture.png.data(), picture.png.size());
    write(record);
  }

  ForgivingFile file;
  std::atomic<bool> closed = false;
};

VisualDLWriter::VisualDLWriter(const std::string& folder, const VisualDLOptions& options)
    : impl_(std::make_unique<Impl>(folder, options)) {}

VisualDLWriter::~VisualDLWriter() = default;
VisualDLWriter::VisualDLWriter(VisualDLWriter&&) noexcept = default;

void VisualDLWriter::add_scalar(std::string_view tag, double value, int64_t step, WallTime at) {
  visualdl::Record record = record_of(tag, step, at);
  record.mutable_values(0)->set_value(static_cast<float>(value));
  impl_->write(record);
}

void VisualDLWriter::add_scalars(std::string_view main_tag,
                                 const std::map<std::string, double>& values,
                                 int64_t step,
                                 WallTime at) {
  for (const auto& [name, value] : values) {
    visualdl::Record record = record_of(main_tag, step, at);
    visualdl::Record::TagValue& tagged = *record.mutable_values(0)->mutable_tag_value();
    tagged.set_tag(valid_utf8(name));
    tagged.set_value(static_cast<float>(value));
    impl_->write(record);
  }
}

void VisualDLWriter::add_image(std::string_view tag,
                               const image::Image& picture,
                               int64_t step,
                               WallTime at) {
  impl_->add_picture(tag, log_picture(picture), step, at);
}

void VisualDLWriter::add_image(std::string_view tag,
                               std::span<const uint8_t> png,
                               int64_t step,
                               WallTime at) {
  impl_->add_picture(tag, log_picture(png), step, at);
}

void VisualDLWriter::add_histogram(
    std::string_view tag, std::span<const float> values, int64_t step, int buckets, WallTime at) {
  const Histogram histogram = even_histogram(values, buckets);
  visualdl::Record record = record_of(tag, step, at);
  visualdl::Record::Histogram& proto = *record.mutable_values(0)->mutable_histogram();
  proto.mutable_counts()->Add(histogram.counts.begin(), histogram.counts.end());
  proto.mutable_edges()->Add(histogram.limits.begin(), histogram.limits.end());
  impl_->write(record);
}

void VisualDLWriter::add_text(std::string_view tag,
                              std::string_view text,
                              int64_t step,
                              WallTime at) {
  visualdl::Record record = record_of(tag, step, at);
  record.mutable_values(0)->mutable_text()->set_text(valid_utf8(text));
  impl_->write(record);
}

void VisualDLWriter::flush() {
  impl_->file.sync();
}

void VisualDLWriter::close() {
  impl_->closed = true;
  impl_->file.close();
}

const std::string& VisualDLWriter::path() const {
  return impl_->file.path();
}

int64_t VisualDLWriter::dropped() const {
  return impl_->file.dropped();
}

}  // namespace argosy::events
