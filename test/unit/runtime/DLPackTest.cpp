// DLPackTest.cpp: tensors of DLPack as buffers and buffers as tensors, on every
// device.
#include "DLPack.h"
#include "EveryDevice.h"
#include "TestPackage.h"

#include <functional>
#include <numeric>

using namespace greta_test;

namespace {

class DLPack : public EveryDevice {
protected:
  // Floats of a library that counts what was deleted.
  struct Foreign {
    DLManagedTensor Tensor{};
    int64_t Shape[2] = {4, 64}, Strides[2] = {64, 1};
    std::vector<float> Data = std::vector<float>(16 * 64);
    int Deleted = 0;
    Foreign() {
      // From a multiple of 16 bytes on that is no page's begin.
      size_t Skip =
          (16 - reinterpret_cast<uintptr_t>(Data.data()) / 4 % 16) % 16;
      Tensor.dl_tensor = {Data.data(), {kDLCPU, 0},  2, {2, 32, 1}, Shape,
                          nullptr,     Skip * 4 + 64};
      Tensor.manager_ctx = this;
      Tensor.deleter = [](DLManagedTensor *Self) {
        ++static_cast<Foreign *>(Self->manager_ctx)->Deleted;
      };
    }
    float *first() {
      return reinterpret_cast<float *>(
          static_cast<char *>(Tensor.dl_tensor.data) +
          Tensor.dl_tensor.byte_offset);
    }
  };
  std::string refusal(const std::function<void()> &F) {
    try {
      F();
    } catch (const greta::Error &E) {
      return E.what();
    }
    return "nothing";
  }
  Bytes Data = package();
  greta::Package P{Data.data(), Data.size()};
};

// The kernel reads it where it lies; it is deleted behind the last work.
TEST_P(DLPack, ImportsMemoryOfTheHost) {
  Foreign X;
  std::iota(X.first(), X.first() + 256, 1.0f);
  greta::Stream S = R->stream();
  greta::Buffer Y = R->allocate(1024);
  greta::Function F = R->load(P, "scale", "", GRETA_LOAD_NATIVE_CODE);
  {
    auto [In, Offset] = R->importDLPack(&X.Tensor);
    F.launch(S, {{&In, {4, 64}, Offset}}, {{&Y, {4, 64}}});
  }
  std::vector<float> Got(256);
  S.read(Y, Got.data(), 1024);
  for (size_t I = 0; I < Got.size(); ++I)
    ASSERT_EQ(Got[I], 2 * X.first()[I] + 1);
  S.fill(Y, 1024, 0);
  S.synchronize();
  EXPECT_EQ(X.Deleted, 1);
}

TEST_P(DLPack, ExportsBuffers) {
  DLManagedTensor *T = nullptr;
  {
    greta::Buffer Mapped = R->allocateMapped(1024);
    static_cast<int16_t *>(Mapped.pointer())[8] = 77;
    T = Mapped.exportDLPack("i16", {2, 3, 4}, 16);
  }
  const DLTensor &D = T->dl_tensor;
  EXPECT_EQ(D.device.device_type, kDLCPU);
  EXPECT_EQ(D.ndim, 3);
  EXPECT_EQ(D.shape[2], 4);
  EXPECT_EQ(D.strides, nullptr);
  EXPECT_EQ(D.dtype.code, 0);
  EXPECT_EQ(D.dtype.bits, 16);
  EXPECT_EQ(
      *reinterpret_cast<int16_t *>(static_cast<char *>(D.data) + D.byte_offset),
      77);
  T->deleter(T);
}

// Memory of the device that was exported comes back as the same memory.
TEST_P(DLPack, TakesItsOwnBack) {
  greta::Stream S = R->stream();
  std::pair<greta::Buffer, size_t> Back;
  uint64_t Before = R->memory().in_use;
  {
    greta::Buffer Own = R->allocate(1024);
    DLManagedTensor *T = Own.exportDLPack("bf16", {8, 32}, 256);
    std::string Kind = GetParam();
    EXPECT_EQ(T->dl_tensor.device.device_type, Kind == "host"     ? kDLCPU
                                               : Kind == "vulkan" ? kDLVulkan
                                                                  : kDLROCM);
    EXPECT_EQ(T->dl_tensor.dtype.code, 4);
    Back = R->importDLPack(T);
    EXPECT_EQ(Back.first.address(), Own.address());
    EXPECT_EQ(Back.second, 256u);
    S.fill(Own, 1024, 5);
  }
  uint32_t Word = 0;
  S.read(Back.first, &Word, 4, Back.second);
  EXPECT_EQ(Word, 5u);
  EXPECT_EQ(R->memory().in_use - Before, 1024u);
  Back.first = greta::Buffer();
  S.fill(R->allocate(64), 64, 0);
  S.synchronize();
}

TEST_P(DLPack, RefusesWhatIsNoBuffer) {
  Foreign X;
  DLTensor &T = X.Tensor.dl_tensor;
  auto Says = [&](const char *Text) {
    std::string Said = refusal([&] { R->importDLPack(&X.Tensor); });
    EXPECT_NE(Said.find(Text), std::string::npos) << Said;
  };
  T.strides = X.Strides;
  X.Strides[0] = 128;
  Says("dim 0 has a stride of 128; buffers are row-major, where it is 64");
  X.Strides[0] = 64;
  X.Shape[1] = -1;
  Says("the tensor's dim 1 is -1");
  X.Shape[1] = 64;
  T.shape = nullptr;
  Says("the tensor has no shape");
  T.shape = X.Shape;
  T.device = {kDLVulkan, 5};
  Says("the tensor lies on DLPack's device 7:5; ");
  EXPECT_EQ(X.Deleted, 0); // it stayed the caller's
  greta::Buffer B = R->allocate(64);
  EXPECT_EQ(refusal([&] { B.exportDLPack("i4", {8}); }),
            "DLPack has no type 'i4'");
  EXPECT_EQ(refusal([&] { B.exportDLPack("f32", {8}, 48); }),
            "a tensor of 32 bytes at offset 48 leaves the buffer of 64 bytes");
}

INSTANTIATE_TEST_SUITE_P(Devices, DLPack, everyDevice(), deviceName);

} // namespace
