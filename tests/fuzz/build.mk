# make -f tests/fuzz/build.mk [BUILD=build/fuzz] [targets]: the fuzz targets, by clang with libFuzzer and the address
# and undefined sanitizers. No CMake, no libtorch: a target takes seconds.
#
# A target is a file tests/fuzz/fuzz_NAME.cpp. The comment at its head says what it needs:
#   // fuzz-sources: formats/idx.cpp ...      below argosy/, compiled here, shared by all targets
#   // fuzz-libraries: -lz ...
#   // fuzz-options: -max_len=4096 ...        of libFuzzer, see run.sh
#   // fuzz-rooms: argosy::formats ...        what the ordinary build links to replay the seeds
BUILD ?= build/fuzz
CXX := clang++-14
CXXFLAGS := -std=c++20 -O1 -g -fno-omit-frame-pointer -Wall -Wextra -I. -DFMT_SHARED -D_GLIBCXX_ASSERTIONS \
  -fsanitize=address,undefined -fno-sanitize-recover=undefined
COMMON := base/error.cpp base/strings.cpp

NAMES := $(patsubst tests/fuzz/fuzz_%.cpp,%,$(wildcard tests/fuzz/fuzz_*.cpp))
field = $(shell tests/fuzz/field.sh tests/fuzz/fuzz_$(1).cpp $(2))
objects = $(patsubst %.cpp,$(BUILD)/%.o,$(addprefix argosy/,$(COMMON) $(call field,$(1),sources)) tests/fuzz/fuzz_$(1).cpp)

.DELETE_ON_ERROR:
.PHONY: all $(NAMES)
all: $(NAMES)

define target
$(1): $(BUILD)/fuzz_$(1)
$(BUILD)/fuzz_$(1): $(call objects,$(1))
	@$(CXX) $(CXXFLAGS) -fsanitize=fuzzer $$^ -lfmt $(call field,$(1),libraries) -o $$@
endef
$(foreach name,$(NAMES),$(eval $(call target,$(name))))

$(BUILD)/%.o: %.cpp
	@mkdir -p $(dir $@)
	@$(CXX) $(CXXFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
