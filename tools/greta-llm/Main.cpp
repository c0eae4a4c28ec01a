// Main.cpp: greta-llm's command line. Whatever goes wrong ends as one line on
// stderr and exit status 1.
#include "CommandLine.h"
#include "Mapping.h"
#include "Options.h"

#include <cerrno>
#include <chrono>
#include <system_error>

using namespace greta::llm;

double greta::llm::seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

void addModel(CLI::App *verb, Options &options) {
  verb->add_option("model", options.model,
                   "a .gguf file, or a folder with safetensors, config.json "
                   "and tokenizer.json");
  verb->add_option("--synthetic", options.synthetic,
                   "random weights in place of a model: tiny, llama3-1b or "
                   "llama3-8b, and after a colon f32, f16, bf16 or q4_0");
}

// What every verb takes that runs a package.
void addEngine(CLI::App *verb, Options &options) {
  verb->add_option("package", options.package, "what greta-llm compile made")
      ->required();
  addModel(verb, options);
  verb->add_option("--device", options.device,
                   "hip[:N], vulkan[:N] or sim:<gfx>; the first that exists "
                   "unless given");
  verb->add_option("-c,--context", options.context,
                   "tokens that the KV cache holds; the model's unless given")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 24));
  verb->add_option("--chunk", options.chunk,
                   "tokens of a prompt that are evaluated together")
      ->check(CLI::Range(1, 16384));
  verb->add_flag("--no-graphs", options.noGraphs,
                 "launch every kernel instead of replaying graphs");
  verb->add_flag("-q,--quiet", options.isQuiet, "no progress, no times");
}

