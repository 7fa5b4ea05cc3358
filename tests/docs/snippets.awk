# The C++ in pages as one source that compiles: each block on its own, in a function that has a
# model and its data, or in a namespace where it is a type or a whole program.
function print_block() {
  ++number
  if (body ~ /int main\(/ || body ~ /^(struct|class) /) {
    sub(/int main\(/, "void program(", body)  # which need not return
    printf "namespace block_%d {\n#line %d \"%s\"\n%s}\n", number, first, FILENAME, body
  } else {
    printf "void block_%d(Scene& scene) {\n  auto& [train, valid, test, net, model] = scene;\n  {\n#line %d \"%s\"\n%s}}\n", \
           number, first, FILENAME, body
  }
}
NR == 1 {
  print "#include \"tests/docs/scene.h\"\nnamespace {"
}
/^```cpp$/ { inside = 1; body = ""; first = FNR + 1; next }
/^```$/ && inside { inside = 0; print_block(); next }
inside && !/^#include|^using namespace argosy/ { body = body $0 "\n"; next }
inside { body = body "\n" }
END { print "}  // namespace" }
