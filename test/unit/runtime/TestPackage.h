// TestPackage.h: small packages for the runtime's tests: a manifest as JSON
// that a test may damage, objects built at build time (spirv-as, the C
// compiler), and a ZIP through libzip.
#ifndef GRETA_TEST_RUNTIME_TESTPACKAGE_H
#define GRETA_TEST_RUNTIME_TESTPACKAGE_H

#include "greta_runtime.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace greta_test {

using Bytes = std::vector<uint8_t>;

struct Member {
  std::string Name;
  Bytes Data;
  bool Compressed = false;
};

// Reads a file of the build folder's fixtures.
Bytes fixture(const std::string &Name);

// The bytes of a ZIP with these members.
Bytes zip(const std::vector<Member> &Members);

// Function `scale`, y[m,n] = 2 * x[m,n] + 1 in f32, with variants vulkan-sg64
// (needs subgroups of 64), vulkan-portable and host; and `twice_scaled`, two
// kernels with a temporary between them; and `subgroup`; and `in_place`, y[n] =
// 2 * x[n] + 1 of x and the scalar n, with y tied to x.
nlohmann::json manifest();

// Also `summed`: twice_scaled with a sum over ranks behind its first kernel, y
// = 2 sum(2 x + 1) + 1, from one temporary into another, or in place; and
// `sum`, without kernels. `Parts`: those of the sum of `summed`, whose kernels
// are by rows.
nlohmann::json sumManifest(bool InPlace = false,
                           const nlohmann::json &Parts = nullptr);

// The package of a manifest: its objects are fixtures, and the hashes are
// filled in where they are "".
Bytes package(nlohmann::json Manifest = manifest());
// Opens them as a program does.
greta::Package packageOf(const Bytes &Data);
// The reader's error for these bytes; "" when it takes them.
std::string complaintOf(const Bytes &Data);

// A folder that is removed at exit.
std::string temporaryFolder();

} // namespace greta_test
#endif