void addSampling(CLI::App *verb, Sampling &sampling) {
  verb->add_option("--seed", sampling.seed, "of the random numbers");
  verb->add_option("--temp,--temperature", sampling.temperature,
                   "0: always the most likely token")
      ->check(CLI::Range(0.0, 100.0));
  verb->add_option("--top-k", sampling.topK, "the likeliest; 0: all")
      ->check(CLI::Range(0, 1 << 24));
  verb->add_option(
          "--top-p", sampling.topP,
          "those whose likelier ones are less likely than this together")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--min-p", sampling.minP,
                   "as likely as this share of the likeliest at least")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--repeat-penalty", sampling.repeatPenalty,
                   "divides the logits of recent tokens; 1: none")
      ->check(CLI::Range(0.01, 100.0));
  verb->add_option("--repeat-last-n", sampling.repeatWindow,
                   "how many tokens are recent")
      ->check(CLI::Range(int64_t(0), rememberedTokens));
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  int (*chosen)(const Options &) = nullptr;
  CLI::App app{"Compiles and runs language models.", "greta-llm"};
  app.require_subcommand(0, 1);
  // Of prompts and sequences, in tokens.
  const CLI::Range lengths(0, 1 << 24);
  auto add = [&](const char *name, const char *what,
                 int (*verb)(const Options &)) {
    CLI::App *one = app.add_subcommand(name, what);
    one->callback([&chosen, verb] { chosen = verb; });
    return one;
  };

  CLI::App *verb = add("compile", "a package of a model's kernels", compile);
  addModel(verb, options);
  verb->add_option("--targets", options.targets,
                   "as greta-translate has them: gfx942,gfx1100,vulkan");
  verb->add_option("-o,--output", options.output, "the package");
  verb->add_option("--type", options.type,
                   "what activations and unpacked weights are held in; the "
                   "model's type unless given")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  verb->add_option("--batch", options.batches,
                   "numbers of tokens that get kernels of their own (1,2,4,8): "
                   "how many sequences are generated together")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  verb->add_flag("--mlir", options.printsModule,
                 "print the functions instead of compiling them");
  verb->add_flag("-q,--quiet", options.isQuiet, "no summary");

  verb = add("generate", "continues a text", generate);
  addEngine(verb, options);
  verb->add_option("-p,--prompt", options.prompt, "the text")->required();
  verb->add_option("-n", options.count, "tokens to generate at most")
      ->check(CLI::Range(1, 1 << 24));
  verb->add_flag("--ignore-eos", options.ignoresEnd,
                 "go on where the model would end");
  verb->add_flag("!--no-special", options.addsSpecial,
                 "no tokens around the prompt");
  addSampling(verb, options.sampling);

  verb = add("logits", "what the model says after each token", logits);
  addEngine(verb, options);
  verb->add_option("--tokens", options.tokens, "ids")
      ->required()
      ->delimiter(',');
  verb->add_option("--batch", options.batches,
                   "tokens that are evaluated together; 0: all")
      ->check(CLI::Range(0, 4096));
  verb->add_option("-o,--output", options.output,
                   "a .npy file, [tokens, vocabulary] of f32")
      ->required();

  verb = add("tokenize", "a text's tokens, as JSON", tokenize);
  addModel(verb, options);
  verb->add_option("text", options.text, "the text");
  verb->add_flag("--chat", options.isChat,
                 "the text is a list of messages in JSON, of which the model's "
                 "chat template makes the prompt");
  verb->add_flag("!--no-special", options.addsSpecial,
                 "no tokens around the text");

  verb = add("bench", "tokens per second", bench);
  addEngine(verb, options);
  verb->add_option("-p,--prompts", options.prompts, "lengths of prompts")
      ->delimiter(',')
      ->check(lengths);
  verb->add_option("-n", options.count, "tokens to generate")->check(lengths);
  verb->add_option("-d,--n-depth", options.depths,
                   "numbers of tokens that a sequence has before")
      ->delimiter(',')
      ->check(lengths);
  verb->add_option("--batch", options.batches, "sequences at the same time")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  verb->add_option("-r", options.repetitions, "measurements taken")
      ->check(CLI::Range(1, 1000));
  verb->add_flag("--json{json},--csv{csv}", options.format,
                 "machine-readable output");
  verb->add_flag("--profile", options.profiles,
                 "then of each kernel time, bytes, operations and how near the "
                 "device's limits it is");
  verb->add_option("--peak", options.peak,
                   "FLOP/s that the device can do, a limit of --profile beside "
                   "what it copies: 990e12")
      ->check(CLI::PositiveNumber);
  verb->add_option("--bandwidth", options.bandwidth,
                   "bytes/s that the device's memory moves, a limit of "
                   "--profile in place of what it copies: 4.2e12")
      ->check(CLI::PositiveNumber);
  addSampling(verb, options.sampling);

  verb = add("perplexity", "how well a model predicts a text", perplexity);
  addEngine(verb, options);
  verb->add_option("-f,--file", options.file, "the text")->required();
  verb->add_option("--window", options.window,
                   "tokens that are predicted from each other; the later half "
                   "counts")
      ->check(CLI::Range(4, 1 << 20));

  verb = add("serve", "answers OpenAI's requests over HTTP", serve);
  addEngine(verb, options);
  verb->add_option("--host", options.host,
                   "address to listen at; other than this machine's own only "
                   "with --api-key-file");
  verb->add_option("--port", options.port, "0: any that is free")
      ->check(CLI::Range(0, 65535));
  verb->add_option("--parallel", options.parallel,
                   "sequences that are generated together")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--queue", options.queue,
                   "requests that wait; more are refused")
      ->check(CLI::Range(1, 65536));
  verb->add_option("--api-key-file", options.keyFile,
                   "a file whose first line every request must bring");

  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  try {
    if (!chosen)
      fail("say what to do: compile, generate, logits, tokenize, bench, "
           "perplexity or serve (--help)");
    int status = chosen(options);
    if (status == 0 && fflush(stdout) != 0)
      throw std::system_error(errno, std::generic_category(),
                              "writing standard output");
    return status;
  } catch (const std::bad_alloc &) {
    fprintf(stderr, "greta-llm: error: out of host memory\n");
  } catch (const std::exception &problem) {
    fprintf(stderr, "greta-llm: error: %s\n", problem.what());
  }
  return 1;
}
