// Compile.cpp: the verb `compile`, and the cache of packages (Compile.h). The
// module goes to greta-translate, which is installed beside this program;
// nothing else of the compiler is needed, so greta-llm itself has no LLVM.
#include "Compile.h"
#include "Progress.h"
#include "engine/Engine.h"
#include "engine/Graph.h"
#include "greta_runtime.hpp"
#include "model/Shards.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <set>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

namespace greta::llm {
namespace {

// The compiler beside this program, else the first in PATH.
std::string compilerPath() {
  std::error_code ignored;
  std::string folders =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  if (const char *path = secure_getenv("PATH"))
    folders += std::string(":") + path;
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    std::filesystem::path program =
        std::filesystem::path(folder) / "greta-translate";
    if (std::filesystem::exists(program, ignored))
      return program;
  }
  fail("there is no greta-translate, beside this program or in PATH, which "
       "compiles a model's kernels");
}

} // namespace

bool isEndAsked() {
  sigset_t pending;
  return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) == 1 ||
                                       sigismember(&pending, SIGINT) == 1);
}

namespace {

// greta-translate as a child process that reads the module from a pipe; its
// diagnostics go where ours do. `joined`: workgroups of a joined launch on a
// compute unit, 0 without such. `partRows`: of sums over devices.
int translate(const std::string &module, const std::string &targets,
              const std::string &output, bool isQuiet, int64_t joined = 0,
              std::optional<int64_t> partRows = std::nullopt) {
  std::string program = compilerPath();
  std::vector<std::string> words = {
      program, "--greta-to-package", "--targets=" + targets, "-", "-o", output};
  if (isQuiet)
    words.push_back("--quiet");
  if (joined)
    words.push_back("--join=" + std::to_string(joined));
  if (partRows)
    words.push_back("--part-rows=" + std::to_string(*partRows));
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fail(std::string("cannot make a pipe: ") + strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  // A server has signals blocked; they end its compiler, also where only the
  // server gets them.
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  pid_t child;
  int problem = posix_spawn(&child, program.c_str(), &actions, &how,
                            arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&how);
  close(ends[0]);
  if (problem) {
    close(ends[1]);
    fail(program + ": cannot be started: " + strerror(problem));
  }
  // A child that ends early leaves the rest unread; its status says why.
  auto before = signal(SIGPIPE, SIG_IGN);
  for (size_t done = 0; done < module.size();) {
    ssize_t wrote = write(ends[1], module.data() + done, module.size() - done);
    if (wrote <= 0)
      break;
    done += static_cast<size_t>(wrote);
  }
  close(ends[1]);
  signal(SIGPIPE, before);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (isEndAsked())
      kill(child, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (WIFSIGNALED(status))
    fail(std::string("greta-translate: ") + strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status);
}

std::string writeChecked(const Model &model, Element element, KvCache cache,
                         const std::vector<int64_t> &batches) {
  checkKvCache(model, cache);
  if (!model.config.has(Bidirectional) &&
      model.config.vocabulary > largestVocabulary)
    fail("the vocabulary has " + std::to_string(model.config.vocabulary) +
         " tokens; the device chooses from up to " +
         std::to_string(largestVocabulary));
  return writeModule(model, element, cache, batches);
}

// The functions of each of several devices.
std::string writeDivided(const Model &model, Element element, KvCache cache,
                         int64_t shards, const std::vector<int64_t> &batches) {
  return shards < 2
             ? writeChecked(model, element, cache, batches)
             : writeChecked(shardOf(model, 0, shards), element, cache, batches);
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

class Sha256 {
public:
  Sha256() { EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr); }
  void add(const void *data, size_t size) {
    EVP_DigestUpdate(context.get(), data, size);
  }
  // With its length, so that no two lists of texts are alike.
  void add(const std::string &text) {
    uint64_t size = text.size();
    add(&size, sizeof(size));
    add(text.data(), text.size());
  }
  std::string hex() {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context.get(), bytes, &size);
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
      char two[3];
      snprintf(two, sizeof(two), "%02x", bytes[i]);
      text += two;
    }
    return text;
  }

private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX *)> context{EVP_MD_CTX_new(),
                                                              EVP_MD_CTX_free};
};

