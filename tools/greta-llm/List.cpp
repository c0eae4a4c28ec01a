// List.cpp: the verb `list`. Out: the models that greta-llm knows, and the
// packages in the cache, as text or as JSON.
#include "Compile.h"
#include "Options.h"
#include "greta_runtime.hpp"
#include "model/Model.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

namespace greta::llm {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The targets of a package's kernels; of one that cannot be read none.
std::vector<std::string> targetsOf(const fs::path &path) {
  std::set<std::string> targets;
  try {
    json manifest =
        json::parse(greta::Package(path.string()).manifest(), nullptr, false);
    for (const json &function : manifest.value("functions", json::array()))
      for (const json &variant : function.value("variants", json::array()))
        targets.insert(variant.value("target", ""));
  } catch (const std::exception &) {
    return {};
  }
  return {targets.begin(), targets.end()};
}

// The newest first. A file that vanishes meanwhile is left out.
json cachedPackages(const fs::path &folder) {
  std::error_code problem;
  std::vector<std::pair<fs::file_time_type, json>> found;
  fs::directory_iterator files(folder, problem);
  if (problem && problem != std::errc::no_such_file_or_directory)
    fail(folder.string() + ": cannot be listed: " + problem.message());
  for (const fs::directory_entry &file : files) {
    std::error_code gone;
    auto time = file.last_write_time(gone);
    auto bytes = gone ? 0 : file.file_size(gone);
    if (gone || file.path().extension() != ".greta")
      continue;
    auto age = std::chrono::duration_cast<std::chrono::seconds>(
        fs::file_time_type::clock::now() - time);
    found.push_back({time,
                     {{"name", file.path().filename().string()},
                      {"targets", targetsOf(file.path())},
                      {"bytes", bytes},
                      {"age", std::max<int64_t>(age.count(), 0)}}});
  }
  std::sort(found.begin(), found.end(), [](const auto &a, const auto &b) {
    return a.first != b.first ? a.first > b.first
                              : a.second["name"] < b.second["name"];
  });
  json packages = json::array();
  for (auto &[time, package] : found)
    packages.push_back(std::move(package));
  return packages;
}

std::string ageOf(int64_t seconds) {
  const std::pair<int64_t, const char *> units[] = {
      {86400, "d"}, {3600, "h"}, {60, "min"}};
  for (auto [unit, name] : units)
    if (seconds >= unit)
      return std::to_string(seconds / unit) + " " + name;
  return std::to_string(seconds) + " s";
}

// "a, b" as a list.
json listOf(std::string names) {
  std::replace(names.begin(), names.end(), ',', ' ');
  return wordsOf(names);
}

std::string joined(const json &texts) {
  std::string all;
  for (const json &text : texts)
    all += (all.empty() ? "" : ", ") + text.get<std::string>();
  return all;
}

void printTable(const json &all) {
  printf("%-24s%s\n", "config.json", "GGUF");
  for (const json &one : all["architectures"])
    printf("%-24s%s\n", one["config"].get<std::string>().c_str(),
           one["gguf"].get<std::string>().c_str());
  printf("\nformats of weights: %s\nsynthetic: %s\n\n",
         joined(all["formats"]).c_str(), joined(all["synthetic"]).c_str());
  const json &packages = all["packages"];
  printf("packages in %s: %zu\n", all["cache"].get<std::string>().c_str(),
         packages.size());
  for (const json &one : packages) {
    std::string targets = joined(one["targets"]);
    printf("%s  %s  %.1f MB  %s\n", one["name"].get<std::string>().c_str(),
           targets.empty() ? "damaged" : targets.c_str(),
           one["bytes"].get<double>() / 1e6,
           ageOf(one["age"].get<int64_t>()).c_str());
  }
}

} // namespace

int list(const Options &options) {
  fs::path folder = cachePath();
  json all = {{"architectures", json::array()},
              {"formats", listOf(fileFormats())},
              {"synthetic", listOf(syntheticNames())},
              {"cache", folder.string()},
              {"packages", cachedPackages(folder)}};
  for (const Architecture *one : allArchitectures())
    all["architectures"].push_back(
        {{"config", one->huggingFace}, {"gguf", one->gguf}});
  if (options.format == "json")
    puts(all.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  else
    printTable(all);
  return 0;
}

} // namespace greta::llm
