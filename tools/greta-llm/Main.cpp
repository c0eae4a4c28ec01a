// Main.cpp: greta-llm's command line. An error is one line on stderr and exit
// status 1.
#include "CommandLine.h"
#include "OneLine.h"
#include "Options.h"
#include "engine/Team.h"
#include "model/Mapping.h"

#include <cerrno>
#include <chrono>
#include <random>
#include <system_error>

using namespace greta::llm;

double greta::llm::seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t greta::llm::seedOf(const Options &options) {
  if (options.hasSeed)
    return options.sampling.seed;
  std::random_device device;
  return uint64_t(device()) << 32 | device();
}

namespace {

constexpr const char *whatModelsAre =
    "a .gguf file, or a folder with safetensors, config.json and "
    "tokenizer.json";

void addSynthetic(CLI::App *verb, Options &options) {
  verb->add_option("--synthetic", options.synthetic,
                   "random weights in place of a model: " + syntheticNames() +
                       ", optionally with a format of weights such as :q4_0: " +
                       syntheticFormats());
}

void addModel(CLI::App *verb, Options &options) {
  verb->add_option("model", options.model, whatModelsAre);
  addSynthetic(verb, options);
}

// "[package] model": a command that is given no package takes the one in the
// cache, or compiles it there. A package is known by its name.
void nameFiles(Options &options) {
  const std::string &first = options.first, end = ".greta";
  bool isPackage =
      first.size() > end.size() &&
      first.compare(first.size() - end.size(), end.size(), end) == 0;
  if (!options.second.empty() || isPackage || !options.synthetic.empty()) {
    options.package = first;
    if (!options.second.empty())
      options.model = options.second;
  } else if (!first.empty()) {
    options.model = first;
  }
}

void addKvCache(CLI::App *verb, Options &options, const char *without) {
  verb->add_option("--kv-cache", options.kvCache,
                   std::string("how keys and values are held: full, the type "
                               "of activations; q8_0, 8 bits with a scale for "
                               "each 32; fp8, e4m3; ") +
                       without)
      ->check(CLI::IsMember({"full", "q8_0", "fp8"}));
}

void addDevices(CLI::App *verb, Options &options) {
  verb->add_option("--devices", options.devices,
                   "the devices that compute the model together: "
                   "vulkan:0,vulkan:1")
      ->delimiter(',')
      ->excludes("--device");
  verb->add_option(
      "--split", options.split,
      "how they divide it. tensor: 2, 4 or 8 equal devices each have a part "
      "of every layer; layers: each has whole layers, in proportion to its "
      "free memory, and one device computes after the other; layers:20,12: "
      "these numbers of layers");
  auto *meet = verb->add_option(
      "--meet", options.meet,
      "host:port of rank 0, where processes meet that compute the model "
      "together, each with its --device; rank 0 does the command's work, and "
      "the others end when it ends");
  meet->excludes("--devices");
  auto *ranks = verb->add_option(
      "--ranks", options.ranks,
      "number of processes; without it torchrun's or mpirun's number");
  ranks->needs(meet)->check(CLI::Range(2, 64));
  verb->add_option("--rank", options.rank, "number of this process, from 0 on")
      ->needs(ranks);
  ranks->needs("--rank");
}

// A process that meets others is told its number by whatever has started it.
void readRanks(Options &options) {
  if (options.meet.empty()) {
    if (options.split != "tensor" && options.devices.empty())
      fail("--split is for --devices or --meet");
    return;
  }
  auto numberOf = [](const char *name) -> std::optional<int64_t> {
    const char *text = secure_getenv(name);
    if (!text)
      return std::nullopt;
    std::string digits = text;
    if (digits.empty() || digits.size() > 6 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      fail(std::string(name) + "=" + digits + " is no number of processes");
    return std::stoll(digits);
  };
  constexpr const char *launchers[][2] = {
      {"WORLD_SIZE", "RANK"},                           // torchrun's
      {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, // Open MPI's
      {"PMI_SIZE", "PMI_RANK"},                         // MPICH's
      {"SLURM_NTASKS", "SLURM_PROCID"}};
  for (const auto &[size, rank] : launchers) {
    if (options.ranks)
      break;
    auto its = numberOf(size), number = numberOf(rank);
    if (its && number) {
      options.ranks = *its;
      options.rank = *number;
    }
  }
  if (options.ranks < 2 || options.ranks > 64)
    fail("--meet is for 2 to 64 processes: say --ranks and --rank, or start "
         "them with torchrun or mpirun");
  if (options.rank < 0 || options.rank >= options.ranks)
    fail("--rank=" + std::to_string(options.rank) + " is none of " +
         std::to_string(options.ranks));
  options.meeting =
      std::make_shared<Meeting>(options.meet, static_cast<size_t>(options.rank),
                                static_cast<size_t>(options.ranks));
}

// The options of every verb that runs a model.
void addEngine(CLI::App *verb, Options &options) {
  verb->add_option("package", options.first,
                   "a package that greta-llm compile has written; without it "
                   "the package is compiled into the cache, where the next "
                   "command finds it");
  verb->add_option("model", options.second, whatModelsAre);
  addSynthetic(verb, options);
  verb->add_option("--device", options.device,
                   "hip[:N], vulkan[:N] or sim:<gfx>; without it the first "
                   "device that there is");
  verb->add_option("-c,--context", options.context,
                   "tokens in the KV cache, which all sequences share; 0: the "
                   "model's context length for each sequence, or as many as "
                   "half of the free memory holds")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 24));
  addKvCache(verb, options,
             "without it the package's format, or full for a new package");
  verb->add_option("--chunk", options.chunk,
                   "most tokens of a prompt in one evaluation; fewer tokens "
                   "need less memory")
      ->check(CLI::Range(1, 16384));
  verb->add_flag("--no-graphs", options.noGraphs,
                 "launch each kernel by itself and replay no graphs");
  verb->add_flag("-q,--quiet", options.isQuiet,
                 "print no progress and no times");
}

void addSampling(CLI::App *verb, Options &options) {
  Sampling &sampling = options.sampling;
  verb->add_option_function<uint64_t>(
      "--seed",
      [&](uint64_t seed) {
        sampling.seed = seed;
        options.hasSeed = true;
      },
      "seed of the random numbers; the same seed gives the same text, and "
      "without a seed each text is different");
  verb->add_option("--temp,--temperature", sampling.temperature,
                   "divides the logits; 0: take the most likely token always")
      ->check(numbers(0.0, 100.0));
  verb->add_option("--top-k", sampling.topK,
                   "sample from this number of the likeliest tokens; 0: from "
                   "all tokens")
      ->check(CLI::Range(0, 1 << 24));
  verb->add_option("--top-p", sampling.topP,
                   "sample from the likeliest tokens that together reach this "
                   "probability; 1: from all tokens")
      ->check(numbers(0.0, 1.0));
  verb->add_option("--min-p", sampling.minP,
                   "sample from tokens with at least this share of the "
                   "likeliest token's probability; 0: from all tokens")
      ->check(numbers(0.0, 1.0));
  verb->add_option("--repeat-penalty", sampling.repeatPenalty,
                   "divides the logits of recent tokens; 1: no penalty")
      ->check(numbers(0.01, 100.0));
  verb->add_option("--repeat-last-n", sampling.repeatWindow,
                   "number of tokens that are recent for --repeat-penalty")
      ->check(CLI::Range(int64_t(0), rememberedTokens));
}

void addDrafts(CLI::App *verb, Options &options) {
  verb->add_option("--drafts", options.drafts,
                   "guess this number of tokens from the earlier text and "
                   "check them in one step; 0: no guesses")
      ->check(CLI::Range(0, 15));
  verb->add_option("--draft-model", options.draftModel,
                   "a smaller model with the same tokens, which makes the "
                   "guesses; it runs on the first device, with a package from "
                   "the cache")
      ->needs("--drafts");
}

// Prompts and sequences, in tokens.
const CLI::Range lengths(0, 1 << 24);

void addCompileOptions(CLI::App *verb, Options &options) {
  addModel(verb, options);
  verb->add_option(
      "--targets", options.targets,
      "GPUs to compile for: gfx942,gfx1100,vulkan (greta-translate "
      "--help lists all)");
  verb->add_option("-o,--output", options.output, "the package to write");
  verb->add_option("--shards", options.shards,
                   "how many devices share every layer (--devices)")
      ->check(CLI::IsMember({1, 2, 4, 8}));
  verb->add_option(
          "--type", options.type,
          "element type of activations and of weights that are not "
          "packed; without it the type of the model's weights, and f16 for "
          "quantised weights")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  addKvCache(verb, options, "without it full");
  verb->add_option("--batch", options.batches,
                   "numbers of sequences that generate together; each number "
                   "gets kernels of its own (for serve, for example, 1,2,4,8)")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  verb->add_flag("--one-launch{1}", options.joined,
                 "also compile the kernels of a layer as one launch with this "
                 "number of workgroups on each compute unit, for devices that "
                 "run all of them at the same time")
      ->check(CLI::Range(1, 32));
  verb->add_option("--part-rows", options.partRows,
                   "with --shards: make sums over devices in parts of this "
                   "number of tokens, each while the next part is computed; 0: "
                   "in one part. Without it the compiler chooses")
      ->check(CLI::Range(0, 1 << 24));
  verb->add_flag("--mlir", options.printsModule,
                 "print the functions instead of compiling them");
  verb->add_flag("-q,--quiet", options.isQuiet,
                 "print no progress and no summary");
}

void addRunOptions(CLI::App *verb, Options &options) {
  addEngine(verb, options);
  addDevices(verb, options);
  verb->add_option("--system", options.system,
                   "instructions for the model, before the first message");
  verb->add_option("-n", options.longest,
                   "most tokens of an answer; 0: as many as have room")
      ->check(CLI::Range(0, 1 << 24));
  addDrafts(verb, options);
  addSampling(verb, options);
}

void addGenerateOptions(CLI::App *verb, Options &options) {
  addEngine(verb, options);
  addDevices(verb, options);
  verb->add_option("-p,--prompt", options.prompt, "the text to continue")
      ->required();
  verb->add_option("-n", options.count, "most tokens to generate")
      ->check(CLI::Range(1, 1 << 24));
  verb->add_flag("--ignore-eos", options.ignoresEnd,
                 "continue the text when the model ends it");
  verb->add_flag("!--no-special", options.addsSpecial,
                 "leave out the tokens that the model wants around a prompt");
  addDrafts(verb, options);
  addSampling(verb, options);
}

void addLogitsOptions(CLI::App *verb, Options &options) {
  addEngine(verb, options);
  addDevices(verb, options);
  verb->add_option("--tokens", options.tokens, "token ids: 1,2,3")
      ->required()
      ->delimiter(',');
  verb->add_option("--batch", options.batches,
                   "tokens in one evaluation; 0: all")
      ->check(CLI::Range(0, 4096));
  verb->add_option("-o,--output", options.output,
                   "a .npy file, [tokens, vocabulary] of f32")
      ->required();
}

void addEmbedOptions(CLI::App *verb, Options &options) {
  addEngine(verb, options);
  auto *text = verb->add_option("-p,--prompt", options.prompt, "the text");
  verb->add_option("--tokens", options.tokens, "token ids in its place: 1,2,3")
      ->delimiter(',')
      ->excludes(text);
  verb->add_flag("!--no-special", options.addsSpecial,
                 "leave out the tokens that the model wants around a text");
}

void addTokenizeOptions(CLI::App *verb, Options &options) {
  addModel(verb, options);
  verb->add_option("text", options.text, "the text");
  verb->add_flag(
      "--chat", options.isChat,
      "the text is a list of messages in JSON, which the model's chat "
      "template turns into the prompt");
  verb->add_flag("!--no-special", options.addsSpecial,
                 "leave out the tokens that the model wants around a text");
}

void addBenchOptions(CLI::App *verb, Options &options) {
  addEngine(verb, options);
  addDevices(verb, options);
  verb->add_option("-p,--prompts", options.prompts,
                   "lengths of prompts, in tokens")
      ->delimiter(',')
      ->check(lengths);
  verb->add_option("-n", options.count, "tokens to generate; 0: none")
      ->check(lengths);
  verb->add_option("-d,--n-depth", options.depths,
                   "tokens in the cache before a measurement begins")
      ->delimiter(',')
      ->check(lengths);
  verb->add_option("--batch", options.batches, "sequences at once")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  verb->add_option("-r", options.repetitions, "measurements of each row")
      ->check(CLI::Range(1, 1000));
  verb->add_flag("--json{json},--csv{csv}", options.format,
                 "machine-readable output, at the end")
      ->disable_flag_override();
  verb->add_flag(
      "--profile", options.profiles,
      "also list each kernel's time, bytes, operations, and share of "
      "the device's limits");
  verb->add_option(
          "--peak", options.peak,
          "FLOP/s of the device, a limit for --profile: 990e12; 0: not "
          "known")
      ->check(positiveNumbers());
  verb->add_option("--bandwidth", options.bandwidth,
                   "bytes/s of the device's memory, a limit for --profile: "
                   "4.2e12; 0: what a copy reaches")
      ->check(positiveNumbers());
  addSampling(verb, options);
}

void addPerplexityOptions(CLI::App *verb, Options &options) {
  addEngine(verb, options);
  addDevices(verb, options);
  verb->add_option("-f,--file", options.file, "the text")->required();
  verb->add_option("--window", options.window,
                   "tokens in one window; the tokens of its second half count")
      ->check(CLI::Range(4, 1 << 20));
}

void addServeOptions(CLI::App *verb, Options &options) {
  addEngine(verb, options);
  addDevices(verb, options);
  verb->add_option("--host", options.host,
                   "address to listen at; an address that other machines reach "
                   "needs --api-key-file");
  verb->add_option("--port", options.port, "port; 0: any that is free")
      ->check(CLI::Range(0, 65535));
  verb->add_option_function<int64_t>(
          "--parallel",
          [&](int64_t parallel) {
            options.parallel = parallel;
            options.hasParallel = true;
          },
          "slots: sequences that generate together; without it 8, or fewer if "
          "the KV cache that fits has less than 1024 tokens for each")
      ->check(CLI::Range(1, 1024));
  verb->add_flag("--deterministic", options.isDeterministic,
                 "make answers independent of other requests: steps run the "
                 "kernels for all slots, even for one user");
  verb->add_flag("--no-prefix-cache", options.noPrefixCache,
                 "evaluate every prompt from its first token, even if the KV "
                 "cache still holds its beginning");
  addDrafts(verb, options);
  verb->add_option("--prompt-ms", options.promptMilliseconds,
                   "milliseconds that parts of prompts may take between two "
                   "tokens of requests that generate; 0: parts have --chunk "
                   "tokens")
      ->check(numbers(0.0, 60000.0));
  verb->add_option("--queue", options.queue,
                   "most requests that wait for a slot; more are refused")
      ->check(CLI::Range(1, 65536));
  verb->add_option("--grace", options.grace,
                   "seconds that open requests have after SIGTERM")
      ->check(CLI::Range(0, 86400));
  verb->add_option("--api-key-file", options.keyFile,
                   "a file whose first line is the key that every request "
                   "needs");
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  int (*chosen)(const Options &) = nullptr;
  CommandLine app{"Compiles and runs language models.", "greta-llm"};
  app.footer("greta-llm COMMAND --help lists a command's options. First tries, "
             "with a model file and without:\n"
             "  greta-llm run model.gguf\n"
             "  greta-llm serve --synthetic=tiny");
  app.require_subcommand(0, 1);
  auto add = [&](const char *name, const char *what,
                 int (*verb)(const Options &)) {
    CLI::App *one = app.add_subcommand(name, what);
    one->callback([&chosen, verb] { chosen = verb; });
    return one;
  };

  addCompileOptions(
      add("compile", "compile a model's kernels to a package", compile),
      options);
  addRunOptions(add("run", "chat in the terminal", run), options);
  addGenerateOptions(add("generate", "continue a text", generate), options);
  addEmbedOptions(add("embed", "print a text's embedding as JSON", embed),
                  options);
  addLogitsOptions(
      add("logits", "write the logits after each token to a file", logits),
      options);
  addTokenizeOptions(add("tokenize", "print a text's tokens as JSON", tokenize),
                     options);
  addBenchOptions(add("bench", "measure tokens per second", bench), options);
  addPerplexityOptions(
      add("perplexity", "measure how well a model predicts a text", perplexity),
      options);
  addServeOptions(add("serve",
                      "answer OpenAI's requests over HTTP, with a page to chat",
                      serve),
                  options);
  add("list", "list the known models and the cache's packages", list)
      ->add_flag("--json{json}", options.format,
                 "one object of JSON in place of a table")
      ->disable_flag_override();
  // For this program alone: Chat.cpp.
  add("render", "run a chat template", renderTemplate)->group("");

  if (auto status = app.parseArguments(argc, argv))
    return *status;
  std::string why;
  try {
    if (!chosen)
      fail("no command given; the commands are compile, run, generate, embed, "
           "logits, tokenize, bench, perplexity, serve, list (--help)");
    nameFiles(options);
    readRanks(options);
    int status = chosen(options);
    if (options.meeting)
      options.meeting->end();
    // Verbs that write while they work have flushed what failed.
    if (status == 0 && (fflush(stdout) != 0 || ferror(stdout)))
      throw std::system_error(errno ? errno : EIO, std::generic_category(),
                              "writing standard output");
    return status;
  } catch (const std::bad_alloc &) {
    why = "out of host memory";
  } catch (const std::exception &problem) {
    why = problem.what();
  }
  fprintf(stderr, "greta-llm: error: %s\n", onOneLine(why).c_str());
  if (options.meeting)
    options.meeting->fail(why);
  return 1;
}
