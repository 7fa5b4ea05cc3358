#include "argosy/text/token_sequences.h"

#include <algorithm>
#include <memory>

#include <torch/types.h>

#include "argosy/base/check.h"
#include "argosy/text/document_reader.h"

namespace argosy::text {
namespace {

constexpr const char* kSequences = "text.TokenSequences";
constexpr int64_t kScanTokens = int64_t{1} << 16;
constexpr size_t kLineBytes = size_t{4} << 20;

using Ids = std::vector<int32_t>;

/// Copies tokens out of memory.
std::function<void(int64_t, std::span<int64_t>)> from_memory(std::shared_ptr<const Ids> ids) {
  return [ids = std::move(ids)](int64_t first, std::span<int64_t> out) {
    std::copy_n(ids->begin() + first, out.size(), out.begin());
  };
}

}  // namespace

TokenSequences::TokenSequences(Copy copy, const TokenSequencesOptions& options)
    : options_(options), copy_(std::move(copy)) {
  ARGOSY_CHECK(options.max_length > 0,
               kSequences,
               "max_length must be positive, got {}",
               options.max_length);
}

TokenSequences::TokenSequences(const std::vector<Ids>& samples,
                               const TokenSequencesOptions& options)
    : TokenSequences(Copy(), options) {
  auto all = std::make_shared<Ids>();
  for (const Ids& sample : samples) {
    add(static_cast<int64_t>(all->size()), static_cast<int64_t>(sample.size()));
    all->insert(all->end(), sample.begin(), sample.end());
  }
  copy_ = from_memory(std::move(all));
}

TokenSequences TokenSequences::lines(const std::string& path,
                                     const Tokenizer& tokenizer,
                                     const LineOptions& options) {
  TokenSequences sequences(Copy(), options.sequences);
  auto all = std::make_shared<Ids>();
  DocumentReader reader(path, Documents::kLines, kLineBytes);
  bool begins = true;
  int64_t begin = 0;
  while (const auto piece = reader.next()) {
    const Ids ids = tokenizer.encode(piece->text,
                                     {.special_text = options.special_text,
                                      .bos = options.bos && begins,
                                      .eos = options.eos && piece->ends});
    all->insert(all->end(), ids.begin(), ids.end());
    begins = piece->ends;
    if (piece->ends) {
      const auto end = static_cast<int64_t>(all->size());
      sequences.add(begin, end - begin);
      begin = end;
    }
  }
  sequences.copy_ = from_memory(std::move(all));
  return sequences;
}

TokenSequences TokenSequences::documents(const TokenFile& file,
                                         const TokenSequencesOptions& options,
                                         std::optional<int32_t> end_of_text) {
  const std::optional<int32_t> end = end_of_text ? end_of_text : file.facts().end_of_text;
  ARGOSY_CHECK(end,
               kSequences,
               "{} has no header that says which token stands behind a document. Give it as "
               "end_of_text (GPT-2's is 50256)",
               file.path());
  TokenSequences sequences([file](int64_t first, std::span<int64_t> out) { file.copy(first, out); },
                           options);
  int64_t begin = 0;
  for (int64_t first = 0; first < file.size(); first += kScanTokens) {
    const Ids ids = file.ids(first, std::min(kScanTokens, file.size() - first));
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == *end) {
        const int64_t behind = first + static_cast<int64_t>(i) + 1;
        sequences.add(begin, behind - begin);
        begin = behind;
      }
    }
  }
  if (begin < file.size()) {  // nothing stands behind the last one
    sequences.add(begin, file.size() - begin);
  }
  return sequences;
}

void TokenSequences::add(int64_t begin, int64_t tokens) {
  if (tokens < 2) {
    ++left_out_;
    return;
  }
  begins_.push_back(begin);
  lengths_.push_back(std::min(tokens - 1, options_.max_length));
}

PadSequences::Sample TokenSequences::get(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               kSequences,
               "index {} is outside the data set of {} samples",
               index,
               size());
  const int64_t begin = begins_[static_cast<size_t>(index)];
  const auto length = lengths_[static_cast<size_t>(index)];
  at::Tensor inputs = at::empty({length}, at::kLong);
  at::Tensor targets = at::empty({length}, at::kLong);
  copy_(begin, {inputs.data_ptr<int64_t>(), static_cast<size_t>(length)});
  copy_(begin + 1, {targets.data_ptr<int64_t>(), static_cast<size_t>(length)});
  return {std::move(inputs), std::move(targets)};
}

}  // namespace argosy::text
