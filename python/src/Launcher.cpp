//===- Launcher.cpp - Triton's kernels on arrays --------------------------===//
//
// In: a launch as Triton's frontend makes it, with a kernel whose function has
// its arguments and grid_x, grid_y and grid_z behind them. Out: the launch on
// the device.
//
// A pointer is an array of GRETA, or memory of the host: a torch tensor, whose
// storage says how far it reaches, or a HostView. Such memory is copied to the
// device, and back where the kernel writes. Pointers into one storage are
// pointers into one copy, at the same distances, and at the same offset from a
// multiple of 16 bytes.
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include <algorithm>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

using namespace greta;
using namespace greta::python;
using namespace nb::literals;

namespace {

/// Memory of the host in Triton's words: data_ptr() and dtype.
struct HostView {
  uint64_t address;
  uint64_t begin, end; // of the memory that the view is in
  uint64_t low, reach; // of the view
  bool isReadOnly;
  nb::object dtype, owner;
};

/// A range of the host's memory that has a copy on the device.
struct Stretch {
  uint64_t begin, end;
  bool isWritten = false;
  Buffer copy;

  size_t offsetOf(uint64_t address) const {
    return address - begin + begin % alignment;
  }
  static constexpr uint64_t alignment = 16;
};

/// A pointer of the host, and the object that it belongs to.
struct HostPointer {
  size_t argument;
  uint64_t address, begin, end;
  uint64_t reach; // the argument ends here
};

size_t bytesOf(const std::string &type) {
  if (type.compare(0, 2, "f8") == 0)
    return 1;
  return std::stoul(type.substr(type.find_first_of("123456789"))) / 8;
}

class Launch {
public:
  Launch(const std::shared_ptr<Session> &session, const Loaded &loaded,
         const std::vector<size_t> &addresses)
      : session(session), loaded(loaded), addresses(addresses),
        tensors(loaded.arguments.size()), lengths(tensors.size()),
        numbers(tensors.size()) {}

  void setPointer(size_t index, nb::handle value) {
    if (nb::isinstance<Array>(value)) {
      const Array &array = nb::cast<const Array &>(value);
      if (array.session != session)
        throw nb::value_error(
            (name(index) + " lies on " + array.device->spec +
             ", the kernel runs on another device; copy it with asarray")
                .c_str());
      place(index, array.buffer->get(), array.offset,
            session->isChecked ? array.offset + array.bytes()
                               : array.buffer->size());
      return;
    }
    pointers.push_back(findMemory(index, value));
    if (std::find(addresses.begin(), addresses.end(), index) != addresses.end())
      checkAddresses(pointers.back(), value);
  }

  void setScalar(size_t index, nb::handle value) {
    // The kernel takes the bits, signed or not.
    setScalar(index, scalarBits(loaded.arguments[index].dtype, value));
  }

  void setScalar(size_t index, int64_t value) {
    numbers[index] = value;
    tensors[index] = {nullptr, 0, nullptr, 0, &numbers[index]};
  }

  void run() {
    findStretches();
    std::vector<greta_tensor> results;
    session->queue->run([&](Stream &stream) {
      for (Stretch &stretch : stretches)
        stream.write(stretch.copy, bytesAt(stretch.begin),
                     stretch.end - stretch.begin,
                     stretch.offsetOf(stretch.begin));
      for (const HostPointer &pointer : pointers) {
        const Stretch &stretch = stretchOf(pointer);
        place(
            pointer.argument, stretch.copy.get(),
            stretch.offsetOf(pointer.address),
            stretch.offsetOf(session->isChecked ? pointer.reach : stretch.end));
      }
      for (const TensorInfo &result : loaded.results)
        results.push_back(tensors[result.tied]);
      check(greta_function_launch(loaded.function.get(), stream.get(),
                                  tensors.data(), tensors.size(),
                                  results.data(), results.size()));
      for (Stretch &stretch : stretches)
        if (stretch.isWritten)
          stream.read(stretch.copy, bytesAt(stretch.begin),
                      stretch.end - stretch.begin,
                      stretch.offsetOf(stretch.begin));
    });
    for (Stretch &stretch : stretches)
      session->giveBack(std::move(stretch.copy));
  }

private:
  static void *bytesAt(uint64_t address) {
    return reinterpret_cast<void *>(address);
  }
  std::string name(size_t index) const {
    return "argument '" + loaded.arguments[index].name + "'";
  }

