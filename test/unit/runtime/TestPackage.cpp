// TestPackage.cpp: see TestPackage.h.
#include "TestPackage.h"
#include "Error.h"
#include "Package.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <zip.h>

namespace greta_test {
using nlohmann::json;

std::string temporaryFolder() {
  struct Folder {
    Folder()
        : Path((std::filesystem::temp_directory_path() / "greta-test-XXXXXX")
                   .string()) {
      if (!mkdtemp(Path.data()))
        throw std::runtime_error("mkdtemp");
    }
    ~Folder() { std::filesystem::remove_all(Path); }
    std::string Path;
  };
  static Folder F;
  return F.Path;
}

Bytes fixture(const std::string &Name) {
  std::ifstream In(std::string(GRETA_TEST_FIXTURES "/") + Name,
                   std::ios::binary);
  if (!In)
    throw std::runtime_error("no fixture " + Name);
  return Bytes(std::istreambuf_iterator<char>(In), {});
}

// In memory: threads of a test that make packages at once share no file.
Bytes zip(const std::vector<Member> &Members) {
  zip_source_t *Made = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(Made); // the archive's end frees it once
  std::shared_ptr<zip_source_t> Owner(Made, zip_source_free);
  zip_t *Z = zip_open_from_source(Made, ZIP_TRUNCATE, nullptr);
  for (const Member &M : Members) {
    zip_int64_t I =
        zip_file_add(Z, M.Name.c_str(),
                     zip_source_buffer(Z, M.Data.data(), M.Data.size(), 0), 0);
    zip_set_file_compression(Z, static_cast<zip_uint64_t>(I),
                             M.Compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  zip_stat_t Stat;
  if (zip_close(Z) != 0 || zip_source_stat(Made, &Stat) != 0 ||
      zip_source_open(Made) != 0)
    throw std::runtime_error("zip_close");
  Bytes All(Stat.size);
  zip_int64_t Got = zip_source_read(Made, All.data(), All.size());
  zip_source_close(Made);
  if (Got != static_cast<zip_int64_t>(All.size()))
    throw std::runtime_error("zip_source_read");
  return All;
}

static json kernel(const char *File, const char *Entry, json Args) {
  return {{"file", std::string("objects/") + File},
          {"sha256", ""},
          {"entry", Entry},
          {"block", {64, 1, 1}},
          {"grid", {{"ceildiv", {"*", "m", "n"}, 64}, 1, 1}},
          {"lds_bytes", 0},
          {"args", Args}};
}

static json arg(const char *Kind, int Index) {
  return {{"kind", Kind}, {"index", Index}};
}

json manifest() {
  json Count = {{"kind", "i32"}, {"value", {"*", "m", "n"}}};
  json Portable = {{"features", {"bufferDeviceAddress"}}};
  json Wide = Portable;
  Wide["subgroup_size"] = 64;
  json Scale =
      kernel("scale.spv", "scale", {arg("arg", 0), arg("result", 0), Count});
  json Host = kernel("host_scale.so", "scale",
                     {arg("arg", 0), arg("result", 0), Count});
  Host["block"] = {1, 1, 1};
  Host["grid"] = {1, 1, 1};
  json Tensors = {{"symbols",
                   {{{"name", "m"}, {"arg", 0}, {"dim", 0}},
                    {{"name", "n"}, {"arg", 0}, {"dim", 1}}}},
                  {"args",
                   {{{"name", "x"},
                     {"dtype", "f32"},
                     {"shape", {"m", "n"}},
                     {"access", "read"}}}},
                  {"results",
                   {{{"name", "y"},
                     {"dtype", "f32"},
                     {"shape", {"m", "n"}},
                     {"access", "write"}}}}};
  json F = Tensors;
  F["name"] = "scale";
  json Hip = kernel("scale.gfx942.hsaco", "scale",
                    {arg("arg", 0), arg("result", 0), Count});
  F["variants"] = {{{"id", "vulkan-sg64"},
                    {"target", "vulkan:wide"},
                    {"backend", "vulkan"},
                    {"requires", Wide},
                    {"kernels", {Scale}}},
                   {{"id", "vulkan-portable"},
                    {"target", "vulkan:portable"},
                    {"backend", "vulkan"},
                    {"requires", Portable},
                    {"kernels", {Scale}}},
                   {{"id", "host"},
                    {"target", "host"},
                    {"backend", "host"},
                    {"requires", {{"arch", GRETA_TEST_HOST_ARCH}}},
                    {"kernels", {Host}}}};
  // Only where the build's compiler has the AMDGPU target.
  if (std::filesystem::exists(GRETA_TEST_FIXTURES "/scale.gfx942.hsaco"))
    F["variants"].push_back({{"id", "gfx942"},
                             {"target", "gfx942"},
                             {"backend", "hip"},
                             {"requires", {{"arch", "gfx942"}}},
                             {"kernels", {Hip}}});
  json Twice = Tensors;
  Twice["name"] = "twice_scaled";
  Twice["variants"] = json::array();
  for (json V : F["variants"]) {
    if (V["backend"] == "host") // has one kernel
      continue;
    json First = V["kernels"][0], Second = First;
    First["args"] = {arg("arg", 0), arg("temp", 0), Count};
    Second["args"] = {arg("temp", 0), arg("result", 0), Count};
    V["temps"] = {{{"dtype", "f32"}, {"shape", {"m", "n"}}}};
    V["kernels"] = {First, Second};
    Twice["variants"].push_back(V);
  }
  json Subgroup = Tensors;
  Subgroup["name"] = "subgroup";
  Subgroup["variants"] = json::array();
  for (int Size : {64, 32, 16, 8, 4}) {
    json Needs = Portable;
    Needs["subgroup_size"] = Size;
    Needs["subgroup_ops"] = {"basic"};
    Subgroup["variants"].push_back(
        {{"id", "sg" + std::to_string(Size)},
         {"target", "vulkan"},
         {"backend", "vulkan"},
         {"requires", Needs},
         {"kernels",
          {kernel("subgroup.spv", "subgroup",
                  {arg("arg", 0), arg("result", 0), Count})}}});
  }
  json InPlace = {
      {"name", "in_place"},
      {"symbols", {{{"name", "n"}, {"arg", 1}}}},
      {"args",
       {{{"name", "x"}, {"dtype", "f32"}, {"shape", {"n"}}, {"access", "read"}},
        {{"name", "n"}, {"dtype", "i32"}, {"kind", "scalar"}}}},
      {"results",
       {{{"name", "y"},
         {"dtype", "f32"},
         {"shape", {"n"}},
         {"access", "readwrite"},
         {"tied", 0}}}},
      {"variants", json::array()}};
  for (json V : F["variants"]) {
    if (V["backend"] == "host") // has neither scalars nor tied results
      continue;
    V["kernels"][0]["args"] = {arg("result", 0), arg("result", 0),
                               arg("arg", 1)};
    V["kernels"][0]["grid"] = {{"ceildiv", "n", 64}, 1, 1};
    InPlace["variants"].push_back(V);
  }
  return {{"schema", 1},
          {"compiler", {{"greta", "0.1.0"}, {"llvm", "22.1.8"}}},
          {"functions", {F, Twice, Subgroup, InPlace}}};
}

json sumManifest(bool InPlace, const json &Parts) {
  json M = manifest(), F;
  for (const json &G : M["functions"])
    if (G["name"] == "twice_scaled")
      F = G;
  F["name"] = "summed";
  for (json &V : F["variants"]) {
    V["requires"]["communicator"] = true;
    if (!InPlace) {
      V["temps"].push_back(V["temps"][0]);
      V["kernels"][1]["args"][0] = arg("temp", 1);
    }
    V["sums"] = {{{"after", 1},
                  {"from", arg("temp", 0)},
                  {"to", arg("temp", InPlace ? 0 : 1)}}};
    if (Parts.is_null())
      continue;
    V["sums"][0]["parts"] = Parts;
    for (json &K : V["kernels"])
      K["by_rows"] = {0, 1};
  }
  json Alone = F;
  Alone["name"] = "sum";
  for (json &V : Alone["variants"]) {
    V["kernels"] = json::array();
    V["temps"] = json::array();
    V["sums"] = {
        {{"after", 0}, {"from", arg("arg", 0)}, {"to", arg("result", 0)}}};
  }
  M["functions"].push_back(F);
  M["functions"].push_back(Alone);
  return M;
}

Bytes package(json Manifest) {
  std::map<std::string, Bytes> Objects;
  auto Complete = [&](json &Kernels) {
    for (json &K : Kernels) {
      std::string File = K["file"];
      if (!Objects.count(File))
        Objects[File] = fixture(File.substr(File.rfind('/') + 1));
      if (K["sha256"] == "")
        K["sha256"] =
            greta::rt::sha256(Objects[File].data(), Objects[File].size());
    }
  };
  for (json &F : Manifest["functions"])
    for (json &V : F["variants"]) {
      Complete(V["kernels"]);
      if (V.contains("ranges"))
        for (json &R : V["ranges"])
          Complete(R["kernels"]);
    }
  std::string Text = Manifest.dump(1);
  std::vector<Member> Members = {
      {"manifest.json", Bytes(Text.begin(), Text.end())}};
  for (auto &[Name, Data] : Objects)
    Members.push_back({Name, Data});
  return zip(Members);
}

greta::Package packageOf(const Bytes &Data) {
  return greta::Package(Data.data(), Data.size());
}

std::string complaintOf(const Bytes &Data) {
  try {
    greta::rt::readPackage(Data.data(), Data.size(), "test.greta");
    return "";
  } catch (const greta::rt::Error &E) {
    return E.code() == GRETA_ERROR_BAD_PACKAGE ? E.what() : "another error";
  }
}

} // namespace greta_test
