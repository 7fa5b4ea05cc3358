// What Python sees of the backend.
#include <pybind11/chrono.h>

#include <cmath>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "argosy/abi/interpreter.h"

#include "process_group.h"

namespace py = pybind11;
using argosy_torch::ProcessGroup;

namespace {

c10::intrusive_ptr<ProcessGroup> make(const c10::intrusive_ptr<c10d::Store>& store,
                                      int rank,
                                      int size,
                                      const std::string& name,
                                      const std::string& towards,
                                      double timeout,
                                      const std::vector<int>& world_ranks) {
  const py::gil_scoped_release released;  // here, for the lock is needed to keep what this returns
  const std::chrono::milliseconds limit(static_cast<int64_t>(std::ceil(timeout * 1000)));
  return c10::make_intrusive<ProcessGroup>(
      store, rank, size, argosy_torch::GroupOptions{name, towards, limit, world_ranks});
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::module_::import("torch.distributed");  // has the classes that these are made of
  module.def("close_all", &argosy::abi::close_all_groups);
  module.def("load",
             [](const std::string& path) { argosy_torch::library().load(path, "argosy.torch"); });
  py::class_<ProcessGroup, argosy_torch::Base, c10::intrusive_ptr<ProcessGroup>>(
      module, "ProcessGroupArgosy")
      .def(py::init(&make),
           py::arg("store"),
           py::arg("rank"),
           py::arg("size"),
           py::arg("name"),
           py::arg("towards"),
           py::arg("timeout"),
           py::arg("world_ranks"))
      .def("_set_default_timeout", &ProcessGroup::setTimeout, py::arg("timeout"))  // as Gloo's
      .def("flight_record", &ProcessGroup::record, py::call_guard<py::gil_scoped_release>());
}