  /// Sets an argument. The kernel may reach to the end of the buffer, wherever
  /// the argument begins; in a checked launch only to the argument's end.
  void place(size_t index, greta_buffer *buffer, size_t offset, size_t end) {
    size_t room = end > offset ? end - offset : 0;
    lengths[index] = room / bytesOf(loaded.arguments[index].dtype);
    tensors[index] = {buffer, offset, &lengths[index], 1, nullptr};
  }

  bool isWritten(size_t index) const {
    return std::any_of(loaded.results.begin(), loaded.results.end(),
                       [&](const TensorInfo &result) {
                         return result.tied == static_cast<int>(index);
                       });
  }

  /// Returns the bytes from a tensor's first element to the end of its last.
  static uint64_t extentOf(nb::handle tensor) {
    auto sizes = nb::cast<std::vector<int64_t>>(tensor.attr("shape"));
    auto strides = nb::cast<std::vector<int64_t>>(tensor.attr("stride")());
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 0)
        return 0;
      last += (sizes[d] - 1) * strides[d];
    }
    return (last + 1) * nb::cast<uint64_t>(tensor.attr("element_size")());
  }

  HostPointer findMemory(size_t index, nb::handle value) const {
    if (nb::isinstance<HostView>(value)) {
      const HostView &view = nb::cast<const HostView &>(value);
      if (view.isReadOnly && isWritten(index))
        throw nb::value_error(
            (name(index) + " is read-only, and the kernel writes to it")
                .c_str());
      if (session->isChecked && view.low < view.address)
        throw nb::value_error(
            (name(index) +
             " has elements before its first one, by a negative stride, and "
             "GRETA_CHECK checks from there on; pass a copy, x.copy()")
                .c_str());
      return {index, view.address, view.begin, view.end, view.reach};
    }
    if (nb::hasattr(value, "data_ptr")) {
      uint64_t address = nb::cast<uint64_t>(value.attr("data_ptr")());
      // triton.reinterpret leaves the tensor in `base`.
      nb::object owner = nb::borrow(value);
      if (!nb::hasattr(owner, "untyped_storage") && nb::hasattr(owner, "base"))
        owner = owner.attr("base");
      if (nb::isinstance<Array>(owner) || nb::isinstance<HostView>(owner))
        throw nb::type_error((name(index) + " reinterprets what is no tensor "
                                            "of torch; make it of its type")
                                 .c_str());
      if (nb::hasattr(owner, "untyped_storage")) {
        // Libraries pass objects that have the storage of a tensor, so the
        // pointer is the storage's.
        nb::object storage = owner.attr("untyped_storage")();
        nb::object device = storage.attr("device");
        if (nb::cast<std::string>(device.attr("type")) != "cpu")
          throw nb::value_error(
              (name(index) + " is a torch tensor on '" +
               nb::cast<std::string>(device.attr("__str__")()) +
               "'; kernels take those of the CPU, and GRETA's arrays")
                  .c_str());
        uint64_t begin = nb::cast<uint64_t>(storage.attr("data_ptr")());
        uint64_t end = begin + nb::cast<uint64_t>(storage.attr("nbytes")());
        return {index, address, begin, end,
                session->isChecked ? address + extentOf(owner) : end};
      }
    }
    throw nb::type_error(
        (name(index) + " is no array; addresses in memory are no pointers here")
            .c_str());
  }

  /// Refuses addresses of the host's memory in memory: a kernel would follow
  /// them on the device, where a GPU ends in a fault or hangs.
  void checkAddresses(const HostPointer &pointer, nb::handle value) const {
    uint64_t end = nb::hasattr(value, "stride")
                       ? pointer.address + extentOf(value)
                       : pointer.reach;
    const auto *words = static_cast<const uint64_t *>(bytesAt(pointer.address));
    size_t count = (end - pointer.address) / sizeof(uint64_t);
    for (size_t i = 0; i < count; ++i)
      if (words[i] && !session->holds(words[i]) && isMemoryOfHost(words[i]))
        throw nb::value_error(
            (name(pointer.argument) + " has at element " + std::to_string(i) +
             " an address of the host's memory, which the kernel would follow "
             "on the device; put data_ptr() of GRETA's arrays there")
                .c_str());
  }

  static bool isMemoryOfHost(uint64_t address) {
    static const uint64_t page = sysconf(_SC_PAGESIZE);
    unsigned char resident;
    return mincore(bytesAt(address / page * page), 1, &resident) == 0;
  }

  Stretch &stretchOf(const HostPointer &pointer) {
    return *std::find_if(
        stretches.begin(), stretches.end(), [&](const Stretch &stretch) {
          return pointer.begin >= stretch.begin && pointer.end <= stretch.end;
        });
  }

  /// Joins ranges that overlap, and takes memory for them.
  void findStretches() {
    std::vector<HostPointer> sorted = pointers;
    std::sort(sorted.begin(), sorted.end(),
              [](const HostPointer &a, const HostPointer &b) {
                return a.begin < b.begin;
              });
    for (const HostPointer &pointer : sorted) {
      if (stretches.empty() || pointer.begin >= stretches.back().end)
        stretches.push_back({pointer.begin, pointer.end, false, {}});
      Stretch &last = stretches.back();
      last.end = std::max(last.end, pointer.end);
      last.isWritten |= isWritten(pointer.argument);
    }
    for (Stretch &stretch : stretches)
      stretch.copy = session->takeMemory(stretch.offsetOf(stretch.end) +
                                         Stretch::alignment);
  }

  const std::shared_ptr<Session> &session;
  const Loaded &loaded;
  const std::vector<size_t> &addresses;
  std::vector<greta_tensor> tensors;
  std::vector<int64_t> lengths, numbers;
  std::vector<HostPointer> pointers;
  std::vector<Stretch> stretches;
};