// The targets of a package for a device: its chip, or its family of
// Vulkan devices and, for drivers that lack what its kernels need, any.
std::string targetsOf(const std::string &device) {
  auto info = nlohmann::json::parse(greta::Runtime(device).info(), nullptr,
                                    /*allow_exceptions=*/false);
  std::string backend = info.is_object() ? info.value("backend", "") : "";
  if (backend == "hip")
    return info.value("arch", "");
  if (backend != "vulkan")
    fail("a language model has no form for the device '" + backend +
         "'; Mesa's lavapipe runs Vulkan on the CPU");
  std::string family = info.value("family", "");
  return family.empty() ? "vulkan" : family + ",vulkan:portable";
}

} // namespace

std::filesystem::path cachePath() {
  const char *cache = secure_getenv("XDG_CACHE_HOME");
  const char *home = secure_getenv("HOME");
  std::filesystem::path folder;
  if (cache && *cache == '/')
    folder = cache;
  else if (home && *home == '/')
    folder = std::filesystem::path(home) / ".cache";
  else
    fail("there is no folder for compiled packages: set XDG_CACHE_HOME or "
         "HOME, or name a package that greta-llm compile wrote");
  return folder / "greta" / "llm";
}

namespace {

// The same, made where there is none.
std::filesystem::path cacheFolder() {
  std::filesystem::path folder = cachePath();
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem)
    fail(folder.string() + ": cannot be made: " + problem.message());
  return folder;
}

// The compiler is known by its bytes.
void addCompiler(Sha256 &hash) {
  std::ifstream file(compilerPath(), std::ios::binary);
  std::vector<char> piece(1 << 20);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hash.add(piece.data(), static_cast<size_t>(file.gcount()));
  }
}

bool namesHost(const std::string &targets) {
  std::istringstream list(targets);
  for (std::string target; std::getline(list, target, ',');)
    if (target == "host")
      return true;
  return false;
}

} // namespace

std::vector<int64_t> batchesFor(int64_t sequences) {
  constexpr int64_t largest = 32; // of more, a step takes several
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < std::min(sequences, largest); size *= 2)
    sizes.push_back(size);
  sizes.push_back(std::min(sequences, largest));
  return sizes;
}

std::string packageFor(const Model &model, const Options &options,
                       std::vector<int64_t> batches) {
  if (!options.package.empty())
    return options.package;
  batches.push_back(1);
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  Progress progress(options.isQuiet);
  progress.say("looking for the device");
  std::string targets = targetsOf(
      options.devices.empty() ? options.device : options.devices.front());
  EngineOptions engine = EngineOptions::of(options);
  std::set<std::string> known = {targets};
  for (const std::string &device : options.devices) {
    std::string its = targetsOf(device);
    if (!known.insert(its).second)
      continue;
    if (!engine.isByLayers)
      fail("--devices: " + options.devices.front() + " and " + device +
           " run different kernels; such are for --split=layers");
    targets += "," + its;
  }
  std::string module = writeDivided(
      model, model.element(), kvCacheNamed(options.kvCache),
      engine.isByLayers ? 1 : static_cast<int64_t>(engine.count), batches);
  Sha256 hash;
  hash.add(module);
  hash.add(targets);
  addCompiler(hash);
  std::filesystem::path path = cacheFolder() / (hash.hex() + ".greta");
  progress.clear();
  // One that was damaged is made anew. The compiler's file appears as a whole.
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored))
    try {
      greta::Package package(path.string());
      return path;
    } catch (const greta::Error &) {
    }
  if (translate(module, targets, path, options.isQuiet) != 0)
    fail("greta-translate has made no package of the model's kernels for " +
         targets);
  return path;
}

int compile(const Options &options) {
  Model model = readModel(options.model, options.synthetic);
  Element element = options.type == "f32"    ? Element::F32
                    : options.type == "f16"  ? Element::F16
                    : options.type == "bf16" ? Element::BF16
                                             : model.element();
  std::string module =
      writeDivided(model, element, kvCacheNamed(options.kvCache),
                   options.shards, options.batches);
  if (options.printsModule) {
    fputs(module.c_str(), stdout);
    return 0;
  }
  if (namesHost(options.targets))
    fail("--targets=" + options.targets +
         ": a language model has no form for the host; compile for vulkan, "
         "which Mesa's lavapipe runs on the CPU");
  if (options.targets.empty() || options.output.empty())
    fail("say with --targets=gfx942,vulkan for what to compile, and with -o "
         "where to write the package");
  int status = translate(module, options.targets, options.output,
                         options.isQuiet, options.joined, options.partRows);
  if (status == 0 && !options.isQuiet)
    printf("%s: activations in %s; %s\n", options.output.c_str(),
           nameOf(element), describeHeld(model, element).c_str());
  return status;
}

} // namespace greta::llm
