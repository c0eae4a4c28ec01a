// PackageTest.cpp: the package reader takes what docs/internals/package.md
// allows and refuses everything else with one message.
#include "Package.h"
#include "DType.h"
#include "Error.h"
#include "TestPackage.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

using namespace greta::rt;
using namespace greta_test;
using nlohmann::json;

namespace {

Bytes withManifest(const std::string &Text) {
  return zip({{"manifest.json", Bytes(Text.begin(), Text.end())}});
}

TEST(Package, ReadsWhatTheFormatSays) {
  Bytes Data = package();
  auto P = readPackage(Data.data(), Data.size(), "test.greta");
  ASSERT_EQ(P->Functions.size(), 4u);
  const FunctionDecl *F = P->find("scale");
  ASSERT_TRUE(F);
  EXPECT_EQ(P->find("nothing"), nullptr);
  ASSERT_EQ(F->Symbols.size(), 2u);
  EXPECT_EQ(F->Symbols[1].Name, "n");
  EXPECT_EQ(F->Args[0].StaticShape, (std::vector<int64_t>{-1, -1}));
  ASSERT_GE(F->Variants.size(), 3u);
  EXPECT_EQ(F->Variants[0].Requires.SubgroupSize, 64u);
  const KernelDecl &K = F->Variants[1].Kernels[0];
  EXPECT_EQ(K.Block, (std::array<uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(K.Grid[0].evaluate({3, 100}), 5);
  EXPECT_EQ(K.Args[2].Which, KernelArg::I32);
  EXPECT_EQ(K.Args[2].Value.evaluate({3, 100}), 300);
  EXPECT_GE(P->Objects.size(), 3u);
  EXPECT_EQ(P->Objects.at("objects/scale.spv"), fixture("scale.spv"));
}

TEST(Package, ReadsFromAFile) {
  std::string Path = temporaryFolder() + "/good.greta";
  Bytes Data = package();
  std::ofstream(Path, std::ios::binary)
      .write(reinterpret_cast<const char *>(Data.data()),
             static_cast<std::streamsize>(Data.size()));
  EXPECT_EQ(openPackage(Path)->Functions.size(), 4u);
  try {
    openPackage(temporaryFolder() + "/absent.greta");
    FAIL();
  } catch (const Error &E) {
    EXPECT_EQ(E.code(), GRETA_ERROR_NOT_FOUND);
    EXPECT_NE(std::string(E.what()).find("absent.greta"), std::string::npos);
  }
  try {
    openPackage(temporaryFolder());
    FAIL();
  } catch (const Error &E) {
    EXPECT_EQ(E.code(), GRETA_ERROR_BAD_PACKAGE);
    EXPECT_EQ(E.what(),
              temporaryFolder() + ": cannot open the package: Is a directory");
  }
  // Nobody opens a socket's file, as others do not open a file of its owner's.
  sockaddr_un Address = {};
  Address.sun_family = AF_UNIX;
  std::string Socket = temporaryFolder() + "/socket";
  ASSERT_LT(Socket.size(), sizeof Address.sun_path);
  strcpy(Address.sun_path, Socket.c_str());
  int FD = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(FD, reinterpret_cast<sockaddr *>(&Address), sizeof Address),
            0);
  close(FD);
  try {
    openPackage(Socket);
    FAIL();
  } catch (const Error &E) {
    EXPECT_EQ(E.code(), GRETA_ERROR_BAD_PACKAGE);
    EXPECT_EQ(E.what(),
              Socket + ": cannot open the package: " + strerror(ENXIO));
  }
}

// Ranks of a test are threads, of which each makes its own package.
TEST(Package, TheTestsOwnAreOfTheThreadThatMadeThem) {
  std::vector<std::thread> Threads;
  for (uint8_t Own : {1, 2})
    Threads.emplace_back([Own] {
      for (int I = 0; I < 200; ++I) {
        Bytes Data = zip({{"own", {Own}}});
        ASSERT_EQ(Data.at(30 + 3), Own) << I; // behind its head and its name
      }
    });
  for (std::thread &T : Threads)
    T.join();
}

// A file cut anywhere is refused.
TEST(Package, RefusesEveryTruncation) {
  Bytes Data = package();
  size_t Step = std::max<size_t>(1, Data.size() / 500);
  for (size_t Size = 0; Size < Data.size(); Size += Step)
    EXPECT_NE(complaintOf(
                  Bytes(Data.begin(), Data.begin() + static_cast<long>(Size))),
              "")
        << Size;
}

// A changed bit is refused, or it hit what carries no meaning: then the package
// reads exactly as before.
TEST(Package, NoFlippedBitGoesUnnoticed) {
  Bytes Data = package();
  auto Good = readPackage(Data.data(), Data.size(), "test.greta");
  size_t Step = std::max<size_t>(1, Data.size() / 2000), Refused = 0;
  for (size_t I = 0; I < Data.size(); I += Step) {
    Bytes Bad = Data;
    Bad[I] ^= static_cast<uint8_t>(1u << I % 8);
    try {
      auto P = readPackage(Bad.data(), Bad.size(), "test.greta");
      EXPECT_EQ(P->ManifestText, Good->ManifestText) << I;
      EXPECT_EQ(P->Objects, Good->Objects) << I;
    } catch (const Error &E) {
      EXPECT_EQ(E.code(), GRETA_ERROR_BAD_PACKAGE);
      ++Refused;
    }
  }
  EXPECT_GT(Refused, 0u);
}

TEST(Package, RefusesForeignArchives) {
  Bytes Good = package();
  std::string Text = readPackage(Good.data(), Good.size(), "t")->ManifestText;
  Bytes Manifest(Text.begin(), Text.end());
  EXPECT_NE(complaintOf(zip({{"readme.txt", {1, 2, 3}}}))
                .find("neither manifest.json nor"),
            std::string::npos);
  EXPECT_NE(
      complaintOf(zip({{"objects/a.spv", {1, 2, 3}}})).find("no manifest.json"),
      std::string::npos);
  EXPECT_NE(complaintOf(zip({{"manifest.json", Manifest, /*Compressed=*/true}}))
                .find("compressed"),
            std::string::npos);
  EXPECT_NE(complaintOf(zip({{"manifest.json", Manifest}}))
                .find("not in the package"),
            std::string::npos);
  for (const char *Name : {"objects/", "objects/../x", "objects/.x",
                           "objects/a/b", "../manifest.json", "/etc/passwd"})
    EXPECT_NE(complaintOf(zip({{"manifest.json", Manifest}, {Name, {1}}})), "")
        << Name;
}

TEST(Package, SaysWhichHashIsWrong) {
  json M = manifest();
  for (json &F : M["functions"])
    for (json &V : F["variants"])
      for (json &K : V["kernels"])
        if (K["file"] == "objects/scale.spv")
          K["sha256"] = std::string(64, '0');
  std::string Text = complaintOf(package(M));
  EXPECT_NE(Text.find("SHA-256 of 'objects/scale.spv'"), std::string::npos)
      << Text;
}

TEST(Package, RefusesOtherSchemas) {
  EXPECT_NE(complaintOf(withManifest(R"({"schema": 2, "functions": []})"))
                .find("schema 2 is not supported"),
            std::string::npos);
  for (const char *Text :
       {"", "{", "[]", "1", "null", "{}", R"({"schema": "1"})",
        R"({"schema": 1.5})", R"({"schema": 1})",
        R"({"schema": 1, "functions": []})",
        R"({"schema": 1, "functions": [1]})",
        "{\"schema\": 1, \"functions\": \xff}"})
    EXPECT_NE(complaintOf(withManifest(Text)), "") << Text;
  std::string Deep = R"({"schema": 1, "functions": )" +
                     std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_NE(complaintOf(withManifest(Deep)), "");
}

// One value of a good manifest replaced: (where, what instead, what the message
// names).
TEST(Package, RefusesEachBadValue) {
  const struct {
    const char *Where, *Value, *Says;
  } Cases[] = {
      {"/functions/0/name", "\"\"", "functions[0].name"},
      {"/functions/0/name", "\"a b\"", "not a name"},
      {"/functions/0/name", "\"a\\u0000b\"", "not a name"},
      {"/functions/1/name", "\"scale\"", "appears twice"},
      {"/functions/0/args/0/dtype", "\"f33\"", "unknown dtype 'f33'"},
      {"/functions/0/args/0/access", "\"append\"", "access"},
      {"/functions/0/args/0/shape", "7", "shape"},
      {"/functions/0/args/0/shape/0", "\"k\"", "unknown symbol 'k'"},
      {"/functions/0/args/0/shape/0", "-1", "negative"},
      {"/functions/0/args/0/shape/0", "5", "is not this symbol"},
      {"/functions/0/args/0/shape/0", "1.5", "not an expression"},
      {"/functions/0/symbols/0/arg", "9", "symbols[0]"},
      {"/functions/0/symbols/1/name", "\"m\"", "appears twice"},
      {"/functions/0/results/0/shape/0", "[\"-\", \"m\", 1]",
       "unknown operator '-'"},
      {"/functions/0/results/0/shape/0", "[\"*\", \"m\", -1]",
       "negative integer -1"},
      {"/functions/0/results/0/shape", "[4611686018427387904, 8]",
       "address space"},
      {"/functions/0/variants", "[]", "variants"},
      {"/functions/0/variants/1/id", "\"vulkan-sg64\"", "appears twice"},
      {"/functions/0/variants/0/backend", "\"cuda\"", "unknown value 'cuda'"},
      {"/functions/0/variants/0/requires", "7", "requires"},
      {"/functions/0/variants/0/requires/subgroup_size", "24", "power of two"},
      {"/functions/0/variants/0/requires/subgroup_size", "0", "subgroup_size"},
      {"/functions/0/variants/0/requires/compute_units", "0", "compute_units"},
      {"/functions/0/variants/0/requires/resident", "0", "resident"},
      {"/functions/0/variants/0/kernels/0/resident", "1", "resident"},
      {"/functions/0/variants/0/kernels/0/resident", "true",
       "'requires' does not say of how many workgroups"},
      {"/functions/0/variants/0/kernels/0/trial", "0", "argument 0 is no i32"},
      {"/functions/0/variants/0/kernels/0/trial", "3", "argument 3 is no i32"},
      {"/functions/0/variants/0/kernels/0/trial", "2",
       "argument 2 is no i32 of value 0"},
      {"/functions/0/variants/0/requires/compute_units", "1.5",
       "compute_units"},
      {"/functions/0/variants/2/requires", "{}", "arch"},
      {"/functions/0/variants/0/compute_units", "0", "compute_units"},
      {"/functions/0/variants/0/kernels", "[]", "kernels"},
      {"/functions/0/variants/0/kernels/0/file", "\"objects/../x\"",
       "objects/<name>"},
      {"/functions/0/variants/0/kernels/0/file", "\"scale.spv\"",
       "objects/<name>"},
      {"/functions/0/variants/0/kernels/0/sha256", "\"12\"", "sha256"},
      {"/functions/0/variants/0/kernels/0/block", "[64, 1]", "block"},
      {"/functions/0/variants/0/kernels/0/block", "[64, 64, 1]",
       "limit is 1024"},
      {"/functions/0/variants/0/kernels/0/block", "[0, 1, 1]", "block[0]"},
      {"/functions/0/variants/0/kernels/0/grid/0", "[\"ceildiv\", \"m\"]",
       "not an expression"},
      {"/functions/0/variants/0/kernels/0/lds_bytes", "-1", "lds_bytes"},
      {"/functions/0/variants/0/kernels/0/args/0/kind", "\"temp\"",
       "there are 0"},
      {"/functions/0/variants/0/kernels/0/args/0/index", "1", "there are 1"},
      {"/functions/0/variants/0/kernels/0/args/2/value", "18446744073709551615",
       "out of range"},
      {"/functions/3/args/1/dtype", "\"i4\"", "unknown value 'i4'"},
      {"/functions/3/args/1/dtype", "\"bf16\"", "argument 1 is no integer"},
      {"/functions/3/args/1/dtype", "\"f32\"", "argument 1 is no integer"},
      {"/functions/3/args/1/kind", "\"array\"", "unknown value 'array'"},
      {"/functions/3/symbols/0/arg", "0", "argument 0 is no integer"},
      {"/functions/3/symbols/0/arg", "2", "there is no argument 2"},
      {"/functions/3/symbols/0/dim", "0",
       "argument 1, dim 0 is not this symbol"},
      {"/functions/3/results/0/tied", "2", "there are 2 arguments"},
      {"/functions/3/results/0/tied", "1", "is no tensor of the result's"},
      {"/functions/3/results/0/dtype", "\"f16\"",
       "is no tensor of the result's"},
      {"/functions/3/results/0/shape/0", "[\"+\", \"n\", 1]",
       "is no tensor of the result's"},
      {"/functions/3/args/0/align", "0", "not an integer from 1 to 16"},
      {"/functions/3/args/0/max_bytes", "-1", "not an integer from 0"},
      {"/functions/3/in_place", "1", "neither true nor false"},
      {"/functions/3/results/1",
       R"({"name": "z", "dtype": "f32", "shape": ["n"], "access": "readwrite",
           "tied": 0})",
       "another result is tied to argument 0"},
      {"/functions/3/variants/0/backend", "\"host\"", "arch"},
  };
  for (const auto &C : Cases) {
    Bytes Data = package();
    json M =
        json::parse(readPackage(Data.data(), Data.size(), "t")->ManifestText);
    M[json::json_pointer(C.Where)] = json::parse(C.Value);
    std::string Got = complaintOf(withManifest(M.dump()));
    EXPECT_NE(Got.find(C.Says), std::string::npos)
        << C.Where << " = " << C.Value << ": " << Got;
    EXPECT_EQ(Got.find('\n'), std::string::npos) << Got;
  }
}

