#pragma once

#include "argosy/recipes/data.h"
#include "argosy/text/token_file.h"
#include "argosy/text/tokenizer.h"

// Internal to the room: text as tokens.
namespace argosy::recipes {

/// Opens the token file that the spec names, or makes one of its text, in the folder "tokens"
/// beside the data sets, where another start with the same files finds it. Of the processes of a
/// host the first one makes it. Collective over the job, if it is joined.
/// Errors: DataError for files that cannot be read, or tokens of another tokenizer.
[[nodiscard]] text::TokenFile open_tokens(const DataSpec& spec,
                                          const Values& values,
                                          const text::Tokenizer& tokenizer);

}  // namespace argosy::recipes