/// Knows which of the arguments that Triton passes the kernel takes.
class Launcher {
public:
  explicit Launcher(std::vector<std::string> signature) {
    for (const std::string &type : signature)
      kinds.push_back(type == "constexpr" ? Kind::Constant
                      : type[0] == '*'    ? Kind::Pointer
                                          : Kind::Scalar);
  }

  void operator()(int64_t x, int64_t y, int64_t z, Device &device,
                  PackageFunction &function, nb::handle, nb::handle metadata,
                  nb::handle enter, nb::handle exit, nb::args arguments) const {
    if (!enter.is_none())
      enter(metadata);
    const std::shared_ptr<Session> &session = device.session();
    const Loaded &loaded = function.on(session);
    Launch launch(session, loaded, function.addresses);
    size_t taken = 0, count = loaded.arguments.size();
    for (size_t i = 0; i < arguments.size() && i < kinds.size(); ++i) {
      if (kinds[i] == Kind::Constant)
        continue;
      if (taken + 3 >= count)
        throw nb::type_error("the kernel takes fewer arguments");
      if (kinds[i] == Kind::Pointer)
        launch.setPointer(taken++, arguments[i]);
      else
        launch.setScalar(taken++, arguments[i]);
    }
    if (taken + 3 != count)
      throw nb::type_error("the kernel takes more arguments");
    for (int64_t extent : {x, y, z})
      launch.setScalar(taken++, extent);
    launch.run();
    if (!exit.is_none())
      exit(metadata);
  }

private:
  enum class Kind { Constant, Pointer, Scalar };
  std::vector<Kind> kinds;
};

} // namespace

void greta::python::bindLauncher(nb::module_ &m) {
  nb::class_<HostView>(m, "HostView",
                       "Memory of the host as a kernel's pointer")
      .def(
          "__init__",
          [](HostView *self, uint64_t address, uint64_t begin, uint64_t end,
             uint64_t low, uint64_t reach, bool isReadOnly, nb::object dtype,
             nb::object owner) {
            new (self) HostView{
                address,          begin,           end, low, reach, isReadOnly,
                std::move(dtype), std::move(owner)};
          },
          "address"_a, "begin"_a, "end"_a, "low"_a, "reach"_a, "readonly"_a,
          "dtype"_a, "owner"_a)
      .def("data_ptr", [](const HostView &view) { return view.address; })
      .def(
          "ptr_range",
          [](const HostView &view) {
            return view.address == view.begin ? view.end - view.begin
                                              : UINT64_MAX;
          },
          "Bytes of the memory that it begins; the most where it begins none, "
          "because a kernel's offsets may be negative then")
      .def_ro("dtype", &HostView::dtype)
      .def_ro("owner", &HostView::owner);
  nb::class_<Launcher>(m, "Launcher", "Launches kernels of one signature")
      .def(nb::init<std::vector<std::string>>(), "signature"_a)
      .def("__call__", &Launcher::operator(), "grid_x"_a, "grid_y"_a,
           "grid_z"_a, "device"_a, "function"_a, "packed"_a.none(),
           "metadata"_a.none(), "enter"_a.none(), "exit"_a.none(), "args"_a);
}