TEST(Package, GpuVariantsRequireComputeUnits) {
  json M = manifest();
  json &Variants = M["functions"][0]["variants"];
  for (json &V : Variants)
    V["requires"]["compute_units"] = 24;
  Bytes Data = package(M);
  auto P = readPackage(Data.data(), Data.size(), "t");
  for (const Variant &V : P->find("scale")->Variants) {
    bool IsHost = V.Backend == "host";
    EXPECT_EQ(V.Requires.ComputeUnits, IsHost ? 0u : 24u) << V.Id;
    EXPECT_EQ(V.Requires.Unknown, IsHost ? "compute_units" : "") << V.Id;
  }
}

TEST(Package, RangesHaveConditionsAndKernels) {
  json M = manifest();
  const json V = M["functions"][0]["variants"][1];
  json Range = {{"when", {{"m", 2, 8}}},
                {"requires", V["requires"]},
                {"kernels", V["kernels"]}};
  auto Complaint = [&](const char *Where, const char *Value) {
    json Own = M, Bad = Range;
    Bad[json::json_pointer(Where)] = json::parse(Value);
    Own["functions"][0]["variants"][1]["ranges"] = {Range, Bad};
    return complaintOf(package(Own));
  };
  const struct {
    const char *Where, *Value, *Says;
  } Cases[] = {
      {"/when", "[]", "ranges[1].when: not a list of 1 to 16"},
      {"/when", "[[\"m\", 1, 2, 3]]", "ranges[1].when[0]: not a list of 3"},
      {"/when/0", "[\"k\", 1, 2]", "unknown symbol 'k'"},
      {"/when/0", "[\"m\", -1, 2]", "when[0][1]: not an integer from 0"},
      {"/when/0", "[\"m\", 1, 9223372036854775808]", "when[0][2]: not an"},
      {"/when/0", "[\"m\", 1, 2.5]", "when[0][2]: not an integer"},
      {"/when/0", "[\"m\", 9, 8]", "no value is from 9 to 8"},
      {"/requires", "7", "ranges[1].requires: not an object"},
      {"/kernels", "[]", "ranges[1].kernels: not a list of 1"},
      {"/kernels/0/args/0", R"({"kind": "temp", "index": 0})", "there are 0"},
  };
  for (const auto &C : Cases)
    EXPECT_NE(Complaint(C.Where, C.Value).find(C.Says), std::string::npos)
        << C.Where << " = " << C.Value << ": " << Complaint(C.Where, C.Value);
  // Ranges may overlap, and a range may be anywhere.
  EXPECT_EQ(Complaint("/when/0", "[[\"*\", \"m\", \"n\"], 8, "
                                 "9223372036854775807]"),
            "");
  M["functions"][0]["variants"][2]["ranges"] = {Range};
  EXPECT_NE(complaintOf(package(M)), "") << "a host variant";
}

