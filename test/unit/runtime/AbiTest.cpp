// AbiTest.cpp: what programs that were linked with libgreta_runtime.so.0 rely
// on, on machines of 64 bits. test/test_install.py compares functions and
// signatures with runtime/abi.txt. A line here changes with the library's
// soname only; a struct that says its size gains members at the end.
#include "Api.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <string>

namespace {

#define AT(Struct, Member, Offset)                                             \
  static_assert(offsetof(Struct, Member) == Offset, #Struct "." #Member)

static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8);

// These never change.
static_assert(sizeof(greta_tensor) == 40);
AT(greta_tensor, buffer, 0);
AT(greta_tensor, offset, 8);
AT(greta_tensor, shape, 16);
AT(greta_tensor, rank, 24);
AT(greta_tensor, value, 32);
static_assert(sizeof(greta_kernel_time) == 16);
AT(greta_kernel_time, kernel, 0);
AT(greta_kernel_time, microseconds, 8);
static_assert(sizeof(greta_comm_id) == 16);
static_assert(sizeof(greta_comm_transfer) == 32);
AT(greta_comm_transfer, buffer, 0);
AT(greta_comm_transfer, offset, 8);
AT(greta_comm_transfer, bytes, 16);
AT(greta_comm_transfer, peer, 24);
AT(greta_comm_transfer, receives, 28);

// These may grow; the sizes are those of their first members.
AT(greta_tensor_info, struct_size, 0);
AT(greta_tensor_info, name, 8);
AT(greta_tensor_info, dtype, 16);
AT(greta_tensor_info, access, 24);
AT(greta_tensor_info, rank, 32);
AT(greta_tensor_info, shape, 40);
AT(greta_tensor_info, is_scalar, 48);
AT(greta_tensor_info, tied, 52);
static_assert(greta::rt::firstSize<greta_tensor_info> == 56);
AT(greta_memory, struct_size, 0);
AT(greta_memory, in_use, 8);
AT(greta_memory, peak, 16);
AT(greta_memory, reserved, 24);
AT(greta_memory, largest_free, 32);
AT(greta_memory, total, 40);
AT(greta_memory, free, 48);
static_assert(greta::rt::firstSize<greta_memory> == 56);
AT(greta_shared_memory, struct_size, 0);
AT(greta_shared_memory, bytes, 8);
AT(greta_shared_memory, device_uuid, 16);
AT(greta_shared_memory, driver_uuid, 32);
AT(greta_shared_memory, kind, 48);
AT(greta_shared_memory, fd, 52);
static_assert(greta::rt::firstSize<greta_shared_memory> == 56);
AT(greta_vulkan_device, struct_size, 0);
AT(greta_vulkan_device, get_instance_proc_addr, 8);
AT(greta_vulkan_device, instance, 16);
AT(greta_vulkan_device, physical_device, 24);
AT(greta_vulkan_device, device, 32);
AT(greta_vulkan_device, queue_family, 40);
AT(greta_vulkan_device, queue, 44);
AT(greta_vulkan_device, features, 48);
AT(greta_vulkan_device, feature_count, 56);
AT(greta_vulkan_device, extensions, 64);
AT(greta_vulkan_device, extension_count, 72);
static_assert(greta::rt::firstSize<greta_vulkan_device> == 80);
AT(greta_comm_options, struct_size, 0);
AT(greta_comm_options, id, 8);
AT(greta_comm_options, path, 16);
AT(greta_comm_options, rank, 24);
AT(greta_comm_options, size, 28);
AT(greta_comm_options, timeout_milliseconds, 32);
AT(greta_comm_options, staging_bytes, 40);
AT(greta_comm_options, ways, 48);
static_assert(greta::rt::firstSize<greta_comm_options> == 56);

static_assert(sizeof(greta_status) == 4 && sizeof(greta_fd_kind) == 4 &&
              sizeof(greta_log_level) == 4);

TEST(Abi, TheHeaderIsTheLibrarys) {
  EXPECT_EQ(std::string(greta_version()),
            std::to_string(GRETA_RUNTIME_VERSION_MAJOR) + "." +
                std::to_string(GRETA_RUNTIME_VERSION_MINOR) + "." +
                std::to_string(GRETA_RUNTIME_VERSION_PATCH));
  static_assert(GRETA_RUNTIME_VERSION >= GRETA_RUNTIME_MAKE_VERSION(0, 1, 0));
}

// A struct as a later version might have it, and as an earlier one had it.
struct Grown {
  size_t struct_size;
  int32_t first, second;
};

} // namespace

template <> constexpr size_t greta::rt::firstSize<Grown> = 12;

namespace {

using namespace greta::rt;

TEST(Abi, CallersKnowLessOrMore) {
  auto refused = [](auto F) {
    try {
      F();
    } catch (const Error &E) {
      return E.code();
    }
    return GRETA_OK;
  };
  Grown Old{12, 5, 77};
  give(&Old, {0, 1, 2}, "it");
  EXPECT_EQ(Old.struct_size, 12u);
  EXPECT_EQ(Old.first, 1);
  EXPECT_EQ(Old.second, 77); // which an old caller's struct does not have
  EXPECT_EQ(taken(&Old, "it").second, 0);

  struct {
    Grown Known;
    int64_t Unknown;
  } New{{sizeof(New), 5, 6}, 0};
  Grown Taken = taken(&New.Known, "it");
  EXPECT_EQ(Taken.first, 5);
  EXPECT_EQ(Taken.second, 6);
  New.Unknown = 1;
  EXPECT_EQ(refused([&] { taken(&New.Known, "it"); }), GRETA_ERROR_UNSUPPORTED);
  give(&New.Known, {0, 3, 4}, "it");
  EXPECT_EQ(New.Known.struct_size, sizeof(New));
  EXPECT_EQ(New.Known.second, 4);
  EXPECT_EQ(New.Unknown, 0);

  Old.struct_size = 0;
  EXPECT_EQ(refused([&] { taken(&Old, "it"); }), GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(refused([&] { give(&Old, {}, "it"); }),
            GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(refused([&] { taken<Grown>(nullptr, "it"); }),
            GRETA_ERROR_INVALID_ARGUMENT);
}

TEST(Abi, StructsWithoutASizeAreRefused) {
  greta_device *D = nullptr;
  ASSERT_EQ(greta_device_open("host", &D), GRETA_OK);
  greta_memory M{};
  EXPECT_EQ(greta_device_memory(D, &M), GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(greta_last_error()).find("struct_size is 0"),
            std::string::npos);
  EXPECT_EQ(greta_device_close(D), GRETA_OK);
}

} // namespace
