//===- Compile.h - kernels for the simulator's tests ------------*- C++ -*-===//
//
// Compiles OpenCL C or assembly with clang, to the bytes of a code object.
// Plain C++: the HIP test uses it without LLVM. With GRETA_TEST_OBJECTS, a
// folder, each is compiled once: the same tests run again under sanitizers.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_SIM_COMPILE_H
#define GRETA_TEST_SIM_COMPILE_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

/// A file that holds what it was made from and the object: names are hashes,
/// which two sources may share.
class KeptObject {
public:
  explicit KeptObject(const std::string &madeFrom) : madeFrom(madeFrom) {
    if (const char *folder = std::getenv("GRETA_TEST_OBJECTS"))
      path =
          folder + ("/" + std::to_string(std::hash<std::string>()(madeFrom)));
  }
  std::vector<uint8_t> read() const {
    std::ifstream file(path, std::ios::binary);
    std::string all((std::istreambuf_iterator<char>(file)), {});
    if (path.empty() || all.compare(0, madeFrom.size(), madeFrom))
      return {};
    return {all.begin() + std::ptrdiff_t(madeFrom.size()), all.end()};
  }
  void write(const std::vector<uint8_t> &object) const {
    if (path.empty() || object.empty())
      return;
    std::string draft = path + "." + std::to_string(getpid());
    std::ofstream(draft, std::ios::binary)
        << madeFrom << std::string(object.begin(), object.end());
    std::rename(draft.c_str(), path.c_str());
  }

private:
  std::string madeFrom, path;
};

inline std::vector<uint8_t> compileKernel(const std::string &chip,
                                          const std::string &source,
                                          const std::string &language = "cl",
                                          const std::string &flags = "-O2") {
  KeptObject kept(chip + '\n' + language + '\n' + flags + '\n' + source + '\0');
  std::vector<uint8_t> bytes = kept.read();
  if (!bytes.empty())
    return bytes;
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
  kept.write(bytes);
  return bytes;
}

#endif
