//===- Launch.cpp - kernels on tensors of torch ---------------------------===//
//
// In: a function of a package and its arguments. Out: its launch in a stream
// of a device rdna. A kernel of Triton's may reach to the end of a tensor's
// storage; where GRETA_CHECK watches a simulated device, to the end of the
// tensor.
//
//===----------------------------------------------------------------------===//

#include "CallPlan.h"

#include <cstdlib>
#include <cstring>

using namespace greta;
using namespace greta::torch_device;

Place torch_device::placeOf(const at::TensorBase &tensor) {
  const c10::DataPtr &data = tensor.storage().data_ptr();
  auto address = reinterpret_cast<uint64_t>(tensor.const_data_ptr());
  TORCH_CHECK(tensor.device().type() == deviceType, "a tensor on ",
              tensor.device(), " is given where one on a device rdna is taken");
  Block *block = blockOf(data);
  if (!block)
    block = device(tensor.device().index()).blockOf(address);
  TORCH_CHECK(block, "a tensor's memory is not of ", tensor.device());
  return {block, address - block->address};
}

const Kernel::Loaded &Kernel::on(Device &device) {
  size_t index = device.index;
  std::lock_guard<std::mutex> guard(lock);
  if (loaded.size() <= index)
    loaded.resize(index + 1);
  if (!loaded[index])
    loaded[index] = std::make_unique<Loaded>(device.runtime().load(
        package, name, /*variant=*/"", GRETA_LOAD_LAZILY));
  return *loaded[index];
}

static bool isChecked(const Device &device) {
  static const bool wanted = [] {
    const char *value = secure_getenv("GRETA_CHECK");
    return value && *value && std::strcmp(value, "0") != 0;
  }();
  return wanted && device.spec.compare(0, 4, "sim:") == 0;
}

static size_t bytesOf(const std::string &type) {
  if (type.compare(0, 2, "f8") == 0)
    return 1;
  size_t bits =
      std::strtoul(type.c_str() + type.find_first_of("123456789"), nullptr, 10);
  return bits / 8;
}

Launch::Launch(Kernel &kernel, c10::DeviceIndex index, int64_t stream)
    : device(torch_device::device(index)), kernel(kernel),
      loaded(kernel.on(device)), stream(stream),
      arguments(loaded.arguments.size()), numbers(loaded.arguments.size()) {}

void Launch::add(const at::TensorBase &tensor) {
  TORCH_CHECK(count + 3 < room(), "the kernel takes fewer arguments");
  TORCH_CHECK(tensor.device().type() == deviceType &&
                  tensor.device().index() == device.index,
              "argument '", loaded.arguments[count].name, "' is on ",
              tensor.device(), ", the kernel runs on rdna:", int(device.index));
  if (!tensor.numel()) {
    arguments[count].tensor = {device.placeholder(), 0, &numbers[count], 1,
                               nullptr};
    ++count;
    return;
  }
  Place place = placeOf(tensor);
  size_t end = place.block->size();
  size_t elementBytes = bytesOf(loaded.arguments[count].dtype);
  bool endsWithTensor = isChecked(device);
  if (endsWithTensor) {
    size_t elements = tensor.numel() ? 1 : 0;
    for (int64_t d = 0; elements && d < tensor.dim(); ++d)
      elements += (tensor.size(d) - 1) * tensor.stride(d);
    end = place.offset + elements * tensor.itemsize();
  }
  size_t room = end > place.offset ? end - place.offset : 0;
  numbers[count] = room / elementBytes;
  arguments[count] = {
      {place.block->buffer.get(), place.offset, &numbers[count], 1, nullptr},
      place.block,
      endsWithTensor ? 0 : elementBytes};
  ++count;
}

void Launch::add(int64_t bits) {
  TORCH_CHECK(count < room(), "the kernel takes fewer arguments");
  numbers[count] = bits;
  arguments[count].tensor = {nullptr, 0, nullptr, 0, &numbers[count]};
  ++count;
}

void Launch::run(int64_t x, int64_t y, int64_t z) {
  TORCH_CHECK(count + 3 == room(), "the kernel takes more arguments");
  if (x == 0 || y == 0 || z == 0)
    return;
  for (int64_t extent : {x, y, z})
    add(extent);
  std::vector<Passed> results;
  for (const TensorInfo &result : loaded.results)
    results.push_back(arguments[result.tied]);
  enqueue(kernel, device, stream, arguments, results);
}

void torch_device::launch(Kernel &kernel, c10::DeviceIndex index,
                          int64_t stream, const std::vector<Operand> &arguments,
                          const std::vector<Operand> &results) {
  Device &device = torch_device::device(index);
  const Kernel::Loaded &loaded = kernel.on(device);
  auto lists = [&](const std::vector<Operand> &tensors,
                   const std::vector<TensorInfo> &declared) {
    TORCH_CHECK(tensors.size() == declared.size(), "the function has ",
                declared.size(), " arguments or results, ", tensors.size(),
                " given");
    std::vector<Passed> list;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor &tensor = tensors[i].tensor;
      const TensorInfo &info = declared[i];
      TORCH_CHECK(tensor.device().type() == deviceType &&
                      tensor.device().index() == index,
                  "tensor '", info.name, "' is on ", tensor.device(),
                  ", the function runs on rdna:", int(index));
      TORCH_CHECK(size_t(tensor.itemsize()) == bytesOf(info.dtype), "tensor '",
                  info.name, "' of the function is of ", info.dtype);
      Place place{nullptr, 0};
      if (tensor.numel())
        place = placeOf(tensor);
      list.push_back(
          {{place.block ? place.block->buffer.get() : device.placeholder(),
            place.offset, tensors[i].shape.data(),
            uint32_t(tensors[i].shape.size()), nullptr},
           place.block});
    }
    return list;
  };
  enqueue(kernel, device, stream, lists(arguments, loaded.arguments),
          lists(results, loaded.results));
}
