#include "argosy/text/splitter.h"

#include <array>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/text/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace argosy::text {
namespace {

constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;

/// PCRE2's \s also takes U+180E, which has not been white space since Unicode 6.3.
std::string with_unicode_space(std::string_view pattern) {
  std::string translated;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      translated += pattern[i];
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's' || escaped == 'S') {
      translated += escaped == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
    } else {
      translated += '\\';
      translated += escaped;
    }
  }
  return translated;
}

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(error, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

/// Room for one match. A caller takes its bounds out before anybody else on this thread matches.
pcre2_match_data* match_room() {
  thread_local const std::unique_ptr<pcre2_match_data, FreeMatch> room(
      pcre2_match_data_create(1, nullptr));
  return room.get();
}

}  // namespace

struct Splitter::Code {
  pcre2_code* code = nullptr;

  Code() = default;
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  /// Returns the bounds of the first match from `start` on; false: there is none.
  bool match(std::string_view text, size_t start, std::pair<size_t, size_t>& bounds) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const auto run = [&](uint32_t options) {
      return pcre2_match(
          code, subject, text.size(), start, options | PCRE2_NO_UTF_CHECK, match_room(), nullptr);
    };
    int result = run(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = run(PCRE2_NO_JIT);
    }
    if (result == PCRE2_ERROR_NOMATCH) {
      return false;
    }
    if (result < 0) {
      throw DataError("text.split",
                      fmt::format("the pre-tokenizer's expression cannot be matched in this text: "
                                  "{}. Simplify it, or encode shorter texts",
                                  message_of(result)));
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match_room());
    bounds = {ends[0], ends[1]};
    return true;
  }
};

Splitter::Splitter(std::string_view pattern, Keep keep, const char* where, const std::string& path)
    : pattern_(pattern), keep_(keep) {
  const std::string translated = with_unicode_space(pattern);
  auto code = std::make_shared<Code>();
  int error = 0;
  PCRE2_SIZE at = 0;
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                             translated.size(),
                             kOptions,
                             &error,
                             &at,
                             nullptr);
  if (code->code == nullptr) {
    throw DataError(where,
                    fmt::format("the pre-tokenizer's expression \"{}\" cannot be read: {} (near "
                                "its byte {})",
                                pattern,
                                message_of(error),
                                at),
                    {path});
  }
  (void)pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);  // where it cannot, it interprets
  code_ = std::move(code);
}

void Splitter::split(std::string_view text,
                     const std::function<void(std::string_view)>& piece) const {
  while (!text.empty()) {
    size_t valid = 0;
    while (const size_t bytes = character_bytes(text.substr(valid))) {
      valid += bytes;
    }
    split_valid(text.substr(0, valid), piece);
    text.remove_prefix(valid);
    size_t invalid = 0;
    while (invalid < text.size() && character_bytes(text.substr(invalid)) == 0) {
      ++invalid;
    }
    if (invalid > 0 && keep_ == Keep::kAll) {
      piece(text.substr(0, invalid));
    }
    text.remove_prefix(invalid);
  }
}

void Splitter::split_valid(std::string_view text,
                           const std::function<void(std::string_view)>& piece) const {
  size_t done = 0;    // what was given out, or dropped
  size_t search = 0;  // where the next match may begin
  std::pair<size_t, size_t> bounds;
  while (search < text.size() && code_->match(text, search, bounds)) {
    const auto [begin, end] = bounds;
    if (begin == end) {  // a match of nothing cuts nothing
      search = end + (end < text.size() ? character_bytes(text.substr(end)) : 1);
      continue;
    }
    if (begin > done && keep_ == Keep::kAll) {
      piece(text.substr(done, begin - done));
    }
    piece(text.substr(begin, end - begin));
    done = search = end;
  }
  if (done < text.size() && keep_ == Keep::kAll) {
    piece(text.substr(done));
  }
}

}  // namespace argosy::text
