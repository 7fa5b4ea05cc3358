#include "argosy/launch/line_buffer.h"

#include <algorithm>

namespace argosy::launch {

void LineBuffer::add(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const bool ended = end != std::string_view::npos;
    // A line longer than the limit is cut wherever its end lies, so that what is given out does not
    // depend on how the bytes happened to arrive.
    const size_t room = kLongest - unfinished_.size();
    const size_t take = std::min(ended ? end : bytes.size(), room);
    const std::string_view piece = bytes.substr(0, take);
    bytes.remove_prefix(take);
    if (ended && take == end) {
      bytes.remove_prefix(1);
    } else if (take < room) {
      unfinished_.append(piece);
      continue;
    }
    if (unfinished_.empty()) {
      sink(piece);
    } else {
      unfinished_.append(piece);
      sink(unfinished_);
      unfinished_.clear();
    }
  }
}

void LineBuffer::finish(const Sink& sink) {
  if (!unfinished_.empty()) {
    sink(unfinished_);
    unfinished_.clear();
  }
}

void LineBuffer::drop_redrawn() {
  const std::string_view kept = after_last_redraw(unfinished_);
  unfinished_.erase(0, static_cast<size_t>(kept.data() - unfinished_.data()));
}

void Tail::add(std::string_view line) {
  line = after_last_redraw(line);
  std::string& kept = ring_[count_++ % kLines];
  if (line.size() <= kLongest) {
    kept = line;
    return;
  }
  line.remove_prefix(line.size() - kLongest);
  const auto inside = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  while (!line.empty() && inside(line.front())) {  // of a character of UTF-8
    line.remove_prefix(1);
  }
  kept.assign("…").append(line);
}

std::string_view Tail::forgotten(std::string_view bytes) {
  for (size_t i = 0; i <= kLines; ++i) {
    const size_t end = bytes.rfind('\n');
    if (end == std::string_view::npos) {
      return "";
    }
    bytes = bytes.substr(0, end);
  }
  return bytes;
}

std::vector<std::string> Tail::lines() const {
  std::vector<std::string> result;
  for (size_t i = count_ - std::min(count_, kLines); i < count_; ++i) {
    result.push_back(ring_[i % kLines]);
  }
  return result;
}

std::string_view after_last_redraw(std::string_view line) {
  while (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  const size_t redraw = line.rfind('\r');
  return redraw == std::string_view::npos ? line : line.substr(redraw + 1);
}

}  // namespace argosy::launch
