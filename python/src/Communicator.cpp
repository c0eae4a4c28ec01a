//===- Communicator.cpp - communicators of the module _runtime ------------===//
//
// In: a rank's arrays, whose sizes and types greta/_communicator.py has
// checked. Out: collectives in the stream in use of the rank's device.
//
//===----------------------------------------------------------------------===//

#include "Communicator.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

using namespace greta;
using namespace greta::python;
using namespace nb::literals;

void greta::python::bindCommunicators(nb::module_ &m) {
  m.def("unique_id", [] {
    greta_comm_id id = greta::Comm::uniqueId();
    return nb::bytes(reinterpret_cast<const char *>(id.bytes),
                     sizeof(id.bytes));
  });
  nb::class_<Communicator>(m, "Communicator", "A rank of a communicator")
      .def(nb::init<Device &, uint32_t, uint32_t, std::optional<nb::bytes>,
                    std::string, std::string, uint64_t, uint64_t, uint32_t>(),
           "device"_a, "rank"_a, "size"_a, "id"_a.none(), "path"_a, "address"_a,
           "milliseconds"_a, "staging_bytes"_a, "ways"_a)
      .def("close", &Communicator::close)
      .def("abort", &Communicator::abort)
      .def("_info", &Communicator::info)
      .def(
          "_all_reduce",
          [](Communicator &c, Array &to, const Array &from,
             const std::string &type, uint32_t op) {
            c.run([&](greta_comm *comm, greta_stream *stream) {
              return greta_comm_all_reduce(
                  comm, stream, to.buffer->get(), to.offset, from.buffer->get(),
                  from.offset, size_t(from.count()), type.c_str(), op);
            });
          },
          "to"_a, "of"_a, "type"_a, "op"_a)
      .def(
          "_reduce_scatter",
          [](Communicator &c, Array &to, const Array &from,
             const std::string &type, uint32_t op) {
            c.run([&](greta_comm *comm, greta_stream *stream) {
              return greta_comm_reduce_scatter(
                  comm, stream, to.buffer->get(), to.offset, from.buffer->get(),
                  from.offset, size_t(to.count()), type.c_str(), op);
            });
          },
          "to"_a, "of"_a, "type"_a, "op"_a)
      .def(
          "_all_gather",
          [](Communicator &c, Array &to, const Array &from) {
            c.run([&](greta_comm *comm, greta_stream *stream) {
              return greta_comm_all_gather(comm, stream, to.buffer->get(),
                                           to.offset, from.buffer->get(),
                                           from.offset, from.bytes());
            });
          },
          "to"_a, "of"_a)
      .def(
          "_broadcast",
          [](Communicator &c, Array &array, uint32_t root) {
            c.run([&](greta_comm *comm, greta_stream *stream) {
              return greta_comm_broadcast(comm, stream, array.buffer->get(),
                                          array.offset, array.buffer->get(),
                                          array.offset, array.bytes(), root);
            });
          },
          "array"_a, "root"_a)
      .def(
          "_all_to_all",
          [](Communicator &c, Array &to, const Array &from, uint32_t size) {
            c.run([&](greta_comm *comm, greta_stream *stream) {
              return greta_comm_all_to_all(comm, stream, to.buffer->get(),
                                           to.offset, from.buffer->get(),
                                           from.offset, from.bytes() / size);
            });
          },
          "to"_a, "of"_a, "size"_a)
      .def(
          "_exchange",
          [](Communicator &c,
             const std::vector<std::tuple<const Array *, uint32_t, bool>>
                 &transfers) {
            std::vector<greta_comm_transfer> all;
            for (const auto &[array, peer, receives] : transfers)
              all.push_back({array->buffer->get(), array->offset,
                             array->bytes(), peer, receives});
            c.run([&](greta_comm *comm, greta_stream *stream) {
              return greta_comm_exchange(comm, stream, all.data(), all.size());
            });
          },
          "transfers"_a);
}