TEST(Package, HostVariantsTakeTensors) {
  json M = manifest();
  json Host = M["functions"][0]["variants"][2];
  M["functions"][3]["variants"] = {Host};
  EXPECT_NE(complaintOf(package(M)).find("takes tensors, 'n' is a scalar"),
            std::string::npos);
  M = manifest();
  M["functions"][0]["results"][0]["tied"] = 0;
  EXPECT_EQ(complaintOf(package(M)), "");
}

TEST(Package, ScalarsHaveTheirSizeInTheBlock) {
  json M = manifest();
  M["functions"][3]["args"][1]["dtype"] = "i64";
  Bytes Data = package(M);
  auto P = readPackage(Data.data(), Data.size(), "t");
  const KernelDecl &K = P->find("in_place")->Variants[0].Kernels[0];
  EXPECT_EQ(K.Args[2].Which, KernelArg::Scalar);
  EXPECT_EQ(argumentOffsets(K.Args), (std::vector<uint32_t>{0, 8, 16, 24}));
}

TEST(Package, LimitsArguments) {
  json M = manifest();
  json &Args = M["functions"][0]["variants"][1]["kernels"][0]["args"];
  while (Args.size() < 512)
    Args.push_back({{"kind", "arg"}, {"index", 0}});
  EXPECT_EQ(complaintOf(package(M)), "");
  Args.push_back({{"kind", "arg"}, {"index", 0}});
  EXPECT_NE(complaintOf(package(M)).find("4096 is the most"),
            std::string::npos);
}

