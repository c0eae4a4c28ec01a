// Compile.cpp: the verb `compile`. In: a model. Out: a package with its
// functions for the targets asked for. The module goes to greta-translate,
// which is installed beside this program; nothing else of the compiler is
// needed, so greta-llm itself has no LLVM.
#include "Graph.h"
#include "Options.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace greta::llm {
namespace {

// greta-translate as a child process that reads the module from a pipe; its
// diagnostics go where ours do.
int translate(const std::string &module, const Options &options) {
  std::error_code ignored;
  std::filesystem::path beside =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() /
      "greta-translate";
  std::string program =
      std::filesystem::exists(beside, ignored) ? beside : "greta-translate";
  std::vector<std::string> words = {
      program, "--greta-to-package", "--targets=" + options.targets, "-",
      "-o",    options.output};
  if (options.isQuiet)
    words.push_back("--quiet");
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);

  int ends[2];
  if (pipe(ends) != 0)
    fail(std::string("cannot make a pipe: ") + strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child;
  int problem = posix_spawnp(&child, program.c_str(), &actions, nullptr,
                             arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[0]);
  if (problem) {
    close(ends[1]);
    fail(program + ": cannot be started: " + strerror(problem) +
         "; greta-llm compile needs GRETA's compiler beside it");
  }
  // A child that ends early leaves the rest unread; its status says why.
  signal(SIGPIPE, SIG_IGN);
  for (size_t done = 0; done < module.size();) {
    ssize_t wrote = write(ends[1], module.data() + done, module.size() - done);
    if (wrote <= 0)
      break;
    done += static_cast<size_t>(wrote);
  }
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

bool namesHost(const std::string &targets) {
  std::istringstream list(targets);
  for (std::string target; std::getline(list, target, ',');)
    if (target == "host")
      return true;
  return false;
}

} // namespace

int compile(const Options &options) {
  Model model = readModel(options.model, options.synthetic);
  Element element = options.type == "f32"    ? Element::F32
                    : options.type == "f16"  ? Element::F16
                    : options.type == "bf16" ? Element::BF16
                                             : model.element();
  if (model.config.vocabulary > largestVocabulary)
    fail("the vocabulary has " + std::to_string(model.config.vocabulary) +
         " tokens; the device chooses from up to " +
         std::to_string(largestVocabulary));
  std::string module = writeModule(model, element, options.batches);
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
  int status = translate(module, options);
  if (status == 0 && !options.isQuiet)
    printf("%s: activations in %s; %s\n", options.output.c_str(),
           nameOf(element), describeHeld(model, element).c_str());
  return status;
}

} // namespace greta::llm
