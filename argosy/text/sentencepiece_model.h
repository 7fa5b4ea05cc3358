#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::text {

/// What a .model file of sentencepiece holds, as far as encoding and decoding need it.
/// Source: sentencepiece 0.2.1, src/sentencepiece_model.proto.
struct SentencepieceModel {
  enum class Algorithm : uint8_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };
  enum class Type : uint8_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6
  };
  struct Piece {
    std::string text{};
    float score = 0;
    Type type = Type::kNormal;
  };

  std::vector<Piece> pieces{};  ///< by id
  Algorithm algorithm = Algorithm::kUnigram;
  bool byte_fallback = false;
  bool space_as_suffix = false;
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
  std::string pad_piece = "<pad>";
  std::string character_map{};  ///< of the normalizer; empty: characters stay as they are
  bool dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
  bool denormalizes = false;
};

/// Reads the bytes of a .model file. `path` stands in errors.
/// Errors: DataError when they are no such model.
[[nodiscard]] SentencepieceModel parse_sentencepiece_model(std::string_view bytes,
                                                           const std::string& path);

}  // namespace argosy::text