TEST(Package, KeepsUnknownRequirements) {
  json M = manifest();
  M["functions"][0]["variants"][1]["requires"]["telepathy"] = true;
  Bytes Data = package(M);
  EXPECT_EQ(readPackage(Data.data(), Data.size(), "t")
                ->Functions[0]
                .Variants[1]
                .Requires.Unknown,
            "telepathy");
}

int64_t evaluate(const char *Text, std::vector<int64_t> Values) {
  return Expr::parse(json::parse(Text), {"a", "b"}, "expr").evaluate(Values);
}

TEST(Expr, Evaluates) {
  EXPECT_EQ(evaluate("7", {}), 7);
  EXPECT_EQ(evaluate("\"b\"", {1, 2}), 2);
  EXPECT_EQ(evaluate(R"(["+", "a", ["*", 3, "b"]])", {1, 2}), 7);
  EXPECT_EQ(evaluate(R"(["floordiv", "a", 4])", {11, 0}), 2);
  EXPECT_EQ(evaluate(R"(["ceildiv", "a", 4])", {11, 0}), 3);
  EXPECT_EQ(evaluate(R"(["ceildiv", "a", 4])", {12, 0}), 3);
  EXPECT_EQ(evaluate(R"(["ceildiv", "a", "b"])", {INT64_MAX, 2}),
            INT64_MAX / 2 + 1);
  EXPECT_EQ(evaluate(R"(["mod", "a", 4])", {11, 0}), 3);
  EXPECT_EQ(evaluate(R"(["floordiv", ["+", "a", -2], 4])", {11, 0}), 2);
}

