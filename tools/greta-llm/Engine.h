// Engine.h: a model on a device. In: a model, the package that was compiled for
// it, and tokens of sequences. Out: logits. Sequences keep their keys and
// values in pages of one cache that all share, so any of them may be evaluated
// together.
#ifndef GRETA_LLM_ENGINE_H
#define GRETA_LLM_ENGINE_H

#include "Weights.h"

namespace greta::llm {

struct Options;

struct EngineOptions {
  std::string device;
  int64_t context = 0;    // tokens of all sequences; 0: what the model says
  int64_t chunk = 2048;   // tokens that are evaluated together at most
  bool usesGraphs = true; // of the steps with functions of their own
  bool isQuiet = true;

  static EngineOptions of(const Options &options);
};

// What was evaluated of a sequence lies in these pages.
struct Sequence {
  std::vector<int32_t> pages;
  int64_t length = 0;
};

class Engine {
public:
  Engine(const Model &model, const std::string &packagePath,
         const EngineOptions &options);

  // A token behind its sequence's others.
  struct Entry {
    Sequence *sequence;
    int32_t token;
    bool wantsLogits;
  };
  // Pages for as many tokens more; false where the cache has no more.
  bool reserve(Sequence &sequence, int64_t tokens);
  void release(Sequence &sequence);
  // Evaluates tokens whose pages are reserved: any number of one sequence, or
  // one of each of several. The logits of those that want them, one row each.
  const std::vector<float> &evaluatePrompt(const std::vector<Entry> &entries);
  // `sequences` chooses the functions, so that a token's logits do not depend
  // on how many are evaluated with it.
  const std::vector<float> &evaluateTokens(const std::vector<Entry> &entries,
                                           int64_t sequences);
  // The same of one sequence's tokens, with the logits of the last.
  const std::vector<float> &append(Sequence &sequence,
                                   const std::vector<int32_t> &tokens);

  // While on, kernels are launched one by one and timed by the device.
  void profile(bool on);
  std::vector<std::pair<std::string, double>> times() { return stream.times(); }

  int64_t vocabulary() const { return model.config.vocabulary; }
  int64_t chunk() const { return options.chunk; }
  int64_t capacity() const { return pages * pageSize; }
  int64_t freeTokens() const {
    return static_cast<int64_t>(freePages.size()) * pageSize;
  }
  std::string deviceName() const;
  greta_memory memory() const { return runtime.memory(); }
  size_t weightBytes() const { return weights->bytes(); }
  const char *elementName() const { return nameOf(element); }

private:
  // The functions for a number of sequences' tokens, or for one sequence's.
  struct Step {
    int64_t size; // 0: any number of one sequence
    std::vector<greta::Function> layers;
    std::vector<greta::Function> head;
    greta::Graph graph;
    bool isCaptured = false;
  };
  // Where the parts of a step's input lie in its buffer.
  struct Inputs {
    int64_t tokens, sequences, pages;
    size_t offset(int array) const {
      return static_cast<size_t>((tokens + 3) / 4 * 16 * array);
    }
    size_t bytes() const {
      return offset(4) + static_cast<size_t>(sequences * pages) * 4;
    }
  };

  greta::Function load(const std::string &name);
  Element elementOfPackage();
  void checkWeights(const greta::Function &function, int64_t layer);
  Step loadStep(int64_t size);
  greta::Tensor bind(const std::string &name, int64_t layer,
                     const Inputs &inputs, const Buffer &x, int64_t xRow);
  std::vector<greta::Tensor> bindAll(const greta::Function &function,
                                     int64_t layer, const Inputs &inputs,
                                     const Buffer &x, int64_t xRow);
  void queue(Step &step, const Inputs &inputs, bool wantsLogits);
  void queueHead(Step &step, const Inputs &inputs, int64_t row, int64_t rows);
  void evaluate(Step &step, const std::vector<Entry> &entries);
  void evaluatePart(Step &step, const Entry *entries, size_t count);

  const Model &model;
  EngineOptions options;
  std::string packagePath;
  greta::Runtime runtime;
  greta::Package package;
  greta::Stream stream;
  Element element;
  LayerClasses classes;
  std::unique_ptr<Weights> weights;
  std::vector<greta::Function> embed;
  std::vector<Step> steps; // in the order of sizes, a prompt's at the end
  greta::Buffer x[2], cos, sin, cosTable, sinTable, inputBuffer, logitBuffer;
  std::vector<greta::Buffer> keys, values;
  int64_t pages, logitRows;
  std::vector<int32_t> freePages, inputWords;
  std::vector<float> logits;
};

} // namespace greta::llm
#endif
