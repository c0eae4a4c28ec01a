// PackageFuzz.cpp: libFuzzer over the bytes of a package. A random ZIP hardly
// ever has matching checksums, so half of the mutations change a member and
// write the archive anew, with the manifest's hashes those of the members.
#include "Evaluate.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <zip.h>

using namespace greta_fuzz;
using nlohmann::json;

extern "C" size_t LLVMFuzzerMutate(uint8_t *Data, size_t Size, size_t MaxSize);

namespace {
using Bytes = std::vector<uint8_t>;
using Members = std::vector<std::pair<std::string, Bytes>>;

// Empty when libzip does not read it.
Members unzip(const uint8_t *Data, size_t Size) {
  Members Result;
  zip_source_t *Source = zip_source_buffer_create(Data, Size, 0, nullptr);
  zip_t *Z = zip_open_from_source(Source, ZIP_RDONLY, nullptr);
  if (!Z) {
    zip_source_free(Source);
    return Result;
  }
  for (zip_int64_t I = 0; I < zip_get_num_entries(Z, 0) && I < 16; ++I) {
    zip_stat_t Stat;
    zip_file_t *File = zip_fopen_index(Z, zip_uint64_t(I), 0);
    if (!File || zip_stat_index(Z, zip_uint64_t(I), 0, &Stat) != 0 ||
        Stat.size > Size) {
      if (File)
        zip_fclose(File);
      continue;
    }
    Bytes Content(Stat.size);
    zip_fread(File, Content.data(), Content.size());
    zip_fclose(File);
    Result.push_back({Stat.name, std::move(Content)});
  }
  zip_discard(Z);
  return Result;
}

Bytes archive(const Members &All) {
  zip_source_t *Source = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(Source);
  zip_t *Z = zip_open_from_source(Source, ZIP_TRUNCATE, nullptr);
  for (const auto &[Name, Data] : All) {
    zip_int64_t I = zip_file_add(
        Z, Name.c_str(), zip_source_buffer(Z, Data.data(), Data.size(), 0),
        ZIP_FL_OVERWRITE);
    if (I >= 0)
      zip_set_file_compression(Z, zip_uint64_t(I), ZIP_CM_STORE, 0);
  }
  Bytes Result;
  if (zip_close(Z) == 0 && zip_source_open(Source) == 0) {
    zip_stat_t Stat;
    zip_source_stat(Source, &Stat);
    Result.resize(Stat.size);
    zip_source_read(Source, Result.data(), Result.size());
    zip_source_close(Source);
  } else {
    zip_discard(Z);
  }
  zip_source_free(Source);
  return Result;
}

// Gives the manifest the hashes of what is there.
void sign(Members &All) {
  for (auto &[Name, Text] : All) {
    if (Name != "manifest.json")
      continue;
    json Manifest = json::parse(Text, nullptr, /*allow_exceptions=*/false);
    std::function<void(json &)> Visit = [&](json &J) {
      if (J.is_object() && J.contains("file") && J.contains("sha256"))
        for (const auto &[File, Data] : All)
          if (J["file"] == File)
            J["sha256"] = sha256(Data.data(), Data.size());
      if (J.is_structured())
        for (json &Part : J)
          Visit(Part);
    };
    if (Manifest.is_discarded())
      return;
    Visit(Manifest);
    std::string New =
        Manifest.dump(-1, ' ', false, json::error_handler_t::replace);
    Text.assign(New.begin(), New.end());
  }
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *Data, size_t Size,
                                          size_t MaxSize, unsigned Seed) {
  std::minstd_rand Random(Seed);
  Members All = Random() % 2 ? unzip(Data, Size) : Members();
  if (All.empty())
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  auto &[Name, Content] = All[Random() % All.size()];
  size_t Old = Content.size();
  Content.resize(Old + 64);
  Content.resize(LLVMFuzzerMutate(Content.data(), Old, Content.size()));
  if (Random() % 8)
    sign(All);
  Bytes New = archive(All);
  if (New.empty() || New.size() > MaxSize)
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  memcpy(Data, New.data(), New.size());
  return New.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  expectOneDiagnostic([&] {
    std::shared_ptr<const Package> P = readPackage(Data, Size, "fuzz");
    for (const FunctionDecl &F : P->Functions)
      evaluate(F);
  });
  return 0;
}