TEST(Expr, RefusesOverflowAndDivisionByZero) {
  EXPECT_THROW(evaluate(R"(["*", "a", "b"])", {INT64_MAX, 2}), Error);
  EXPECT_THROW(evaluate(R"(["+", "a", "b"])", {INT64_MAX, 1}), Error);
  EXPECT_THROW(evaluate(R"(["mod", "a", "b"])", {1, 0}), Error);
  EXPECT_THROW(evaluate(R"(["floordiv", "a", "b"])", {1, 0}), Error);
  EXPECT_THROW(evaluate(R"("a")", {-1, 0}), Error);
  EXPECT_THROW(evaluate(R"(["+", "a", -2])", {1, 0}), Error);
  EXPECT_THROW(evaluate(R"(["floordiv", "a", -2])", {4, 0}), Error);
}

TEST(DType, SizesTensors) {
  EXPECT_EQ(tensorBytes("f16", {3, 5}), 30u);
  EXPECT_EQ(tensorBytes("i4", {3}), 2u);
  EXPECT_EQ(tensorBytes("f32", {}), 4u);
  EXPECT_EQ(tensorBytes("f8e5m2", {0, 7}), 0u);
  EXPECT_THROW(tensorBytes("f32", {INT64_MAX, 2}), Error);
}

TEST(Sha256, KnownAnswer) {
  EXPECT_EQ(sha256("abc", 3),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

} // namespace
