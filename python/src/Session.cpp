//===- Session.cpp - devices, arrays and functions of _runtime ------------===//

#include "Session.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace greta;
using namespace greta::python;

int64_t greta::python::scalarBits(const std::string &type, nb::handle value) {
  int64_t bits = 0;
  if (type[0] == 'i') {
    bits = static_cast<int64_t>(PyLong_AsUnsignedLongLongMask(value.ptr()));
    if (bits == -1 && PyErr_Occurred())
      throw nb::python_error();
    return bits;
  }
  double number = PyFloat_AsDouble(value.ptr());
  if (number == -1 && PyErr_Occurred())
    throw nb::python_error();
  auto narrow = static_cast<float>(number);
  auto half = static_cast<_Float16>(number);
  if (type == "f64") {
    std::memcpy(&bits, &number, sizeof(number));
  } else if (type == "f16") {
    std::memcpy(&bits, &half, sizeof(half));
  } else {
    std::memcpy(&bits, &narrow, sizeof(narrow));
    // This is the upper half, rounded to nearest, ties to even.
    if (type == "bf16")
      bits = std::isnan(narrow) ? 0x7fc0
                                : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
  return bits;
}

static bool checksPrograms(const std::string &spec) {
  const char *wanted = secure_getenv("GRETA_CHECK");
  return wanted && *wanted && std::strcmp(wanted, "0") != 0 &&
         spec.compare(0, 4, "sim:") == 0;
}

Session::Session(const std::string &spec)
    : isChecked(checksPrograms(spec)), runtime(spec),
      queue(std::make_shared<Queue>(runtime.stream())) {}

Buffer Session::takeMemory(size_t bytes) {
  auto smallest = spare.end();
  for (auto it = spare.begin(); it != spare.end(); ++it)
    if (it->size() >= bytes &&
        (smallest == spare.end() || it->size() < smallest->size()))
      smallest = it;
  // Much larger buffers are left for requests that need them.
  if (smallest == spare.end() || smallest->size() > 2 * bytes + 4096) {
    size_t rounded = 4096;
    while (rounded < bytes)
      rounded += rounded / 2;
    return runtime.allocate(rounded);
  }
  Buffer taken = std::move(*smallest);
  spare.erase(smallest);
  return taken;
}

void Session::giveBack(Buffer buffer) {
  constexpr size_t most = 16;
  spare.push_back(std::move(buffer));
  if (spare.size() > most)
    spare.erase(spare.begin());
}

std::shared_ptr<Buffer> Session::allocate(size_t bytes) {
  Buffer made = runtime.allocate(bytes);
  uint64_t begin = made.address(), end = begin + made.size();
  // An array keeps its session, so it is there when the memory goes.
  auto drop = [this, begin](Buffer *buffer) {
    std::lock_guard<std::mutex> guard(arraysLock);
    arrays.erase(begin);
    delete buffer;
  };
  std::shared_ptr<Buffer> buffer(new Buffer(std::move(made)), drop);
  std::lock_guard<std::mutex> guard(arraysLock);
  arrays[begin] = end;
  return buffer;
}

bool Session::holds(uint64_t address) {
  std::lock_guard<std::mutex> guard(arraysLock);
  auto behind = arrays.upper_bound(address);
  return behind != arrays.begin() && address < std::prev(behind)->second;
}

void Device::close() {
  if (opened)
    opened->functions.clear();
  opened.reset();
}

int64_t Array::count() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

/// Returns how far kernels may read: the bytes rounded up to 16, or 0.
static size_t checkedBytes(const Array &array) {
  size_t bytes = array.itemSize;
  for (int64_t extent : array.shape)
    if (extent < 0)
      throw nb::value_error("a dimension is negative");
    else if (__builtin_mul_overflow(bytes, size_t(extent), &bytes) ||
             bytes > PTRDIFF_MAX - 15)
      throw Error(GRETA_ERROR_OUT_OF_MEMORY,
                  "an array is larger than the address space");
  return std::max<size_t>((bytes + 15) / 16 * 16, 16);
}

Array::Array(std::shared_ptr<Device> place, std::vector<int64_t> extents,
             nb::object dtype, std::string type, size_t itemSize)
    : device(std::move(place)), session(device->session()),
      shape(std::move(extents)), dtype(std::move(dtype)), type(std::move(type)),
      itemSize(itemSize) {
  buffer = session->allocate(checkedBytes(*this));
}

Array::Array(std::shared_ptr<Device> place, DLManagedTensor *from,
             std::vector<int64_t> extents, nb::object dtype, std::string type,
             size_t itemSize)
    : device(std::move(place)), session(device->session()),
      shape(std::move(extents)), dtype(std::move(dtype)), type(std::move(type)),
      itemSize(itemSize) {
  auto [memory, begin] = session->runtime.importDLPack(from);
  buffer = std::make_shared<Buffer>(std::move(memory));
  offset = begin;
}

Array::Array(const Array &of, std::vector<int64_t> extents, size_t offset)
    : device(of.device), session(of.session), buffer(of.buffer),
      offset(of.offset + offset), shape(std::move(extents)), dtype(of.dtype),
      type(of.type), itemSize(of.itemSize) {}

PackageFunction::~PackageFunction() {
  for (const std::weak_ptr<Session> &weak : sessions)
    if (std::shared_ptr<Session> session = weak.lock())
      session->functions.erase(this);
}

const Loaded &PackageFunction::on(const std::shared_ptr<Session> &session) {
  if (!lastOn.owner_before(session) && !session.owner_before(lastOn))
    return *last;
  std::unique_ptr<Loaded> &loaded = session->functions[this];
  if (!loaded) {
    loaded = std::make_unique<Loaded>(session->runtime.load(*package, name));
    sessions.push_back(session);
  }
  lastOn = session;
  last = loaded.get();
  return *loaded;
}
