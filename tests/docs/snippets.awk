# The C++ in pages as one source that compiles: each block on its own, in a function that has a
# model and its data, or in a namespace where it has types, functions or a whole program. Headers that a block names
# beside argosy.h are included.
function print_block() {
  ++number
  if (body ~ /(^|\n)[A-Za-z][A-Za-z0-9_:<> ]*[ &*][a-z_]+\([^;]*\) \{\n/ || body ~ /(^|\n)(struct|class) /) {
    sub(/int main\(/, "void program(", body)  # which need not return
    code = code sprintf("namespace block_%d {\n#line %d \"%s\"\n%s}\n", number, first, FILENAME, body)
  } else {
    code = code sprintf("void block_%d(Scene& scene) {\n  auto& [train, valid, test, net, model] = scene;\n  {\n#line %d \"%s\"\n%s}}\n", \
           number, first, FILENAME, body)
  }
}
/^```cpp$/ { inside = 1; body = ""; first = FNR + 1; next }
/^```$/ && inside { inside = 0; print_block(); next }
inside && /^#include </ { print }
inside && !/^#include|^using namespace argosy/ { body = body $0 "\n"; next }
inside { body = body "\n" }
END { print "#include \"tests/docs/scene.h\"\nnamespace {"; printf "%s}  // namespace\n", code }
