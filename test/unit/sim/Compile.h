//===- Compile.h - kernels for the simulator's tests ------------*- C++ -*-===//
//
// Compiles OpenCL C or assembly with clang, to the bytes of a code object.
// Plain C++: the HIP test uses it without LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_SIM_COMPILE_H
#define GRETA_TEST_SIM_COMPILE_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

inline std::vector<uint8_t> compileKernel(const std::string &chip,
                                          const std::string &source,
                                          const std::string &language = "cl",
                                          const std::string &flags = "-O2") {
  char folder[] = "/tmp/greta-sim-test-XXXXXX";
  if (!mkdtemp(folder))
    return {};
  std::string base = folder, in = base + (language == "asm" ? "/k.s" : "/k.cl"),
              out = base + "/k.hsaco";
  std::ofstream(in) << source;
  std::string command =
      std::string(GRETA_TEST_CLANG) +
      " -target amdgcn-amd-amdhsa -mcpu=" + chip +
      (language == "asm" ? " -x assembler"
                         : " -x cl -cl-std=CL2.0 -nogpulib -w ") +
      " " + flags + " " + in + " -o " + out + " >" + base + "/log 2>&1";
  std::vector<uint8_t> bytes;
  if (std::system(command.c_str()) == 0) {
    std::ifstream file(out, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  } else {
    std::ifstream log(base + "/log");
    std::string text((std::istreambuf_iterator<char>(log)), {});
    std::fprintf(stderr, "%s\n%s\n", command.c_str(), text.c_str());
  }
  for (const char *name : {"/k.s", "/k.cl", "/k.hsaco", "/log"})
    std::remove((base + name).c_str());
  rmdir(folder);
  return bytes;
}

#endif
