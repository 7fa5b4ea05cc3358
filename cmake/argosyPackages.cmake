# What find_package(argosy) needs to be there.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenMP COMPONENTS CXX)
find_dependency(fmt)
find_dependency(spdlog)
find_dependency(ZLIB)
find_dependency(OpenSSL 3.0)
find_dependency(Protobuf)
find_dependency(absl CONFIG)
find_dependency(gRPC CONFIG QUIET) # it would report what it does without
find_dependency(Gloo)
find_dependency(CLI11)
find_dependency(nlohmann_json)
