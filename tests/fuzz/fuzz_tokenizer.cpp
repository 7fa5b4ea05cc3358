// Files of tokenizers: tokenizer.json and models of sentencepiece. Seeds: corpus/tokenizer.
// fuzz-sources: base/text.cpp os/fd.cpp os/whole_file.cpp text/added_tokens.cpp text/bpe_model.cpp
//   text/bpe_tokenizer.cpp text/byte_alphabet.cpp text/byte_tokenizer.cpp text/character_map.cpp
//   text/gpt2_files.cpp text/open_tokenizer.cpp text/sentencepiece_model.cpp
//   text/sentencepiece_tokenizer.cpp text/splitter.cpp text/tokenizer.cpp text/tokenizer_impl.cpp
//   text/tokenizer_json.cpp text/trie.cpp text/utf8.cpp text/vocab_reader.cpp
// fuzz-libraries: -lpcre2-8
// fuzz-options: -max_len=4096
// fuzz-rooms: argosy::text
#include <cstdlib>
#include <optional>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/text/open_tokenizer.h"

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy::text;  // NOLINT(google-build-using-namespace): this file is about it
  try {
    const Tokenizer tokenizer = open_tokenizer(fuzz_file(data, size));
    const std::string text = "<|end|> The \xC3\xA9\xF0\x9F\x94\xA5 ab  12\xFF\n" +
                             std::string(reinterpret_cast<const char*>(data), size % 64);
    const std::vector<int32_t> ids = tokenizer.encode(text);
    (void)tokenizer.decode(ids);  // every id that comes out has a token
    (void)tokenizer.digest();
  } catch (const argosy::DataError&) {  // what bad input is to bring
  }
  return 0;
}
