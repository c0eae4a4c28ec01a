// SoakMain.cpp: millions of mixed launches (Soak.h).
//
// usage: greta-runtime-soak [--device=vulkan] [--launches=24000000]
//        [--threads=2] [--seed=1] [--package=FILE | --write-package=FILE]
//
// Fails when a value is wrong, when memory of the device is left at the end, or
// when the process grows: from a tenth of the way on by no more than 32 MB.
#include "Soak.h"
#include "TestPackage.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unistd.h>

using namespace greta_test;

// Bytes of this process in memory.
static uint64_t resident() {
  std::ifstream In("/proc/self/statm");
  uint64_t Total = 0, Pages = 0;
  In >> Total >> Pages;
  return Pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

static double megabytes(uint64_t Bytes) {
  return static_cast<double>(Bytes) / (1 << 20);
}

int main(int argc, char **argv) {
  std::string Device = "vulkan", Path;
  uint64_t Launches = 24000000;
  SoakOptions O;
  for (int I = 1; I < argc; ++I) {
    auto Is = [&](const char *Name, auto Take) {
      size_t Length = strlen(Name);
      if (strncmp(argv[I], Name, Length) || argv[I][Length] != '=')
        return false;
      Take(argv[I] + Length + 1);
      return true;
    };
    bool Written = false;
    auto Number = [](const char *Text) { return strtoull(Text, nullptr, 10); };
    bool Known =
        Is("--device", [&](const char *V) { Device = V; }) ||
        Is("--package", [&](const char *V) { Path = V; }) ||
        Is("--launches", [&](const char *V) { Launches = Number(V); }) ||
        Is("--threads",
           [&](const char *V) { O.Threads = unsigned(Number(V)); }) ||
        Is("--seed", [&](const char *V) { O.Seed = unsigned(Number(V)); }) ||
        Is("--write-package", [&](const char *V) {
          Bytes Data = package();
          std::ofstream(V, std::ios::binary)
              .write(reinterpret_cast<const char *>(Data.data()),
                     static_cast<std::streamsize>(Data.size()));
          Written = true;
        });
    if (Written)
      return 0;
    if (!Known || !O.Threads) {
      fprintf(stderr, "greta-runtime-soak: %s: see SoakMain.cpp\n", argv[I]);
      return 2;
    }
  }
  try {
    greta::Runtime Runtime(Device);
    greta::Package Package =
        Path.empty() ? packageOf(package()) : greta::Package(Path);
    O.Launches = (Launches + O.Threads - 1) / O.Threads;
    auto Begin = std::chrono::steady_clock::now();
    auto Seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                           Begin)
          .count();
    };
    uint64_t Early = 0, Next = 1;
    O.Progress = [&](uint64_t Done) {
      if (Done * 10 < Next * O.Launches)
        return;
      greta_memory M = Runtime.memory();
      printf("%llu0 %%: %.1f s, process %.1f MB, device %.1f MB in use, %.1f "
             "MB reserved\n",
             static_cast<unsigned long long>(Next), Seconds(),
             megabytes(resident()), megabytes(M.in_use), megabytes(M.reserved));
      fflush(stdout);
      if (Next++ == 1)
        Early = resident();
    };
    SoakReport Report = soak(Runtime, Package, O);
    double Time = Seconds();
    uint64_t Late = resident(), Left = Runtime.memory().in_use;
    printf("%llu launches on %s in %.1f s, %.0f a second; %llu graphs "
           "replayed, %llu buffers compared, all right; the process grew by "
           "%.1f MB\n",
           static_cast<unsigned long long>(Report.Launches), Device.c_str(),
           Time, static_cast<double>(Report.Launches) / Time,
           static_cast<unsigned long long>(Report.Replays),
           static_cast<unsigned long long>(Report.Compared),
           megabytes(Late) - megabytes(Early));
    if (Left)
      throw std::runtime_error(std::to_string(Left) + " bytes are left in use");
    if (Early && Late > Early + (32u << 20))
      throw std::runtime_error("the process grows");
    Runtime.close();
  } catch (const std::exception &E) {
    fprintf(stderr, "greta-runtime-soak: error: %s\n", E.what());
    return 1;
  }
  return 0;
}
