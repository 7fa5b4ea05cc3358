#pragma once

/// Everything of room text: tokenizers, files of tokens, data sets over them, Gpt.
#include "argosy/text/generate_text.h"
#include "argosy/text/make_token_file.h"
#include "argosy/text/models/generate.h"
#include "argosy/text/models/gpt.h"
#include "argosy/text/models/gpt_loss.h"
#include "argosy/text/models/gpt_memory.h"
#include "argosy/text/models/hugging_face.h"
#include "argosy/text/open_tokenizer.h"
#include "argosy/text/pad_sequences.h"
#include "argosy/text/token_file.h"
#include "argosy/text/token_sequences.h"
#include "argosy/text/token_windows.h"
#include "argosy/text/tokenizer.h"
#include "argosy/text/train_bpe.h"
