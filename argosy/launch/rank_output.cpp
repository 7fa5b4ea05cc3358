#include "argosy/launch/rank_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>

#include "argosy/launch/report.h"

namespace argosy::launch {
namespace {

constexpr size_t kChunk = size_t{64} << 10;  // what a pipe holds
constexpr int kChunksPerTurn = 4;

bool begins_in(std::string_view bytes, std::string_view line) {
  const std::less<const char*> before;
  return !before(line.data(), bytes.data()) && before(line.data(), bytes.data() + bytes.size());
}

}  // namespace

RankOutput::RankOutput(const Start& start, os::UniqueFd out_fd, os::UniqueFd err_fd)
    : prefix_(start.prefix),
      colored_prefix_(start.color.empty() ? prefix_ : start.color + prefix_ + "\x1b[0m"),
      live_(start.live),
      streams_{{{std::move(out_fd), start.out}, {std::move(err_fd), start.err}}},
      combined_(start.combined),
      combined_prefix_{fmt::format("rank {} out| ", start.rank),
                       fmt::format("rank {} err| ", start.rank)} {}

std::vector<int> RankOutput::fds() const {
  std::vector<int> open;
  for (const Stream& stream : streams_) {
    if (stream.fd && !stream.route.sink->full()) {
      open.push_back(stream.fd.get());
    }
  }
  return open;
}

void RankOutput::add_line(std::string& text, const Stream& stream, std::string_view line) const {
  const bool terminal = stream.route.sink->terminal();
  text.append(terminal ? colored_prefix_ : prefix_)
      .append(terminal ? after_last_redraw(line) : line) += '\n';
}

std::string RankOutput::combined_start(const Stream& stream) {
  return combined_ == nullptr ? ""
                              : combined_->stamp(std::chrono::system_clock::now()) +
                                    combined_prefix_[&stream == &streams_[0] ? 0 : 1];
}

/// Of one read; kept from one to the next, because growing anew would copy and touch as much again.
struct RankOutput::Texts {
  std::string chunk = std::string(kChunk, '\0');
  std::string shown{};
  std::string combined{};
  std::string filtered{};

  /// Empties `text`. What a read of nothing but line ends has made of it is not kept.
  static void clear(std::string& text) {
    constexpr size_t kMostKept = size_t{1} << 20;
    text.clear();
    if (text.capacity() > kMostKept) {
      text.shrink_to_fit();
    }
  }
  static Texts& of_this_thread() {
    static thread_local Texts texts;
    return texts;
  }
};

/// Collects the lines of one read, `bytes`, for the files that get whole lines, and writes them at
/// its end.
class RankOutput::Copies final {
 public:
  Copies(RankOutput& output, Stream& stream, std::string_view bytes)
      : output_(output),
        stream_(stream),
        start_(output.combined_start(stream)),
        forgotten_(Tail::forgotten(bytes)) {
    Texts::clear(combined_);
    Texts::clear(filtered_);
  }
  ~Copies() {
    Sink& err = *output_.streams_[1].route.sink;
    if (output_.combined_ != nullptr) {
      err.write(output_.combined_->write(combined_));
    }
    if (LineFilter* filter = stream_.route.filter.get()) {
      err.write(filter->write(filtered_));
    }
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  Copies(Copies&&) = delete;
  Copies& operator=(Copies&&) = delete;

  void add(std::string_view line) {
    if (!begins_in(forgotten_, line)) {
      output_.tail_.add(line);
    }
    if (!start_.empty()) {
      combined_.append(start_).append(line) += '\n';
    }
    const LineFilter* filter = stream_.route.filter.get();
    if (filter != nullptr && filter->wants(line)) {
      filtered_.append(output_.prefix_).append(line) += '\n';
    }
  }

 private:
  RankOutput& output_;
  Stream& stream_;
  const std::string start_;
  const std::string_view forgotten_;
  std::string& combined_ = Texts::of_this_thread().combined;
  std::string& filtered_ = Texts::of_this_thread().filtered;
};

void RankOutput::give_out(Stream& stream, std::string_view bytes) {
  Sink& sink = *stream.route.sink;
  std::string& text = Texts::of_this_thread().shown;
  Texts::clear(text);
  {
    Copies copies(*this, stream, bytes);
    stream.lines.add(bytes, [&](std::string_view line) {
      copies.add(line);
      if (stream.route.shown) {
        last_sink_ = &sink;
        add_line(text, stream, line);
      }
    });
    sink.write(text);
  }
  if (!sink.terminal()) {
    return;
  }
  stream.lines.drop_redrawn();
  if (live_ && stream.route.shown) {
    const std::string_view live = after_last_redraw(stream.lines.unfinished());
    sink.set_live(live.empty() ? std::string() : prefix_ + std::string(live));
  }
}

void RankOutput::finish_lines(Stream& stream) {
  Copies copies(*this, stream, "");
  stream.lines.finish([&](std::string_view line) {
    copies.add(line);
    if (stream.route.shown) {
      last_sink_ = stream.route.sink;
      stream.route.sink->set_live("");
      std::string text;
      add_line(text, stream, line);
      stream.route.sink->write(text);
    }
  });
}

std::string RankOutput::last_words(const Sink& where,
                                   std::chrono::steady_clock::time_point end) const {
  constexpr std::chrono::milliseconds kLong{250};
  std::string words;
  if (last_sink_ == &where && end - last_read_ < kLong) {
    for (const std::string& line : tail_.lines()) {
      words += without_time(line);
      words += '\n';
    }
  }
  return words;
}

std::string RankOutput::log_paths() const {
  const auto path = [](const Stream& stream) {
    return stream.route.file ? stream.route.file->path() : std::string();
  };
  const std::string out = path(streams_[0]);
  const std::string err = path(streams_[1]);
  if (out.empty() || err.empty() || out == err) {
    return out.empty() ? err : out;
  }
  return out + " and " + err;
}

bool RankOutput::logs_cut() const {
  return std::ranges::any_of(streams_,
                             [](const Stream& s) { return s.route.file && s.route.file->cut(); });
}

bool RankOutput::read_once(Stream& stream) {
  if (!stream.fd) {
    return false;
  }
  std::string& chunk = Texts::of_this_thread().chunk;
  const ssize_t got = ::read(stream.fd.get(), chunk.data(), chunk.size());
  if (got > 0) {
    last_read_ = std::chrono::steady_clock::now();
    stream.printed = true;
    const std::string_view bytes(chunk.data(), static_cast<size_t>(got));
    if (stream.route.file) {
      streams_[1].route.sink->write(stream.route.file->write(bytes));
    }
    give_out(stream, bytes);
    return true;
  }
  if (got < 0 && errno == EINTR) {
    return true;
  }
  if (got == 0 || errno != EAGAIN) {
    finish_lines(stream);
    stream.fd.close();
  }
  return false;
}

void RankOutput::forward(int fd) {
  for (Stream& stream : streams_) {
    for (int i = 0; stream.fd.get() == fd && i < kChunksPerTurn && read_once(stream); ++i) {
    }
  }
}

void RankOutput::forward_rest() {
  for (Stream& stream : streams_) {
    // Bounded: a process that the rank left behind may write for ever.
    for (int i = 0; i < 2 * kChunksPerTurn && read_once(stream); ++i) {
    }
    finish_lines(stream);
  }
}

}  // namespace argosy::launch
